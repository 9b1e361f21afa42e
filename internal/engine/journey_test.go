package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func TestACanaryCompletes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.reach(w.begin(s, s.gated(10, 50, 100)), rollout.Completed)
		require.Equal(t, 100, r.Percent)
		for _, st := range r.Steps {
			require.Equal(t, rollout.StepPassed, st.State)
		}
		require.InDelta(t, 1, w.shares(s.ep.ID)[s.target.ID], 1e-9)
		ep, err := w.Endpoint(t.Context(), s.ep.ID)
		require.NoError(t, err)
		require.Empty(t, ep.ActiveRollout)
		require.Nil(t, ep.Pair)
		require.Equal(t, []rollout.Weight{{Deployment: s.target.ID, Weight: 1}}, ep.Split)
		source, err := w.Deployment(t.Context(), s.ep.ID, s.source.ID)
		require.NoError(t, err)
		require.Equal(t, rollout.Bounds{}, source.Bounds, "the source is drained and stopped")
		target, err := w.Deployment(t.Context(), s.ep.ID, s.target.ID)
		require.NoError(t, err)
		require.Equal(t, rollout.Bounds{Min: 2, Max: 2}, target.Bounds)
		require.Equal(t, []string{
			"rollout.created", "rollout.started",
			"rollout.target_scaling", "rollout.target_ready", "rollout.traffic_shifted", "rollout.propagated", "rollout.source_drained", "rollout.step_passed",
			"rollout.target_scaling", "rollout.target_ready", "rollout.traffic_shifted", "rollout.propagated", "rollout.source_drained", "rollout.step_passed",
			"rollout.target_scaling", "rollout.target_ready", "rollout.traffic_shifted", "rollout.propagated", "rollout.source_drained", "rollout.step_passed",
			"rollout.completed",
		}, types(w.feed(r)))
	})
}

// The published demo: 3:57 of cold start, a park 423 s after the shift, the split
// frozen by the cancel, and the way back by an ordinary rollout.
func TestParkCancelAndReverse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		w.meter.read = func(q rollout.Query) (rollout.Reading, error) {
			v := 734.20
			if q.Deployment == s.target.ID {
				v = 1740.38
			}
			return rollout.Reading{Value: v, Samples: 500, Complete: true}, nil
		}
		began := time.Now()
		r := w.begin(s, s.gated(10, 50, 100))
		r = w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.MetricRegression, r.Condition.Category)
		require.WithinDuration(t, began.Add(coldStart+423*time.Second), r.Pause.At, 2*time.Second)
		require.InDelta(t, 0.1, w.shares(s.ep.ID)[s.target.ID], 1e-9)
		time.Sleep(9 * 24 * time.Hour)
		require.Equal(t, r, w.now(r), "a regression waits for a person, for days")

		asked := time.Now()
		r, err := w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, rollout.ETag(r.Version), w.Cancel("p95 regression"))
		require.NoError(t, err)
		require.Equal(t, rollout.Cancelling, r.State)
		r = w.reach(r, rollout.Canceled)
		require.Less(t, r.CompletedAt.Sub(asked), time.Second)
		require.InDelta(t, 0.1, w.shares(s.ep.ID)[s.target.ID], 1e-9, "frozen at what was served")
		require.Equal(t, rollout.StepCanceled, r.Steps[0].State)
		require.Equal(t, rollout.StepSkipped, r.Steps[2].State)

		preview, err := w.PreviewRollout(t.Context(), s.ep.ID, s.back())
		require.NoError(t, err)
		require.True(t, preview.Basis.Frozen())
		require.Equal(t, 90, preview.Basis.Seed)
		back := w.reach(w.begin(s, s.back()), rollout.Completed)
		require.InDelta(t, 1, w.shares(s.ep.ID)[s.source.ID], 1e-9)
		require.Equal(t, 2, back.Journey.FinalTarget, "a frozen pair's combined count")
	})
}

