package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// E1 (argo-rollouts#2117): another engine takes the store over while this one soaks a
// step. This one writes nothing and moves nothing any more, and ends by itself.
func TestE1AnEngineThatLostItsStoreEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.gated(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		other, err := w.disk.TakeOver(t.Context(), "process 7 on another")
		require.NoError(t, err)
		before, routes := w.now(r), len(w.router.history)
		_, err = w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Cancel("no"))
		require.ErrorIs(t, err, rollout.ErrFenced)
		err = <-w.running.done
		w.running = nil
		require.ErrorIs(t, err, rollout.ErrFenced)
		require.ErrorContains(t, err, "the engine ends: another engine has taken the store over: process 7 on another has it")
		require.Equal(t, before, w.now(r))
		require.Len(t, w.router.history, routes)
		require.NoError(t, other.Held(t.Context()))
	})
}

// One that has nothing to do learns it too, within one poll.
func TestE1AnIdleEngineThatLostItsStoreEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.settle(1)
		lost := time.Now()
		_, err := w.disk.TakeOver(t.Context(), "process 7 on another")
		require.NoError(t, err)
		require.ErrorIs(t, <-w.running.done, rollout.ErrFenced)
		w.running = nil
		require.LessOrEqual(t, time.Since(lost), 5*time.Second)
	})
}
