package planning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func demo() rollout.Spec {
	return rollout.Spec{
		Source: "dep_a", Target: "dep_b", Strategy: rollout.Canary,
		Steps: []rollout.StepSpec{{Percent: 10}, {Percent: 50}, {Percent: 100}},
		Rules: []rollout.Rule{{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 95, Window: 300 * time.Second,
			Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 25}}},
	}
}

func codes(j Journey) []Code {
	var out []Code
	for _, f := range j.Findings {
		out = append(out, f.Code)
	}
	return out
}

func TestDemoCanaryFromItsDeclarationAlone(t *testing.T) {
	j := NewJourney(demo(), Known{}, rollout.DefaultTimings())
	require.Len(t, j.Steps, 3)
	require.Equal(t, []int{10, 40, 50}, []int{j.Steps[0].DeltaPercent, j.Steps[1].DeltaPercent, j.Steps[2].DeltaPercent})
	require.Equal(t, 390*time.Second, j.Steps[0].Wait)
	require.Equal(t, 180*time.Second, j.Steps[0].AskedWait)
	require.Contains(t, j.Steps[0].WaitReason, "grown from 3m")
	require.Nil(t, j.Steps[0].TargetReplicas, "the count depends on the source and is not guessed")
	require.Nil(t, j.Totals.PeakReplicas)
	require.Equal(t, 3*(30+390+3)*time.Second, j.Totals.LeastDuration)
	require.Equal(t, 10, j.Totals.UngatedPercent)
	require.Equal(t, []Code{SoakGrown, GateLowSamplesNote, LastStepUngated, UngatedWhenIdle}, codes(j))
	require.Equal(t, 20, j.Gates[0].SamplesNeeded)
	require.InDelta(t, 0.667, j.Gates[0].RequestsPerSecond, 0.001, "20 requests in 300 s at 10 % of the pair")
	require.Equal(t, 1, j.Gates[0].BusiestStep)
	require.Contains(t, j.Findings[1].Message, "0.67 requests a second")
}

func TestDemoCanaryOnWhatStands(t *testing.T) {
	basis := &rollout.Basis{SourceReplicas: 4, SourceBounds: rollout.Bounds{Min: 4, Max: 4}}
	j := NewJourney(demo(), Known{Basis: basis}, rollout.DefaultTimings())
	require.Equal(t, []int{1, 2, 4}, []int{*j.Steps[0].TargetReplicas, *j.Steps[1].TargetReplicas, *j.Steps[2].TargetReplicas})
	require.Equal(t, []int{4, 2, 0}, []int{*j.Steps[0].SourceReplicas, *j.Steps[1].SourceReplicas, *j.Steps[2].SourceReplicas})
	require.InDelta(t, 0.4, *j.Steps[0].TargetExact, 1e-9)
	require.Equal(t, 6, *j.Totals.PeakReplicas)
}

// A regression is judged against the source, which has no traffic at 100 %: the
// plan says gated only where a rule can judge.
func TestOnlyAThresholdGatesTheLastStep(t *testing.T) {
	gated := func(s rollout.Spec) (out []bool) {
		for _, st := range NewJourney(s, Known{}, rollout.DefaultTimings()).Steps {
			out = append(out, st.Gated)
		}
		return out
	}
	s := demo()
	require.Equal(t, []bool{true, true, false}, gated(s))
	straight := demo()
	straight.Steps = []rollout.StepSpec{{Percent: 100}}
	j := NewJourney(straight, Known{}, rollout.DefaultTimings())
	require.Equal(t, 100, j.Totals.UngatedPercent)
	require.Zero(t, j.Gates[0].RequestsPerSecond, "a rule that judges no step needs no traffic")
	require.Equal(t, []Code{SoakGrown, LastStepUngated, UngatedWhenIdle, FirstStepLarge}, codes(j))

	s.Rules = append(s.Rules, rollout.Rule{Metric: rollout.RouterErrorRate, Stat: rollout.StatAvg, Window: 300 * time.Second,
		Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 0.01}})
	require.Equal(t, []bool{true, true, true}, gated(s))
	require.NotContains(t, codes(NewJourney(s, Known{}, rollout.DefaultTimings())), LastStepUngated)
	s.Rules = nil
	require.Equal(t, []bool{false, false, false}, gated(s))
	require.NotContains(t, codes(NewJourney(s, Known{}, rollout.DefaultTimings())), LastStepUngated, "NO_GATE says it all")
}