// A5: weights are no percentages, and the other members of a split keep their
// shares through a rollout, after a cancel and after a completion.
func TestA5WeightsThreeOneOne(t *testing.T) {
	for _, end := range []string{"complete", "cancel"} {
		t.Run(end, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.settle(1)
				other := w.deploy(s.ep.ID, "other", "m/stable", 1)
				third := w.deploy(s.ep.ID, "third", "m/stable", 1)
				asleep := w.deploy(s.ep.ID, "asleep", "m/stable", 0) // keeps its weight and has no traffic
				w.ready(s.ep.ID, other.ID, 1)
				w.ready(s.ep.ID, third.ID, 1)
				w.split(s.ep.ID, rollout.Weight{Deployment: s.source.ID, Weight: 3}, rollout.Weight{Deployment: other.ID, Weight: 1}, rollout.Weight{Deployment: third.ID, Weight: 1}, rollout.Weight{Deployment: asleep.ID, Weight: 4})
				require.InDelta(t, 0.6, w.shares(s.ep.ID)[s.source.ID], 1e-9)
				check := func(source, target float64) {
					t.Helper()
					got := w.shares(s.ep.ID)
					require.InDelta(t, 0.2, got[other.ID], 1e-9)
					require.InDelta(t, 0.2, got[third.ID], 1e-9)
					require.InDelta(t, source, got[s.source.ID], 1e-9)
					require.InDelta(t, target, got[s.target.ID], 1e-9)
					require.Zero(t, got[asleep.ID])
				}
				r := w.begin(s, s.canary(25, 50, 100))
				w.phase(r, 0, rollout.PhaseSoaking)
				check(0.45, 0.15)
				w.phase(r, 1, rollout.PhaseSoaking)
				check(0.3, 0.3)
				if end == "cancel" {
					_, err := w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Cancel("enough"))
					require.NoError(t, err)
					w.reach(r, rollout.Canceled)
					check(0.3, 0.3)
					return
				}
				w.reach(r, rollout.Completed)
				check(0, 0.6)
				ep, err := w.Endpoint(t.Context(), s.ep.ID)
				require.NoError(t, err)
				require.InDelta(t, 4, ep.WeightOf(asleep.ID), 1e-9)
				require.Zero(t, ep.WeightOf(s.source.ID))
			})
		})
	}
}

func TestC9ResumeGoesOnAtTheSameStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		r := w.begin(s, s.canary(10, 50, 100))
		w.phase(r, 1, rollout.PhaseSoaking)
		_, err := w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Pause("lunch"))
		require.NoError(t, err)
		w.reach(r, rollout.Paused)
		time.Sleep(48 * time.Hour)
		require.Equal(t, rollout.Paused, w.now(r).State)
		_, err = w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Resume())
		require.NoError(t, err)
		w.reach(r, rollout.Completed)
		shifts := 0
		for _, line := range types(w.feed(r)) {
			if line == "rollout.traffic_shifted" {
				shifts++
			}
		}
		require.Equal(t, 3, shifts, "each step's traffic moves once")
	})
}

// B11: a pending rollout touches nothing.
func TestB11PendingTouchesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		before := len(w.router.history)
		r, err := w.CreateRollout(t.Context(), w.alice, s.ep.ID, s.canary(10, 100))
		require.NoError(t, err)
		time.Sleep(24 * time.Hour)
		require.Equal(t, r, w.now(r))
		require.Len(t, w.router.history, before)
		status, err := w.fleet.Observe(t.Context(), s.target.ID)
		require.NoError(t, err)
		require.Zero(t, status.Scheduled)
	})
}

// B1: replicas die between the shift and the drain.
func TestB1DeathAfterTheShiftDrainsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(4)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhasePropagating)
		status, err := w.fleet.Observe(t.Context(), s.target.ID)
		require.NoError(t, err)
		require.NoError(t, w.fleet.Kill(status.Replicas[0].ID))
		r = w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.UnderServed, r.Condition.Category)
		source, err := w.Deployment(t.Context(), s.ep.ID, s.source.ID)
		require.NoError(t, err)
		require.Equal(t, 4, source.Bounds.Min, "nothing was drained")
		w.until(time.Minute, func() bool { return w.shares(s.ep.ID)[s.target.ID] <= 0.25+1e-9 }, "the split is not brought down to what one replica carries")
		// It comes back by itself: the engine retries after its interval.
		w.reach(r, rollout.Completed)
	})
}

// The engine follows the fleet between Load and Run, too.
func TestAReplicaThatComesUpBeforeTheSubscriptionIsRouted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		w.stop()
		c := w.config
		c.Store, c.Fleet, c.Router, c.Meter = w.disk, w.fleet, w.router, w.meter
		two := 2
		e := engine.New(c)
		require.NoError(t, e.Load(t.Context()))
		_, err := e.UpdateDeployment(t.Context(), w.alice, s.ep.ID, s.source.ID, "", engine.DeploymentChange{Min: &two})
		require.NoError(t, err)
		time.Sleep(coldStart + time.Second) // ready while nobody listens
		w.start()
		w.ready(s.ep.ID, s.source.ID, 2)
	})
}
