package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// cancelsFirst is a store in which somebody's cancel is accepted in the instant
// between the decision to shift and its write.
type cancelsFirst struct {
	engine.Store
	cancel func()
}

func (c *cancelsFirst) Commit(ctx context.Context, change rollout.Change) error {
	if len(change.Endpoints) == 1 && change.Endpoints[0].Pair != nil && change.Endpoints[0].Pair.Percent == 10 && c.cancel != nil {
		cancel := c.cancel
		c.cancel = nil
		cancel()
	}
	return c.Store.Commit(ctx, change)
}

func TestACancelIsNotOvertakenByAShiftThatWasOnItsWay(t *testing.T) {
	between := &cancelsFirst{}
	p := ports{store: func(s engine.Store) engine.Store { between.Store = s; return between }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		s := w.settle(1)
		r, err := w.CreateRollout(t.Context(), w.alice, s.ep.ID, s.canary(10, 50, 100))
		require.NoError(t, err)
		asked := false
		between.cancel = func() {
			asked = true
			_, err := w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Cancel("no"))
			require.NoError(t, err)
		}
		_, err = w.StartRollout(t.Context(), w.alice, s.ep.ID, r.ID)
		require.NoError(t, err)
		r = w.reach(r, rollout.Canceled)
		require.True(t, asked)
		require.Zero(t, r.Percent, "frozen at what was served when the cancel was accepted")
		for _, served := range w.router.history {
			require.False(t, served.route.Pair != nil && served.route.Pair.Percent == 10, "the shift reached the routers after the cancel")
		}
		require.InDelta(t, 1, w.shares(s.ep.ID)[s.source.ID], 1e-9)
	})
}