// Going back to a deployment that still runs starts nothing. What a step adds is
// told where that is known, and never guessed.
func TestScaleUpIsToldOnlyOnWhatStands(t *testing.T) {
	back := rollout.Spec{Source: "dep_b", Target: "dep_a", Strategy: rollout.BlueGreen, FinalTarget: ptr(1)}
	basis := &rollout.Basis{SourceReplicas: 1, SourceBounds: rollout.Bounds{Min: 1, Max: 1}, TargetReplicas: 1, TargetBounds: rollout.Bounds{Min: 1, Max: 1}, Seed: 90}
	require.Zero(t, *NewJourney(back, Known{Basis: basis}, rollout.DefaultTimings()).Steps[0].ScaleUp)
	j := NewJourney(back, Known{}, rollout.DefaultTimings())
	require.Nil(t, j.Steps[0].ScaleUp)
	require.Equal(t, 1, *j.Totals.LargestScaleUp, "at most")
}

func TestFinalCountMakesTheReplicasKnown(t *testing.T) {
	s := demo()
	s.FinalTarget = ptr(5)
	s.Steps[1].Replicas = ptr(2)
	j := NewJourney(s, Known{}, rollout.DefaultTimings())
	require.Equal(t, []int{1, 2, 5}, []int{*j.Steps[0].TargetReplicas, *j.Steps[1].TargetReplicas, *j.Steps[2].TargetReplicas})
	require.Contains(t, codes(j), StepReplicasBelow)
	require.Equal(t, 3, *j.Totals.LargestScaleUp)
}

func TestRollingOfUnknownSizeHasNoStepCount(t *testing.T) {
	s := rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Rolling}
	j := NewJourney(s, Known{}, rollout.DefaultTimings())
	require.Nil(t, j.Totals.StepCount)
	require.Len(t, j.Steps, 1)
	s.FinalTarget = ptr(3)
	j = NewJourney(s, Known{}, rollout.DefaultTimings())
	require.Equal(t, 3, *j.Totals.StepCount)
	require.Equal(t, []int{33, 66, 100}, []int{j.Steps[0].TrafficPercent, j.Steps[1].TrafficPercent, j.Steps[2].TrafficPercent})
	require.Equal(t, 100, j.Totals.UngatedPercent)
}

func TestEachFindingIsFoundWhereItShould(t *testing.T) {
	quiet := demo()
	quiet.StepInterval = 390 * time.Second
	quiet.Rules[0].Stat, quiet.Rules[0].Percentile = rollout.StatAvg, 0
	require.Equal(t, []Code{LastStepUngated, UngatedWhenIdle}, codes(NewJourney(quiet, Known{}, rollout.DefaultTimings())))
	for code, change := range map[Code]func(*rollout.Spec, *Known){
		NoGate:             func(s *rollout.Spec, _ *Known) { s.Rules = nil },
		SoakGrown:          func(s *rollout.Spec, _ *Known) { s.StepInterval = 60 * time.Second },
		FirstStepLarge:     func(s *rollout.Spec, _ *Known) { s.Steps = s.Steps[1:] },
		GateLowSamplesNote: func(s *rollout.Spec, _ *Known) { s.Rules[0].Stat, s.Rules[0].Percentile = rollout.StatPercentile, 99 },
		BlueGreenFullBlast: func(s *rollout.Spec, _ *Known) { s.Strategy, s.Steps, s.Rules = rollout.BlueGreen, nil, nil },
		StepReplicasBelow:  func(s *rollout.Spec, _ *Known) { s.FinalTarget, s.Steps[1].Replicas = ptr(3), ptr(1) },
		TimeoutShort:       func(_ *rollout.Spec, k *Known) { k.Timeout = 5 * time.Second },
		SurgeLarge:         func(s *rollout.Spec, _ *Known) { s.FinalTarget = ptr(10) },
	} {
		t.Run(string(code), func(t *testing.T) {
			s := demo()
			s.StepInterval = 390 * time.Second
			s.Rules[0].Stat, s.Rules[0].Percentile = rollout.StatAvg, 0
			k := Known{}
			change(&s, &k)
			got := NewJourney(s, k, rollout.DefaultTimings())
			require.Contains(t, codes(got), code)
			for _, f := range got.Findings {
				require.NotEmpty(t, f.Message)
				require.NotEmpty(t, f.Remedy)
				require.NotEmpty(t, f.Subject)
			}
		})
	}
}

