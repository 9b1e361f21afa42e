package fleettest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func followsDesired(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 4})
	w.ensure("dep", 1, 3)
	w.untilReady("dep", 1)
	w.wish("dep", 3)
	st := w.untilReady("dep", 3)
	require.Equal(t, 3, st.Desired)
	require.Equal(t, "All replicas ready", st.Message)
	require.Equal(t, 1, w.free())
	w.wish("dep", 1)
	w.untilReady("dep", 1)
	require.Equal(t, 3, w.free())
}

func ensureTwice(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 4})
	w.ensure("dep", 2, 3)
	w.ensure("dep", 2, 3)
	before := w.untilReady("dep", 2)
	w.ensure("dep", 2, 3)
	require.Equal(t, before, w.see("dep"))
}

func stopsAtZero(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 4})
	w.ensure("dep", 2, 2)
	old := w.untilReady("dep", 2)
	w.ensure("dep", 0, 0)
	st := w.untilReady("dep", 0)
	require.Zero(t, st.Desired)
	require.Equal(t, 4, w.free())
	w.wish("dep", 2)
	require.Zero(t, w.see("dep").Desired, "a stopped deployment starts by its floor only")
	w.ensure("dep", 1, 2)
	st = w.untilReady("dep", 1)
	require.NotContains(t, ids(old), st.Replicas[0].ID)
}

func waitsForCapacity(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 2})
	w.ensure("first", 1, 2)
	w.wish("first", 2)
	w.untilReady("first", 2)
	w.ensure("second", 1, 1)
	st := w.see("second")
	require.Equal(t, 1, st.Unplaced)
	require.Zero(t, st.Scheduled)
	require.Equal(t, fleet.MessageNoCapacity, st.Message)
	require.Equal(t, rollout.ReplicaPending, st.Replicas[0].State)
	require.Equal(t, fleet.MessageNoCapacity, st.Replicas[0].Message)
	require.Zero(t, w.free())
	w.wish("first", 1)
	after := w.untilReady("second", 1)
	require.Equal(t, ids(st), ids(after), "the replica that waited is the one that is placed")

	other := w.suite.Quick
	other.Hardware = "unheard-of"
	require.NoError(t, w.Fleet.Ensure(t.Context(), workload("third", other, 1, 1)))
	require.Contains(t, w.see("third").Message, "unheard-of")
}

func victimOrder(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 4, Backoff: fleet.Backoff{First: time.Hour, Max: time.Hour}})
	for n := 1; n <= 3; n++ {
		if n == 1 {
			w.ensure("dep", 1, 9)
		}
		w.wish("dep", n)
		w.untilReady("dep", n)
	}
	all := w.see("dep")
	oldest, failed, youngest := all.Replicas[0].ID, all.Replicas[1].ID, all.Replicas[2].ID
	require.NoError(t, w.Kill(all.Replicas[1]))
	w.until("dep", "failed", func(st rollout.FleetStatus) bool { return state(st, failed) == rollout.ReplicaFailed })
	require.NoError(t, w.Fleet.Ensure(t.Context(), workload("dep", s.Hangs, 1, 9)))
	w.wish("dep", 5)
	all = w.see("dep")
	starting, unplaced := all.Replicas[3].ID, all.Replicas[4].ID
	require.Equal(t, rollout.ReplicaStarting, state(all, starting))
	require.Equal(t, rollout.ReplicaPending, state(all, unplaced))

	for n, victim := range []string{unplaced, starting, failed, youngest} {
		w.wish("dep", 4-n)
		st := w.until("dep", "one less", func(st rollout.FleetStatus) bool { return len(st.Replicas) == 4-n })
		require.Empty(t, state(st, victim), "victim %d", n)
	}
	require.Equal(t, []string{oldest}, ids(w.see("dep")))
}

