package planning

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func p95(window time.Duration) rollout.Rule {
	return rollout.Rule{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 95, Window: window, Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 25}}
}

func gatedBy(rules ...rollout.Rule) rollout.Spec {
	return rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Canary, Rules: rules}
}

func TestAThinEndpointIsToldWhatItsGateWants(t *testing.T) {
	found := Traffic(gatedBy(p95(time.Minute)), []int{5, 50, 100}, rollout.DefaultTimings(), 2)
	require.Equal(t, []Finding{{
		Code: GateSamplesShort, Severity: Caution, Subject: "metrics[0].window",
		Message: "at 5 % of 2 requests a second router_latency p95 has its 20 samples in 3m20s, your window is 1m: step 1 would park METRICS_UNAVAILABLE",
		Remedy:  "a window of 5m or a share of 24 % at step 1 would do",
	}}, found)
	require.Empty(t, Traffic(gatedBy(p95(5*time.Minute)), []int{5, 50, 100}, rollout.DefaultTimings(), 2), "and it does")
	require.Empty(t, Traffic(gatedBy(p95(time.Minute)), []int{24, 50, 100}, rollout.DefaultTimings(), 2), "that too")

	found = Traffic(gatedBy(p95(4*time.Minute)), []int{5, 50, 100}, rollout.DefaultTimings(), 2)
	require.Equal(t, "at 5 % of 2 requests a second router_latency p95 has its 20 samples in 3m20s on average, your window is 4m: more than 5 of 100 windows lack some, and step 1 would park METRICS_UNAVAILABLE then", found[0].Message)

	found = Traffic(gatedBy(p95(time.Minute)), []int{50, 95, 100}, rollout.DefaultTimings(), 2)
	require.Contains(t, found[0].Message, "at 5 % of 2 requests a second", "of the source")
	require.Contains(t, found[0].Message, "step 2 would park")
	require.Equal(t, "a window of 5m would do", found[0].Remedy, "a larger share is worse there")

	found = Traffic(gatedBy(p95(time.Minute)), []int{5, 100}, rollout.DefaultTimings(), 0.05)
	require.Equal(t, "it takes about 9.3 requests a second on the pair, or a lower percentile", found[0].Remedy)
}

// A breaker that can never look is no way back, and the one who signed it must know.
func TestABreakerThatCouldNotTripIsTold(t *testing.T) {
	p99 := rollout.Rule{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 99, Window: 5 * time.Minute, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 900}}
	s := rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Canary, Breaker: &rollout.Breaker{SignedBy: "ann", Rules: []rollout.Rule{p99}}}
	ladder := []int{5, 10, 50, 100}
	require.Equal(t, []Finding{{
		Code: BreakerSamplesShort, Severity: Caution, Subject: "sluice.circuitBreaker.rules[0].window",
		Message: "circuit breaker rule 1 (router_latency p99) needs 100 requests to the target in 5m, and at 2 requests a second on the pair it has fewer at steps 1 to 2: it cannot trip there",
		Remedy:  "give the rule a longer window or a lower percentile, or roll out while there is more traffic",
	}}, Traffic(s, ladder, rollout.DefaultTimings(), 2))
	require.Contains(t, Traffic(s, ladder, rollout.DefaultTimings(), 4)[0].Message, "fewer at step 1:")
	require.Contains(t, Traffic(s, ladder, rollout.DefaultTimings(), 0)[0].Message, "fewer at steps 1 to 4:")
	require.Empty(t, Traffic(s, ladder, rollout.DefaultTimings(), 7))
}

func TestWithoutTrafficTheGateIsToldToBeSkipped(t *testing.T) {
	found := Traffic(gatedBy(p95(time.Minute)), []int{5, 100}, rollout.DefaultTimings(), 0)
	require.Len(t, found, 1)
	require.Equal(t, GateNeedsTraffic, found[0].Code)
	require.Empty(t, Traffic(gatedBy(), []int{5, 100}, rollout.DefaultTimings(), 0), "no gate, nothing to skip")
}

func TestEveryTrafficCodeHasAPage(t *testing.T) {
	for _, c := range TrafficCodes() {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", "findings", string(c)+".md"))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(b), "# "+string(c)+"\n"), c)
		require.Contains(t, string(b), "What to do")
	}
}

// What a finding proposes is enough: with the window, or with the share, nothing is found.
func TestWhatAFindingProposesIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := p95(time.Duration(rapid.IntRange(1, 1800).Draw(t, "window")) * time.Second)
		rule.Percentile = rapid.SampledFrom([]int{50, 90, 95, 99}).Draw(t, "percentile")
		if rapid.Bool().Draw(t, "threshold") {
			rule.Regression, rule.Threshold = nil, &rollout.Threshold{Operator: rollout.LT, Value: 1}
		}
		rate := rapid.Float64Range(0.01, 50).Draw(t, "rate")
		percents := []int{rapid.IntRange(1, 49).Draw(t, "first"), 50, 100}
		timings := rollout.DefaultTimings()
		for _, f := range Traffic(gatedBy(rule), percents, timings, rate) {
			window, share := "", ""
			for _, way := range strings.Split(strings.TrimSuffix(f.Remedy, " would do"), " or ") {
				if text, ok := strings.CutPrefix(way, "a window of "); ok {
					window = text
				} else if text, ok := strings.CutPrefix(way, "a share of "); ok {
					share, _, _ = strings.Cut(text, " ")
				}
			}
			if window != "" {
				wider := rule
				var err error
				if wider.Window, err = time.ParseDuration(window); err != nil {
					t.Fatal(err)
				}
				if left := Traffic(gatedBy(wider), percents, timings, rate); len(left) > 0 {
					t.Fatalf("%s: %v", f.Remedy, left)
				}
			}
			if share != "" {
				p := atoi(t, share)
				for _, n := range Needs(gatedBy(rule), []int{p}, timings, rate) {
					if n.Verdict != Enough {
						t.Fatalf("%s: %+v", f.Remedy, n)
					}
				}
			}
		}
	})
}

func atoi(t *rapid.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestColdStartsAreAddedForStepsThatStartReplicas(t *testing.T) {
	basis := &rollout.Basis{SourceReplicas: 3, SourceBounds: rollout.Bounds{Min: 3, Max: 3}}
	s := rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Canary, Steps: []rollout.StepSpec{{Percent: 10}, {Percent: 20}, {Percent: 100}}}
	j := NewJourney(s, Known{Basis: basis}, rollout.DefaultTimings())
	require.Equal(t, []int{1, 0, 2}, []int{*j.Steps[0].ScaleUp, *j.Steps[1].ScaleUp, *j.Steps[2].ScaleUp})
	require.Equal(t, j.Totals.LeastDuration+2*time.Minute, j.WithColdStarts(time.Minute))
	require.Equal(t, []int{10, 20, 100}, j.Percents())
}
