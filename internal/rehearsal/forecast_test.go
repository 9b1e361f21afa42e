package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// demonstrated is the plan of an example folder.
func demonstrated(t *testing.T, folder string) (Plan, Facts, []string) {
	t.Helper()
	set, found := declaration.Load(folder, declaration.Options{})
	require.NoError(t, found.Err())
	text, err := os.ReadFile(folder + "/facts.yaml")
	require.NoError(t, err)
	f, err := ParseFacts(text)
	require.NoError(t, err)
	f.From = "facts.yaml"
	require.Len(t, set.Rollouts, 1)
	p, assumed, err := PlanOf(set, set.Rollouts[0], f)
	require.NoError(t, err)
	return p, f, assumed
}

const demoFolder = "../../examples/rehearse"

func faulted(t *testing.T, p Plan, faults ...string) Plan {
	t.Helper()
	for _, text := range faults {
		f, err := ParseFault(text)
		require.NoError(t, err)
		p.Faults = append(p.Faults, f)
	}
	return p
}

func foretold(t *testing.T, p Plan, seed uint64) Forecast {
	t.Helper()
	f, err := NewForecast(t.Context(), p, seed, disk(t))
	require.NoError(t, err)
	return f
}

// part finds the first part of a name in a step.
func (f Forecast) part(t *testing.T, step int, name string) PartTimes {
	t.Helper()
	for _, st := range f.Steps {
		for _, p := range st.Parts {
			if st.Step == step && p.Part == name {
				return p
			}
		}
	}
	require.FailNow(t, "no such part", "%s of step %d", name, step)
	return PartTimes{}
}

// The published run: 10 % at +3:57, parked at +11:00 on a p95 of 1740 against 734 ms,
// and back in under six minutes.
func TestTheDemoOfTheSeedKeepsItsPublishedClock(t *testing.T) {
	p, _, assumed := demonstrated(t, demoFolder)
	require.Empty(t, assumed)
	f := foretold(t, p, 1)
	within := func(want, got time.Duration) { t.Helper(); assert.LessOrEqual(t, (want - got).Abs(), time.Second, got) }
	within(3*time.Minute+57*time.Second, time.Duration(f.part(t, 1, "shift").From))
	within(11*time.Minute, time.Duration(f.Took))
	require.NotNil(t, f.Parked)
	assert.Equal(t, "METRIC_REGRESSION", f.Parked.Category)
	assert.Equal(t, 1, f.Parked.Step)
	assert.Zero(t, f.Traffic.Lost)
	assert.Equal(t, 2, f.PeakGPUs)

	back, _, assumed := demonstrated(t, demoFolder+"/reverse")
	require.Empty(t, assumed)
	r := foretold(t, back, 1)
	assert.Equal(t, "COMPLETED", r.State)
	assert.Less(t, time.Duration(r.Took), 6*time.Minute)
	assert.Zero(t, r.Traffic.Lost)
}

func printed(t *testing.T, p Plan, facts Facts, assumed []string, seed uint64, faults ...string) string {
	t.Helper()
	p = faulted(t, p, faults...)
	var b bytes.Buffer
	r := NewReport(p, foretold(t, p, seed), nil)
	r.Facts, r.Assumed, r.Faults = facts.From, assumed, faults
	require.NoError(t, r.Write(&b, render.Options{}))
	return b.String()
}

// golden compares text with a file; -update rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/forecast/" + name + ".txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata/forecast", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestAReportReadsAsTheFilesHaveIt(t *testing.T) {
	p, f, a := demonstrated(t, demoFolder)
	golden(t, "demo", printed(t, p, f, a, 1))
	data, err := json.MarshalIndent(NewReport(p, foretold(t, p, 1), nil), "", "  ")
	require.NoError(t, err)
	golden(t, "demo-json", string(data)+"\n")
	golden(t, "crash-and-completion", printed(t, p, f, a, 3, "slow-target=-60%", "crash@step2"))
	golden(t, "target-dies", printed(t, p, f, a, 3, "slow-target=-60%", "replica-death@step2"))
	thin := p
	thin.Rate = 0.5
	golden(t, "thin-traffic", printed(t, thin, f, a, 1))
	p, f, a = demonstrated(t, demoFolder+"/reverse")
	golden(t, "reverse", printed(t, p, f, a, 1))
}

