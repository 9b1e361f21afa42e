package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// reboot ends the engine and every replica in order, and starts an engine on what is
// stored: the replicas start cold.
func (w *world) reboot() {
	w.t.Helper()
	w.stop()
	require.NoError(w.t, w.fleet.Close(context.Background()))
	f, err := simulated.New(simulated.Config{Pools: pools()})
	require.NoError(w.t, err)
	f.Start()
	w.fleet, w.router = f, newRouters()
	w.start()
}

func TestAnOrderlyStopDuringASoakGoesOnAtTheSameStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.gated(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		w.reboot()
		restarted := time.Now()
		w.until(time.Hour, func() bool { return w.now(r).SteadySince.After(restarted) }, "the soak does not begin anew")
		soaking := w.now(r)
		require.Equal(t, 50, soaking.Percent)
		require.Zero(t, soaking.Step)
		require.False(t, soaking.SteadySince.Before(restarted.Add(coldStart)), "the soak begins anew once the replicas are back")
		r = w.reach(r, rollout.Completed)
		require.NotContains(t, types(w.feed(r)), "rollout.system_paused")
	})
}

func TestReplicasThatDoNotComeBackAfterAStopParkTheRollout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.gated(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		stopped := time.Now()
		for i := range w.config.Serving {
			w.config.Serving[i].Simulated.Stuck = true
		}
		w.reboot()
		r = w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.UnderServed, r.Condition.Category, r.Condition.Message)
		budget := w.config.Serving[0].ColdStart + w.config.Timings.ReadyDeadline
		require.WithinDuration(t, stopped.Add(budget), r.Pause.At, 10*time.Second)
	})
}

func TestAGapThatARestartLeftSoaksAgainInsteadOfParking(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		var since time.Time
		w.meter.read = func(q rollout.Query) (rollout.Reading, error) {
			return rollout.Reading{Value: 100, Samples: 1000, Complete: !q.From.Before(since)}, nil
		}
		r := w.begin(s, s.gated(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		time.Sleep(5 * time.Minute)
		w.stop()
		time.Sleep(time.Minute)
		since = time.Now()
		w.start()
		r = w.reach(r, rollout.Completed)
		feed := types(w.feed(r))
		require.Contains(t, feed, "rollout.soak_restarted")
		require.NotContains(t, feed, "rollout.system_paused")
	})
}
