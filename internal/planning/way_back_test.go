package planning

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func signed(s rollout.Spec) rollout.Spec {
	s.Breaker = &rollout.Breaker{SignedBy: "ana", Rules: []rollout.Rule{{Metric: rollout.RouterErrorRate, Window: time.Minute, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 0.05}}}}
	return s
}

func find(t *testing.T, j Journey, c Code) Finding {
	t.Helper()
	for _, f := range j.Findings {
		if f.Code == c {
			return f
		}
	}
	t.Fatalf("no %s in %v", c, j.Findings)
	return Finding{}
}

// What a held source costs stands in the plan: the counts of each step, the peak, and the
// replicas that it adds.
func TestAHeldSourceIsPlannedWithWhatItCosts(t *testing.T) {
	s := rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Canary, Steps: []rollout.StepSpec{{Percent: 50}, {Percent: 100}}, HoldSource: true}
	basis := rollout.Basis{SourceReplicas: 4, SourceBounds: rollout.Bounds{Min: 4, Max: 4}}
	j := NewJourney(s, Known{Basis: &basis}, rollout.DefaultTimings())
	require.Equal(t, []int{4, 0}, []int{*j.Steps[0].SourceReplicas, *j.Steps[1].SourceReplicas})
	require.Equal(t, 8, *j.Totals.PeakReplicas)
	require.True(t, j.Totals.HoldsSource)
	require.Contains(t, find(t, j, SourceHeld).Message, "8 of both sides at the peak, 2 more than without")
	require.Contains(t, find(t, NewJourney(s, Known{}, rollout.DefaultTimings()), SourceHeld).Message, "both sides run in full at the last step")
}

// A breaker lengthens the steps of any strategy until it has seen them, is told with who
// signed it, and says what it does not take back on a frozen pair.
func TestACircuitBreakerIsPlannedWithItsSigner(t *testing.T) {
	s := signed(rollout.Spec{Source: "a", Target: "b", Strategy: rollout.BlueGreen})
	basis := rollout.Basis{SourceReplicas: 4, TargetReplicas: 1, Seed: 20, SourceBounds: rollout.Bounds{Min: 4, Max: 4}}
	j := NewJourney(s, Known{Basis: &basis}, rollout.DefaultTimings())
	require.Equal(t, "ana", j.Totals.BreakerSignedBy)
	require.Equal(t, []BreakerRule{{Text: "router_error_rate average below 0.05 over 1m", Window: time.Minute, SamplesNeeded: 20, Every: 15 * time.Second}}, j.Breaker)
	require.Equal(t, 165*time.Second, j.Totals.Soak)
	require.Contains(t, find(t, j, SoakGrown).Message, "2m45s instead of 30s")
	require.Contains(t, find(t, j, BreakerKeepsSeed).Message, "20 %")
}

// A breaker holds the source anyway: saying so beside it is the same spec.
func TestHoldingTheSourceBesideABreakerIsTheSameSpec(t *testing.T) {
	s := signed(rollout.Spec{Source: "a", Target: "b", Strategy: rollout.BlueGreen})
	held := s
	held.HoldSource = true
	require.Equal(t, Digest(s), Digest(held))
	require.NotEqual(t, Digest(s), Digest(s.WithoutWayBack()))
}
