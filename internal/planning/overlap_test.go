package planning

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Four replicas move to a target of another machine: the overlap is what both hold
// beyond the four, step by step, with the cold start of each step that starts some.
func TestTheOverlapOfTwoMachinesIsSummedStepByStep(t *testing.T) {
	s := gatedBy(p95(5 * time.Minute))
	s.Steps = []rollout.StepSpec{{Percent: 25}, {Percent: 50}, {Percent: 100}}
	j := NewJourney(s, Known{Basis: &rollout.Basis{SourceReplicas: 4, SourceBounds: rollout.Bounds{Min: 4, Max: 4}}}, rollout.DefaultTimings())
	loads := j.Loads([2]int{4, 0}, [2]Machine{{GPUs: 1, CentsPerHour: 100}, {GPUs: 2, CentsPerHour: 300}}, time.Minute)
	require.Len(t, loads, 3)
	least := j.Steps[0].Least
	require.Equal(t, Load{Replicas: 5, GPUs: 6, ExtraGPUs: 2, ExtraCents: 300, Time: least + time.Minute}, loads[0])
	require.Equal(t, Load{Replicas: 5, GPUs: 7, ExtraGPUs: 3, ExtraCents: 500, Time: least + time.Minute}, loads[1], "one of the source is drained by then")
	require.Equal(t, Load{Replicas: 6, GPUs: 10, ExtraGPUs: 6, ExtraCents: 1000, Time: least + time.Minute}, loads[2])
	o := OverlapOf(loads)
	require.Equal(t, 6, o.PeakReplicas)
	require.Equal(t, 10, o.PeakGPUs)
	require.Equal(t, 6, o.ExtraGPUs)
	hours := (least + time.Minute).Hours()
	require.InDelta(t, 11*hours, o.GPUHours, 1e-9)
	require.InDelta(t, 1800*hours, o.Cents, 1e-9)
	require.Equal(t, j.WithColdStarts(time.Minute), o.Time)

	smaller := j.Loads([2]int{4, 0}, [2]Machine{{GPUs: 8, CentsPerHour: 800}, {GPUs: 1, CentsPerHour: 10}}, 0)
	require.Zero(t, smaller[2].ExtraGPUs, "what is less than stood is no overlap, and nobody is paid for it")
	require.Nil(t, NewJourney(s, Known{}, rollout.DefaultTimings()).Loads([2]int{4, 0}, [2]Machine{}, 0), "counts that are not known are not guessed")
}

func TestSamplesToExpectAreOfTheSmallerShare(t *testing.T) {
	s := gatedBy(p95(time.Minute), rollout.Rule{Metric: rollout.RouterErrorRate, Stat: rollout.StatAvg, Window: time.Minute, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 0.01}})
	got := Forecast(s, []int{10, 75, 100}, rollout.DefaultTimings(), 10)
	require.Len(t, got, 2)
	require.Equal(t, "router_latency p95", got[0].Metric)
	require.InDeltaSlice(t, []float64{60, 150}, []float64{*got[0].Expected[0], *got[0].Expected[1]}, 1e-9)
	require.Nil(t, got[0].Expected[2], "at 100 % a regression judges nothing")
	require.InDelta(t, 600, *got[1].Expected[2], 1e-9, "a threshold does")
	require.True(t, got[0].Enough)
	require.False(t, Forecast(s, []int{10, 75, 100}, rollout.DefaultTimings(), 2)[0].Enough)
	require.False(t, Forecast(s, []int{10, 75, 100}, rollout.DefaultTimings(), 0)[0].Enough, "a gate without traffic is skipped")
}

func TestASummaryIsOneLine(t *testing.T) {
	canary := gatedBy(p95(time.Minute))
	canary.Steps = []rollout.StepSpec{{Percent: 10}, {Percent: 50}, {Percent: 100}}
	two := 2
	sized := canary
	sized.FinalTarget = &two
	long := canary
	long.Steps = nil
	for p := 10; p <= 100; p += 10 {
		long.Steps = append(long.Steps, rollout.StepSpec{Percent: p})
	}
	for want, s := range map[string]rollout.Spec{
		"canary 10 → 50 → 100 %, at least 10m39s, at most 10 % before the first gate":                           canary,
		"canary 10 → 50 → 100 %, at least 10m39s, at most 10 % before the first gate, up to +1 replica at once": sized,
		"canary 10 → 20 → 30 → … → 100 % in 10 steps, at least 35m30s, at most 10 % before the first gate":      long,
		"blue-green 100 %, at least 1m, no metric gate":                                                         {Source: "a", Target: "b", Strategy: rollout.BlueGreen},
		"rolling, one replica up and one down, at least 1m a replica, no metric gate":                           {Source: "a", Target: "b", Strategy: rollout.Rolling},
		"rolling 50 → 100 %, at least 2m, no metric gate, up to +1 replica at once":                             {Source: "a", Target: "b", Strategy: rollout.Rolling, FinalTarget: &two},
	} {
		assert.Equal(t, want, NewJourney(s, Known{}, rollout.DefaultTimings()).Summary())
	}
}
