package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// HashKey is how a key's secret is stored. The secret has 256 random bits, so a
// plain SHA-256 cannot be searched.
func HashKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// NewKey draws an API key and its secret, which is told only here. It is of no use
// until SaveKey.
func (e *Engine) NewKey(name string, scopes []rollout.Scope) (key rollout.Key, secret string, err error) {
	if strings.TrimSpace(name) == "" || len(name) > 128 {
		return key, "", invalid("name", "give the key a name of at most 128 characters, for the audit trail")
	}
	if len(scopes) == 0 {
		return key, "", invalid("scopes", "give at least one scope of read, operate, admin, break-glass")
	}
	var once []rollout.Scope
	for _, s := range scopes {
		if !s.Known() {
			return key, "", invalid("scopes", "scope %q is unknown; use read, operate, admin or break-glass", s)
		}
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	secret = "sluice_" + base64.RawURLEncoding.EncodeToString(b[:])
	return rollout.Key{ID: e.NewID("key"), Name: name, Hash: HashKey(secret), Scopes: once, ProjectID: e.Project.ID, CreatedAt: e.Now()}, secret, nil
}

// SaveKey makes a key valid.
func (e *Engine) SaveKey(ctx context.Context, k rollout.Key) error {
	return e.Store.Commit(ctx, rollout.Change{Keys: []rollout.Key{k}})
}

// DeleteKey revokes a key at once. The last one with the scope admin stays, since
// nobody could make another.
func (e *Engine) DeleteKey(ctx context.Context, id string) error {
	keys, err := e.Store.Keys(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(keys, func(k rollout.Key) bool { return k.ID == id })
	if i < 0 {
		return missing("key", id)
	}
	others := slices.Delete(slices.Clone(keys), i, i+1)
	if !slices.ContainsFunc(others, func(k rollout.Key) bool { return k.Allows(rollout.ScopeAdmin) }) {
		return refuse(Precondition, "key %s is the last one with the scope admin; make another first", id)
	}
	return e.Store.Commit(ctx, rollout.Change{Delete: []rollout.Ref{{Kind: rollout.KindKey, ID: id}}})
}

// Authenticate finds the key of a secret. ok is false for a wrong one.
func (e *Engine) Authenticate(ctx context.Context, secret string) (key rollout.Key, ok bool, err error) {
	k, err := e.Store.KeyHashed(ctx, HashKey(secret))
	if errors.Is(err, rollout.ErrNotFound) {
		return k, false, nil
	}
	return k, err == nil, err
}