func TestFaultsEndAsDocumented(t *testing.T) {
	demo, _, _ := demonstrated(t, demoFolder)
	fast := faulted(t, demo, "slow-target=-60%")
	for text, want := range map[string]string{
		"replica-death":        "UNDER_SERVED 1",
		"replica-death@step2":  "UNDER_SERVED 2",
		"replica-death=source": "UNDER_SERVED 1",
		"cold-start-stuck":     "TARGET_NOT_READY 1",
		"cold-start-slow=40m":  "TARGET_NOT_READY 1",
		"cold-start-slow=9m":   "COMPLETED",
		"capacity=0":           "CAPACITY_EXHAUSTED 1",
		"capacity=1@step1":     "COMPLETED",
		"metrics-gap":          "METRICS_UNAVAILABLE 1",
		"metrics-gap@step2":    "METRICS_UNAVAILABLE 2",
		"idle":                 "COMPLETED",
		"idle@step2":           "COMPLETED",
		"slow-target=+100%":    "METRIC_REGRESSION 1",
		"target-errors=50%":    "COMPLETED", // no rule looks at errors
		"router-refuses":       "ROUTING_ERROR 1",
		"router-refuses@step3": "ROUTING_ERROR 3",
		"crash":                "COMPLETED",
		"crash@step3":          "COMPLETED",
		"capacity=0@step2":     "COMPLETED", // no step after the first adds one
	} {
		t.Run(text, func(t *testing.T) {
			f := foretold(t, faulted(t, fast, text), 3)
			got := f.State
			if f.Parked != nil {
				got = fmt.Sprintf("%s %d", f.Parked.Category, f.Parked.Step)
			}
			assert.Equal(t, want, got)
			assert.Equal(t, strings.HasPrefix(text, "crash"), f.Crashes == 1)
			assert.Zero(t, f.Traffic.Lost)
		})
	}
}

// More than one replica: the second step has to find room that is gone by then. On a pool
// of its own the target gets as far as its one replica serves.
func TestCapacityThatIsGoneAtALaterStepParksThere(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p.Source.Replicas, p.Source.Bounds, p.Target.Pool.Free = 4, rollout.Bounds{Min: 4, Max: 4}, -1
	p.Source.Pool.Name, p.Source.Pool.Free = "1xa100", -1
	f := foretold(t, faulted(t, p, "slow-target=-60%", "capacity=0@step2"), 3)
	require.NotNil(t, f.Parked)
	assert.Equal(t, "CAPACITY_EXHAUSTED 2", fmt.Sprintf("%s %d", f.Parked.Category, f.Parked.Step))
	assert.Contains(t, f.Parked.Message, "1xh100")
	assert.Contains(t, f.Parked.Message, "the split stays at 25%")
	assert.Equal(t, 5, f.PeakGPUs)
}

// The same on one pool: what the source gives back at a part of the share makes the room.
func TestCapacityThatIsGoneAtALaterStepIsMadeByTheSource(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p.Source.Replicas, p.Source.Bounds, p.Target.Pool.Free = 4, rollout.Bounds{Min: 4, Max: 4}, -1
	p.Source.Pool.Free = -1
	f := foretold(t, faulted(t, p, "slow-target=-60%", "capacity=0@step2"), 3)
	assert.Nil(t, f.Parked)
	assert.Equal(t, "COMPLETED", f.State)
	assert.Equal(t, 5, f.PeakGPUs)
}

// The source's only replica dies while the target starts: until one of them answers,
// nothing does.
func TestRequestsAreLostWhileNothingAnswers(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p = faulted(t, p, "slow-target=-60%")
	s, err := newStage(t.Context(), p, 1, disk(t))
	require.NoError(t, err)
	s.in(rollout.PhaseScaling, 1, 10*time.Second, "the source dies", func(w *World) { w.kill(w.source, 1) })
	require.NoError(t, s.play())
	require.NoError(t, s.w.close())
	f := s.forecast()
	shift := time.Duration(f.part(t, 1, "shift").From)
	assert.InDelta(t, 5*(shift-10*time.Second).Seconds(), float64(f.Traffic.Lost), 5)
}

func TestOneSeedIsOneForecast(t *testing.T) {
	p, facts, a := demonstrated(t, demoFolder)
	p = faulted(t, p, "slow-target=-50%")
	p.Source.ColdStart, p.Target.ColdStart = curve(t, "lognormal(4m,0.2)"), curve(t, "lognormal(4m,0.2)")
	require.Equal(t, printed(t, p, facts, a, 7), printed(t, p, facts, a, 7))
	require.NotEqual(t, printed(t, p, facts, a, 7), printed(t, p, facts, a, 8))
	one, err := NewOutlook(t.Context(), p, 1, 40, disk(t))
	require.NoError(t, err)
	two, err := NewOutlook(t.Context(), p, 1, 40, disk(t))
	require.NoError(t, err)
	require.Equal(t, one, two)
	require.Positive(t, one.Completed)
	require.NotEmpty(t, one.Parks, "a p95 16 % above with a budget of 25 % is a matter of luck at 10 % of 5/s")
	require.Less(t, one.Took.Min, one.Took.Max)
	sum := one.Completed
	for _, c := range one.Parks {
		sum += c.Runs
		f := foretold(t, p, c.Seed)
		require.Equal(t, c.Category, f.Parked.Category)
		require.Equal(t, c.Step, f.Parked.Step)
	}
	require.Equal(t, 40, sum)
}