func drainsFirst(t *testing.T, s Suite) {
	called, release := make(chan rollout.Replica, 9), make(chan struct{})
	w := s.begin(t, Options{Capacity: 2, Quiesce: func(ctx context.Context, r rollout.Replica) error {
		called <- r
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	w.ensure("dep", 1, 2)
	w.untilReady("dep", 1)
	w.wish("dep", 2)
	before := w.untilReady("dep", 2)
	w.wish("dep", 1)
	victim := w.receive(called)
	require.Equal(t, before.Replicas[1].ID, victim.ID)
	require.Equal(t, rollout.ReplicaDraining, victim.State)
	require.Equal(t, before.Replicas[1].Address, victim.Address)

	st := w.see("dep")
	require.Equal(t, []int{1, 1, 2}, []int{st.Ready, st.Draining, st.Scheduled})
	require.Zero(t, w.free(), "the place is held until the replica is gone")
	w.ensure("other", 1, 1)
	require.Equal(t, 1, w.see("other").Unplaced)
	close(release)
	w.untilReady("other", 1)
	require.Equal(t, []string{before.Replicas[0].ID}, ids(w.see("dep")))
}

// receive waits for the quiesce hook.
func (w *world) receive(called <-chan rollout.Replica) rollout.Replica {
	w.Helper()
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	select {
	case r := <-called:
		return r
	case <-limit.C:
		w.Fatal("the quiesce hook was never called")
		return rollout.Replica{}
	}
}

func tellsFirst(t *testing.T, s Suite) {
	called := make(chan rollout.Replica, 9)
	w := s.begin(t, Options{Capacity: 1, Quiesce: func(_ context.Context, r rollout.Replica) error {
		called <- r
		return nil
	}})
	w.ensure("dep", 1, 1)
	w.untilReady("dep", 1)
	told := make(chan bool, 9)
	cancel := w.Fleet.Subscribe(func(string) {
		if st, err := w.Fleet.Observe(t.Context(), "dep"); err != nil || st.Draining == 0 {
			return
		}
		early := time.NewTimer(200 * time.Millisecond) // a slow listener gives a hook that does not wait its chance
		defer early.Stop()
		select {
		case r := <-called:
			called <- r
			told <- false
		case <-early.C:
			told <- true
		}
	})
	defer cancel()
	w.ensure("dep", 0, 0)
	require.True(t, <-told, "the hook ran while a listener was being told")
	w.receive(called)
	w.untilReady("dep", 0)
}

func drainTimeout(t *testing.T, s Suite) {
	ended := make(chan error, 1)
	w := s.begin(t, Options{Capacity: 1, Quiesce: func(ctx context.Context, _ rollout.Replica) error {
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}})
	hasty := s.Quick
	hasty.DrainTimeout = 50 * time.Millisecond
	require.NoError(t, w.Fleet.Ensure(t.Context(), workload("dep", hasty, 1, 1)))
	w.untilReady("dep", 1)
	w.ensure0("dep", hasty)
	w.untilReady("dep", 0)
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
}

// ensure0 stops the deployment under its config.
func (w *world) ensure0(deployment string, c rollout.ServingConfig) {
	w.Helper()
	require.NoError(w, w.Fleet.Ensure(w.Context(), workload(deployment, c, 0, 0)))
}

func doesNotRevive(t *testing.T, s Suite) {
	called, release := make(chan rollout.Replica, 9), make(chan struct{})
	w := s.begin(t, Options{Capacity: 2, Quiesce: func(ctx context.Context, r rollout.Replica) error {
		called <- r
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	w.ensure("dep", 1, 1)
	w.untilReady("dep", 1)
	w.ensure("dep", 0, 0)
	victim := w.receive(called)
	w.ensure("dep", 1, 1)
	st := w.until("dep", "another ready", func(st rollout.FleetStatus) bool { return st.Ready == 1 })
	require.Equal(t, rollout.ReplicaDraining, state(st, victim.ID))
	require.Len(t, st.Replicas, 2)
	close(release)
	st = w.untilReady("dep", 1)
	require.NotEqual(t, victim.ID, st.Replicas[0].ID)
}

func comesBack(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 1, Backoff: fleet.Backoff{First: 20 * time.Millisecond}})
	w.ensure("dep", 1, 1)
	before := w.untilReady("dep", 1).Replicas[0]
	require.NoError(t, w.Kill(before))
	st := w.until("dep", "restarted and ready", func(st rollout.FleetStatus) bool {
		return st.Ready == 1 && st.Replicas[0].Restarts == 1
	})
	require.Equal(t, before.ID, st.Replicas[0].ID)
	require.Empty(t, st.Replicas[0].Message)
	require.Zero(t, w.free())
}

func countsFailures(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 3, Backoff: fleet.Backoff{First: 20 * time.Millisecond}})
	w.ensure("dep", 1, 3)
	w.wish("dep", 2)
	st := w.untilReady("dep", 2)
	require.Zero(t, st.Failures)
	for n := 1; n <= 2; n++ {
		require.NoError(t, w.Kill(st.Replicas[0]))
		st = w.until("dep", "restarted and ready", func(st rollout.FleetStatus) bool {
			return st.Ready == 2 && st.Replicas[0].Restarts == n
		})
		require.Equal(t, n, st.Failures)
		require.NotEmpty(t, st.LastFailure)
	}
	w.ensure("dep", 1, 1) // one that is told to end has not failed
	require.Equal(t, 2, w.untilReady("dep", 1).Failures)
}

func clamps(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 9})
	w.ensure("dep", 2, 4)
	desired := func() int { return w.see("dep").Desired }
	require.Equal(t, 2, desired())
	w.wish("dep", 99)
	require.Equal(t, 4, desired())
	w.wish("dep", -1)
	require.Equal(t, 2, desired())
	w.wish("dep", 3)
	w.ensure("dep", 1, 4)
	require.Equal(t, 3, desired(), "a lowered floor keeps what the autoscaler wants")
	w.ensure("dep", 4, 4)
	require.Equal(t, 4, desired())
	w.ensure("dep", 1, 2)
	require.Equal(t, 2, desired())
	require.ErrorIs(t, w.Fleet.SetDesired(t.Context(), "nobody", 1), fleet.ErrUnknownDeployment)
}

