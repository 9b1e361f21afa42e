package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// soaks is a step that soaks with two target replicas, of which it needs one.
func soaks(t *testing.T) (see func(failures, ready int) Decision) {
	t.Helper()
	w, r := gateStep(t, 0)
	r.Phase, r.PhaseSince = PhaseSoaking, epoch
	return func(failures, ready int) Decision {
		w.now = w.now.Add(time.Second)
		o := Observed{Source: w.source.observed(), Target: w.target.observed(), Split: Split{Held: true, Percent: 10}}
		o.Target.Bounds, o.Target.Desired, o.Target.Ready = Bounds{Min: 2, Max: 2}, 2, ready
		o.Target.Failures, o.Target.LastFailure = failures, "exit status 1"
		d := Decide(r, o, w.now)
		r = d.Rollout
		return d
	}
}

// A fleet that began anew with the engine counts from nought: what the record has stays,
// and what went back is no failure.
func TestAFleetThatCountsAnewIsNoFailure(t *testing.T) {
	see := soaks(t)
	see(7, 2)
	see(8, 1)
	require.Equal(t, 1, see(8, 2).Rollout.Steps[0].Health.Occasions)
	require.Equal(t, 1, see(0, 2).Rollout.Steps[0].Health.Occasions)
	d := see(3, 2) // died and was back between two looks
	assert.Equal(t, 2, d.Rollout.Steps[0].Health.Occasions)
	assert.Equal(t, Stabilizing, d.Rollout.State)
	d = see(4, 1)
	assert.Equal(t, SystemPaused, d.Rollout.State)
	assert.Equal(t, HealthRegression, d.Rollout.Condition.Category)
	assert.Contains(t, d.Rollout.Condition.Message, "exit status 1")
	assert.True(t, d.Rollout.RetryAt.IsZero())
}

// A target that never answers in full is one occasion, however many of its replicas die.
func TestATargetThatIsNotWholeAgainFailsOnce(t *testing.T) {
	see := soaks(t)
	see(0, 2)
	for failures := 1; failures <= 9; failures++ {
		d := see(failures, 1)
		require.Equal(t, 1, d.Rollout.Steps[0].Health.Occasions)
		require.Equal(t, Stabilizing, d.Rollout.State)
	}
}

// Nothing is written while nothing changes, and nothing any more once it is parked.
func TestHealthIsWrittenOnlyWhenItChanges(t *testing.T) {
	see := soaks(t)
	require.True(t, see(5, 2).Changed)
	require.False(t, see(5, 2).Changed)
	for failures := 6; failures <= 8; failures++ {
		see(failures, 1)
		see(failures, 2)
	}
	for failures := 9; failures <= 12; failures++ {
		require.False(t, see(failures, 1).Changed)
		require.False(t, see(failures, 2).Changed)
	}
}