func curve(t *testing.T, text string) Curve {
	t.Helper()
	c, err := ParseCurve(text)
	require.NoError(t, err)
	return c
}

// "At 5 % of 2 requests a second the p99 gate needs 16m40s; your window is 5m": what is
// said of too little traffic is what the engine then does.
func TestTheSmallestTrafficOfAGateIsWhereItBeginsToJudge(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p = faulted(t, p, "slow-target=-80%")
	p.Spec.Steps = []rollout.StepSpec{{Percent: 5}, {Percent: 100}}
	p.Spec.Rules[0].Percentile = 99
	p.Rate = 2
	f := foretold(t, p, 1)
	needs := p.Needs(f)
	require.Len(t, needs, 1, "at 100 % a regression judges nothing")
	require.Equal(t, planning.TooFew, needs[0].Verdict)
	require.Equal(t, "step 1: at 5 % of 2 requests a second the router_latency p99 gate needs 16m40s; your window is 5m: it will park METRICS_UNAVAILABLE", needs[0].Text(2))
	require.Equal(t, "METRICS_UNAVAILABLE", f.Parked.Category)
	require.InDelta(t, 6.67, needs[0].Average, 0.01)

	unavailable := func(rate float64) float64 {
		p.Rate = rate
		o, err := NewOutlook(t.Context(), p, 1, 60, disk(t))
		require.NoError(t, err)
		share := 0.0
		for _, c := range o.Parks {
			if c.Category == "METRICS_UNAVAILABLE" {
				share += c.Share
			}
		}
		return share
	}
	require.InDelta(t, 0.05, unavailable(needs[0].Sure), 0.09)
	require.InDelta(t, 0.5, unavailable(needs[0].Average), 0.2)
}

func TestEveryRuleReadsTheModels(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p.Rate = 200
	p.Target.Model = Model{Latency: curve(t, "lognormal(448ms,0.3)"), Factor: 1, ErrorRate: 0.05}
	limit := func(m rollout.Metric, v float64) rollout.Rule {
		return rollout.Rule{Metric: m, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: v}}
	}
	average := limit(rollout.RouterLatency, 400)
	average.Stat = rollout.StatAvg
	for name, c := range map[string]struct {
		rule   rollout.Rule
		target float64
		delta  float64
	}{
		"errors":   {limit(rollout.RouterErrorRate, 0.01), 0.05, 0.01},
		"average":  {average, 469, 15},
		"inflight": {limit(rollout.InflightRequests, 1), 20 * 0.469, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			p.Spec.Rules = []rollout.Rule{c.rule}
			f := foretold(t, p, 1)
			require.NotNil(t, f.Parked)
			require.Equal(t, "METRIC_REGRESSION", f.Parked.Category)
			require.InDelta(t, c.target, *f.record.Condition.Rows[0].TargetValue, c.delta)
		})
	}
}

func TestARefusedRolloutSaysWhy(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p.Target.Replicas, p.Target.Bounds, p.Target.Share, p.Source.Share = 1, rollout.Bounds{Min: 1, Max: 1}, 30, 70
	_, err := NewForecast(t.Context(), p, 1, disk(t))
	require.ErrorContains(t, err, "the first step asks for 10 %, but the target already carries 30 %")
	p, _, _ = demonstrated(t, demoFolder)
	_, err = NewForecast(t.Context(), faulted(t, p, "replica-death@step9"), 1, disk(t))
	require.ErrorContains(t, err, "fault replica-death@step9: the rollout has 3 steps")
	f := foretold(t, faulted(t, p, "replica-death@step2"), 1)
	require.Equal(t, []string{"a replica dies in step 2"}, f.NotPlayed, "it parks at step 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = NewForecast(ctx, p, 1, disk(t))
	require.ErrorIs(t, err, context.Canceled)
}

func TestStrategiesPlayToTheirEnd(t *testing.T) {
	p, _, _ := demonstrated(t, demoFolder)
	p.Source.Replicas, p.Source.Bounds = 5, rollout.Bounds{Min: 5, Max: 8}
	p.Source.Pool.Free, p.Target.Pool.Free = -1, -1
	p.Spec.Rules, p.Spec.Steps = nil, nil
	for s, steps := range map[rollout.Strategy]int{rollout.Canary: 4, rollout.BlueGreen: 1, rollout.Rolling: 5} {
		p.Spec.Strategy = s
		f := foretold(t, p, 1)
		assert.Equal(t, "COMPLETED", f.State, s)
		assert.Len(t, f.Steps, steps, s)
		assert.Zero(t, f.Traffic.Lost)
		last := f.Steps[len(f.Steps)-1]
		assert.Equal(t, []int{0, 5}, []int{last.Source, last.Target}, s)
	}
}