func TestEveryCodeHasAPage(t *testing.T) {
	for _, c := range Codes() {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", "findings", string(c)+".md"))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(b), "# "+string(c)+"\n"), c)
		require.Contains(t, string(b), "What to do")
	}
}

func TestDigestNamesTheSpecAndNotHowItIsWritten(t *testing.T) {
	a := api.RolloutSpec{SourceDeploymentID: "a", TargetDeploymentID: "b", Canary: &api.Canary{StepInterval: ptr(api.Duration(600 * time.Second))},
		Metrics: []api.MetricRule{{Name: "router_error_rate", RegressionCheck: &api.RegressionCheck{Direction: "REGRESSION_DIRECTION_HIGHER_IS_WORSE"}}}}
	b := a
	b.Metrics = []api.MetricRule{{Name: "router_error_rate", RegressionCheck: &api.RegressionCheck{Direction: "REGRESSION_DIRECTION_HIGHER_IS_WORSE", MaxRegressionPercent: ptr(0.0)}}}
	b.FinalSourceReplicas = ptr(0)
	b.Sluice = &api.SpecExtra{Origin: "somebody", Digest: "x"}
	require.Equal(t, DigestOf(a), DigestOf(b))
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, DigestOf(a))
	require.Len(t, ShortDigest(DigestOf(a)), 12)
	b.TargetDeploymentID = "c"
	require.NotEqual(t, DigestOf(a), DigestOf(b))
	require.NotEqual(t, IdempotencyKey("ep_1", "d", ""), IdempotencyKey("ep_1", "d", "rol_1"))
}

// TestPlanIsAPureFunction: the same input gives the same plan, what is declared
// and what stands agree wherever both know, and nothing overflows or shrinks.
func TestPlanIsAPureFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := demo()
		final := rapid.IntRange(1, 500).Draw(t, "final")
		s.FinalTarget = &final
		s.Strategy = rapid.SampledFrom([]rollout.Strategy{rollout.Canary, rollout.BlueGreen, rollout.Rolling}).Draw(t, "strategy")
		if s.Strategy != rollout.Canary {
			s.Steps, s.Rules = nil, nil
		}
		declared := NewJourney(s, Known{}, rollout.DefaultTimings())
		require.Equal(t, declared, NewJourney(s, Known{}, rollout.DefaultTimings()))
		n := rapid.IntRange(1, 500).Draw(t, "source")
		live := NewJourney(s, Known{Basis: &rollout.Basis{SourceReplicas: n, SourceBounds: rollout.Bounds{Min: n, Max: n}}}, rollout.DefaultTimings())
		require.Len(t, live.Steps, len(declared.Steps))
		for i := range live.Steps {
			require.Equal(t, *declared.Steps[i].TargetReplicas, *live.Steps[i].TargetReplicas)
			require.Equal(t, declared.Steps[i].TrafficPercent, live.Steps[i].TrafficPercent)
			require.Positive(t, *live.Steps[i].TargetReplicas)
			require.GreaterOrEqual(t, *live.Steps[i].SourceReplicas, 0)
		}
		require.Equal(t, declared.Digest, live.Digest)
		require.Equal(t, 100, live.Steps[len(live.Steps)-1].TrafficPercent)
	})
}

func TestSpansAndRatesReadWell(t *testing.T) {
	for d, want := range map[time.Duration]string{390 * time.Second: "6m30s", time.Hour: "1h", 5 * time.Minute: "5m", 4500 * time.Millisecond: "4.5s", 0: "0s"} {
		require.Equal(t, want, Span(d))
	}
	require.Equal(t, "0.67", rate(2.0/3))
	require.Equal(t, "34", rate(33.3))
	require.Equal(t, "0", rate(0))
}