func keepsServing(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 2})
	w.ensure("dep", 1, 2)
	before := w.untilReady("dep", 1)
	require.NoError(t, w.Fleet.Ensure(t.Context(), workload("dep", s.Hangs, 2, 2)))
	st := w.see("dep")
	require.Equal(t, before.Replicas[0], st.Replicas[0])
	require.Equal(t, rollout.ReplicaStarting, st.Replicas[1].State)
	require.Equal(t, 1, st.Ready)
}

func removes(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 2})
	w.ensure("dep", 2, 2)
	old := w.untilReady("dep", 2)
	require.NoError(t, w.Fleet.Remove(t.Context(), "dep"))
	require.NoError(t, w.Fleet.Remove(t.Context(), "dep"))
	require.NoError(t, w.Fleet.Remove(t.Context(), "nobody"))
	require.ErrorIs(t, w.Fleet.SetDesired(t.Context(), "dep", 1), fleet.ErrUnknownDeployment)
	w.untilReady("dep", 0)
	require.Equal(t, 2, w.free())
	w.ensure("dep", 1, 2)
	st := w.untilReady("dep", 1)
	require.Equal(t, 1, st.Desired, "nothing is left of the earlier wish")
	require.NotContains(t, ids(old), st.Replicas[0].ID)
}

func refuses(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 2})
	for _, bad := range []rollout.Workload{
		workload("", s.Quick, 1, 1),
		workload("dep", s.Quick, 2, 1),
		workload("dep", s.Quick, -1, 1),
	} {
		require.Error(t, w.Fleet.Ensure(t.Context(), bad))
	}
	require.Empty(t, w.see("dep").Replicas)
}

func unsubscribes(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 2})
	heard := make(chan string, 100)
	cancel := w.Fleet.Subscribe(func(d string) { heard <- d })
	w.ensure("dep", 1, 1)
	require.Equal(t, "dep", <-heard)
	w.untilReady("dep", 1)
	cancel()
	cancel()
	w.ensure("late", 1, 1)
	w.untilReady("late", 1)
	for range len(heard) {
		require.Equal(t, "dep", <-heard)
	}
}

func closes(t *testing.T, s Suite) {
	w := s.begin(t, Options{Capacity: 1})
	w.ensure("dep", 1, 1)
	w.untilReady("dep", 1)
	require.NoError(t, w.Fleet.Close(t.Context()))
	require.ErrorIs(t, w.Fleet.Ensure(t.Context(), workload("dep", s.Quick, 1, 1)), fleet.ErrClosed)
	require.ErrorIs(t, w.Fleet.Remove(t.Context(), "dep"), fleet.ErrClosed)
	_, err := w.Fleet.Observe(t.Context(), "dep")
	require.ErrorIs(t, err, fleet.ErrClosed)
	_, err = w.Fleet.Hardware(t.Context())
	require.ErrorIs(t, err, fleet.ErrClosed)
}
