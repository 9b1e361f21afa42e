package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Broken glass must not quietly mean another split than the one that was asked: with the
// source drained 40/60 would have become 0/100.
func TestBrokenGlassIsRefusedForASideThatNobodyServes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.gated(50, 100))
		breaks := func(source, target float64) error {
			split := []rollout.Weight{{Deployment: s.source.ID, Weight: source}, {Deployment: s.target.ID, Weight: target}}
			_, err := w.UpdateEndpoint(t.Context(), w.alice, s.ep.ID, "", engine.EndpointChange{Split: &split, BreakGlass: &engine.BreakGlass{Reason: "it burns"}})
			return err
		}
		w.phase(r, 0, rollout.PhaseScaling)
		refusedAs(t, breaks(90, 10), engine.Invalid, "the target of rollout "+r.ID, s.target.ID, "has no ready replica, so the 10 % meant for it would be served by nobody")

		w.phase(r, 1, rollout.PhaseSoaking)
		w.ready(s.ep.ID, s.source.ID, 0)
		before := w.now(r)
		refusedAs(t, breaks(40, 60), engine.Invalid, "the source of rollout "+r.ID, s.source.ID, "has no ready replica, so the 40 % meant for it would be served by nobody")
		require.Equal(t, before, w.now(r), "a refusal writes nothing")
		require.Equal(t, 1.0, w.shares(s.ep.ID)[s.target.ID])

		require.NoError(t, breaks(0, 1))
		require.Equal(t, rollout.SystemPaused, w.reach(r, rollout.SystemPaused).State)
	})
}
