package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A replica dies while a rollout is parked for its readings, the engine stores a lower
// split to hold, and a person resumes before the routers have it. The lower split that
// comes then is the engine's own: the step is done again, and nobody is blamed for an edit.
func TestAResumeOvertakesTheSplitToHold(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := Spec{Source: "a", Target: "b", Strategy: Canary}
	timings := DefaultTimings()
	j, problems := NewJourney(spec, Basis{SourceReplicas: 2, SourceBounds: Bounds{Min: 2, Max: 2}}, timings)
	require.Empty(t, problems)
	r, _ := New("rol_1", "proj", "ep", spec, j, timings, now)
	r, _, err := r.Start(now)
	require.NoError(t, err)
	r.State, r.Phase, r.Percent, r.Hold = SystemPaused, PhaseGating, 5, ptr(0)
	r.Condition = &Condition{Category: MetricsUnavailable}

	r, _, err = r.Resume("ana", now)
	require.NoError(t, err)
	require.Equal(t, PhaseChecking, r.Phase)
	d := Decide(r, Observed{Split: Split{Held: true, Percent: 0, Generation: 7}, Capacity: Capacity{Free: -1}}, now)
	require.Equal(t, Running, d.Rollout.State)
	require.Zero(t, d.Rollout.Percent)
	require.Nil(t, d.Rollout.Condition)
}
