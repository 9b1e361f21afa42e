package planning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// Digest names a spec: "sha256:" and 64 hex digits over its canonical wire form.
// Two ways of writing one spec (10m and 600s, a budget of 0 and none) have one
// digest. Who asked is not part of it.
func Digest(s rollout.Spec) string {
	s.Digest, s.Origin = "", ""
	s.HoldSource = s.HoldSource && s.Breaker == nil // a breaker holds the source anyway
	canonical := wire.SpecToAPI(s)
	b, err := json.Marshal(canonical)
	if err != nil {
		panic("a spec of plain values always marshals: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// DigestOf is Digest of a wire spec; what is wrong with it does not matter here.
func DigestOf(s api.RolloutSpec) string {
	spec, _ := wire.SpecFromAPI(s)
	return Digest(spec)
}

// ShortDigest is a digest for people: its first twelve hex digits.
func ShortDigest(digest string) string {
	const prefix = len("sha256:")
	if len(digest) < prefix+12 {
		return digest
	}
	return digest[prefix : prefix+12]
}

// IdempotencyKey names the create of one spec on one endpoint after a given number
// of earlier tries that are over, so that a lost answer finds its first try and a
// deliberate new start does not.
func IdempotencyKey(endpoint, digest string, generation string) string {
	sum := sha256.Sum256([]byte(endpoint + "\n" + digest + "\n" + generation))
	return "sluice-" + hex.EncodeToString(sum[:16])
}
