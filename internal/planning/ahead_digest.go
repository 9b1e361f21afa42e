package planning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// PlanDigest names one rollout on what stands: "sha256:" and 64 hex digits over the spec,
// the live split, the replica bounds of both sides and the engine's waits. It is what an
// approval of a preview stands on; a plan of a folder has its own (Changes.Digest).
func (a Ahead) PlanDigest() string {
	p := a.Preview
	facts := struct {
		Spec   string
		Split  []api.TrafficWeight
		Source int
		Target [3]int
		Limits any
	}{DigestOf(a.Spec), a.Endpoint.TrafficSplit, p.SourceReplicas, [3]int{p.TargetReplicas, p.TargetMinReplicas, p.TargetMaxReplicas}, nil}
	if p.Sluice != nil {
		facts.Limits = p.Sluice.Timings
	}
	b, err := json.Marshal(facts)
	if err != nil {
		panic("plain values always marshal: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
