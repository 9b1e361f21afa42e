package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// queued is a runner at an instant with n rollouts that stood open at its start.
func queued(n int, now time.Time) (*runner, []rollout.Rollout) {
	open := make([]rollout.Rollout, n)
	for i := range open {
		open[i] = rollout.Rollout{ID: fmt.Sprintf("rol_%d", i), State: rollout.Running}
	}
	r := newRunner(New(Config{Poll: 5 * time.Second, Now: func() time.Time { return now }}))
	r.takeUp(open)
	return r, open
}

func TestFewRolloutsAreLookedAtAfterOnePoll(t *testing.T) {
	now := time.Date(2026, 9, 16, 12, 0, 0, 7, time.UTC)
	for _, n := range []int{0, 1, 2000} {
		r, _ := queued(n, now)
		require.Equal(t, now.Add(5*time.Second), r.poll("rol_0", now), n)
	}
}

func TestManyRolloutsAreLookedAtAtABoundedRateEachInItsTurn(t *testing.T) {
	now := time.Date(2026, 9, 16, 12, 0, 0, 7, time.UTC)
	r, open := queued(10_000, now)
	var inSecond [26]int
	for _, ro := range open {
		next := r.poll(ro.ID, now)
		require.True(t, next.After(now))
		require.LessOrEqual(t, next.Sub(now), 25*time.Second, "the bound within which a lost notice is noticed")
		inSecond[next.Sub(now)/time.Second]++
		require.Equal(t, next.Add(25*time.Second), r.poll(ro.ID, next), "and so on")
	}
	for second, n := range inSecond[:25] {
		require.InDelta(t, pollsPerSecond, n, 100, "second %d", second)
	}
}

func TestAControlDoesNotWaitBehindWhatAStartTakesUp(t *testing.T) {
	now := time.Date(2026, 9, 16, 12, 0, 0, 0, time.UTC)
	r, open := queued(1000, now)
	open[700].State = rollout.Cancelling // stored before the crash
	r.takeUp(open[700:701])
	first, _ := r.take(now)
	require.Equal(t, open[700].ID, first)
	r.poke(open[900].ID)
	second, _ := r.take(now)
	require.Equal(t, open[900].ID, second)
	require.Equal(t, Workload{Waiting: 998, Unseen: 1000}, r.workload())
	r.done(first, time.Time{}, nil)
	require.Equal(t, Workload{Waiting: 998, Unseen: 999, Turns: 1}, r.workload())
	for range 998 {
		id, wait := r.take(now)
		require.NotEmpty(t, id, "all others are due too")
		require.Zero(t, wait)
	}
}
