package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// The target answers its probe and hangs every request: nothing ends on either side,
// and yet the endpoint is not idle.
func TestATargetThatHangsEveryRequestParksInsteadOfCompleting(t *testing.T) {
	for name, touched := range map[string]bool{"hangs": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.settle(1)
				w.meter.read = func(q rollout.Query) (rollout.Reading, error) {
					return rollout.Reading{Complete: true, Touched: touched && q.Deployment == s.target.ID}, nil
				}
				r := w.begin(s, s.gated(100))
				if touched {
					r = w.reach(r, rollout.SystemPaused)
					require.Equal(t, rollout.MetricsUnavailable, r.Condition.Category)
					return
				}
				r = w.reach(r, rollout.Completed)
				require.Contains(t, types(w.feed(r)), "rollout.gate_skipped")
			})
		})
	}
}
