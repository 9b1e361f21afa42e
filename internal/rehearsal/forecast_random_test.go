package rehearsal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// drawnPlan is any plan that facts could tell.
func drawnPlan(t *rapid.T) Plan {
	source := rapid.IntRange(1, 9).Draw(t, "source")
	p := Plan{
		Address: "sluice_rollout.r", Endpoint: "chat", Timings: rollout.DefaultTimings(),
		Rate: rapid.SampledFrom([]float64{0, 0.05, 0.5, 5, 300}).Draw(t, "rate"),
		Spec: rollout.Spec{Source: "a", Target: "b", Strategy: rapid.SampledFrom([]rollout.Strategy{rollout.Canary, rollout.BlueGreen, rollout.Rolling}).Draw(t, "strategy")},
	}
	party := func(name string, n int) Party {
		return Party{
			Name: name, Replicas: n, Bounds: rollout.Bounds{Min: n, Max: n + rapid.IntRange(0, 3).Draw(t, "headroom")},
			ColdStart: Curve{}, Drain: time.Duration(rapid.IntRange(0, 20).Draw(t, "drain")) * time.Second,
			Pool: Pool{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "pool"), Free: rapid.SampledFrom([]int{-1, -1, 0, 2, 20}).Draw(t, "free"), GPUs: rapid.SampledFrom([]int{1, 8}).Draw(t, "gpus")},
		}
	}
	p.Source, p.Target = party("a", source), party("b", 0)
	p.Target.Bounds = rollout.Bounds{}
	p.Source.Share = 100
	if rapid.Bool().Draw(t, "frozen pair") {
		p.Target = party("b", rapid.IntRange(1, 9).Draw(t, "target"))
		p.Target.Share = rapid.IntRange(1, 60).Draw(t, "share")
		p.Source.Share = 100 - p.Target.Share
	}
	for _, side := range []*Party{&p.Source, &p.Target} {
		side.ColdStart, _ = ParseCurve(rapid.SampledFrom([]string{"1s", "2m", "lognormal(3m,0.5)", "uniform(1s,15m)"}).Draw(t, "cold start"))
		side.Model = Model{Factor: 1, ErrorRate: rapid.SampledFrom([]float64{0, 0.01, 1}).Draw(t, "errors")}
		side.Model.Latency, _ = ParseCurve(rapid.SampledFrom([]string{"500ms", "lognormal(500ms,0.4)", "p50=900ms p99=3s"}).Draw(t, "latency"))
	}
	if p.Spec.Strategy == rollout.Canary {
		p.Spec.Rules = rapid.SampledFrom([][]rollout.Rule{nil, {
			{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 95, Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 25}},
		}, {
			{Metric: rollout.RouterErrorRate, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 0.05}},
			{Metric: rollout.InflightRequests, Window: time.Minute, Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 100}},
		}}).Draw(t, "rules")
	}
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		text := rapid.SampledFrom([]string{
			"replica-death", "replica-death=source", "cold-start-stuck", "cold-start-slow=7m", "capacity=0", "capacity=1", "metrics-gap", "idle", "idle@step1",
			"slow-target=+50%", "target-errors=5%", "router-refuses", "crash",
		}).Draw(t, "fault")
		f, err := ParseFault(text)
		require.NoError(t, err)
		p.Faults = append(p.Faults, f)
	}
	return p
}

// Whatever is rehearsed: no guarantee is broken, the play ends at its end or at a park,
// and its timeline has no hole and no overlap.
func TestRandomPlansHaveAWholeTimeline(t *testing.T) {
	d := disk(t)
	states := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawnPlan(t)
		f, err := NewForecast(t.Context(), p, rapid.Uint64().Draw(t, "seed"), d)
		if err != nil {
			require.ErrorContains(t, err, "the engine refuses this rollout")
			states["refused"]++
			return
		}
		states[f.State]++
		require.Contains(t, []string{"COMPLETED", "SYSTEM_PAUSED"}, f.State)
		require.Equal(t, f.State == "SYSTEM_PAUSED", f.Parked != nil)
		require.NotEmpty(t, f.Steps)
		at := f.Steps[0].From
		require.Zero(t, at)
		for i, st := range f.Steps {
			require.Equal(t, i+1, st.Step)
			require.Equal(t, at, st.From)
			for _, part := range st.Parts {
				require.Equal(t, at, part.From, "%s of step %d", part.Part, st.Step)
				require.GreaterOrEqual(t, part.To, part.From)
				at = part.To
			}
			require.Equal(t, at, st.To)
		}
		require.Equal(t, f.Took, at)
		if f.Parked != nil {
			last := f.Steps[len(f.Steps)-1]
			require.Equal(t, f.Parked.Step, last.Step)
			require.True(t, last.Parts[len(last.Parts)-1].Parked)
		}
		total := f.Traffic.Source + f.Traffic.Target + f.Traffic.Lost
		require.LessOrEqual(t, float64(total), p.Rate*time.Duration(f.Took).Seconds()+2)
		require.GreaterOrEqual(t, f.PeakReplicas, p.Source.Replicas+p.Target.Replicas)
	})
	t.Log(fmt.Sprint(states))
}
