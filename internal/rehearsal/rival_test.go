package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// E1 (argo-rollouts#2117): another engine takes the store over at every outward call of a
// whole rollout, while the first is making that call. The first writes nothing any more,
// and the rollout ends with the same record and the same feed at the same instants.
func TestE1ASecondEngineAtEveryOutwardCall(t *testing.T) {
	d := disk(t)
	taken := 0
	for name, s := range journeys() {
		t.Run(name, func(t *testing.T) {
			want := wholeRollout(t, s, Setup{Disk: d})
			stride := 1
			if slowBuild {
				stride = 40
			}
			for at := 1; at <= want.Stats.Calls; at += stride {
				for _, reads := range []Reads{Remembered, Decoded} {
					second := Script{Given: append([]string{fmt.Sprintf("at call %d: second engine", at)}, s.Given...), When: s.When}
					got := wholeRollout(t, second, Setup{Disk: d, Reads: reads})
					taken++
					requireSame(t, want, got, fmt.Sprintf("another engine at call %d of %d", at, want.Stats.Calls))
				}
			}
		})
	}
	t.Logf("measured: %d whole rollouts, each of them taken over by another engine at an outward call", taken)
}

// An engine whose store does not check the lease is noticed.
func TestE1AStoreWithoutALeaseIsNoticed(t *testing.T) {
	s := Script{
		Given: []string{"source: 3 ready", "target: stopped", "rollout: canary 50 100"},
		When:  []string{"+0:00 start", "in SOAKING of step 1 after 10s: freeze", "in SOAKING of step 1 after 20s: second engine", "in SOAKING of step 1 after 30s: thaw"},
	}
	d := disk(t)
	require.Empty(t, wholeRollout(t, s, Setup{Disk: d}).Violations)
	r, err := Play(t.Context(), s, Setup{Disk: d, Wrong: unleased})
	require.NoError(t, err)
	require.NotEmpty(t, r.Violations)
	require.Contains(t, fmt.Sprint(r.Violations), "an engine whose place was taken writes")
}

// unleased makes an engine that writes whoever has the store.
func unleased(c *engine.Config) { c.Store = leaseless{c.Store.(*storePort)} }

// leaseless takes the lease back before each write.
type leaseless struct{ *storePort }

func (s leaseless) Held(context.Context) error { return nil }

func (s leaseless) Commit(ctx context.Context, c rollout.Change) error {
	if err := s.storePort.Commit(ctx, c); !errors.Is(err, rollout.ErrFenced) {
		return err
	}
	mine, err := s.TakeOver(ctx, "the first engine")
	if err != nil {
		return err
	}
	s.SQLite = mine
	return s.storePort.Commit(ctx, c)
}
