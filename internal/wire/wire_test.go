package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

const demoBody = `{
  "sourceDeploymentId": "dep_a", "targetDeploymentId": "dep_b",
  "canary": {"steps": [{"traffic": 10}, {"traffic": 50, "replicas": 3}, {"traffic": 100}], "stepInterval": "600s"},
  "metrics": [{"name": "router_latency", "stat": "METRIC_STAT_TYPE_PERCENTILE", "percentile": 95,
    "regressionCheck": {"direction": "REGRESSION_DIRECTION_HIGHER_IS_WORSE", "maxRegressionPercent": 10}, "window": "300s"}],
  "finalTargetReplicas": 4
}`

func parse(t *testing.T, body string) api.RolloutSpec {
	t.Helper()
	var s api.RolloutSpec
	require.NoError(t, json.Unmarshal([]byte(body), &s))
	return s
}

func TestPublishedCreateBodyIsUnderstood(t *testing.T) {
	s, problems := Checked(parse(t, demoBody), rollout.DefaultTimings())
	require.Empty(t, problems)
	require.Equal(t, rollout.Spec{
		Source: "dep_a", Target: "dep_b", Strategy: rollout.Canary,
		Steps:        []rollout.StepSpec{{Percent: 10}, {Percent: 50, Replicas: ptr(3)}, {Percent: 100}},
		StepInterval: 600 * time.Second,
		Rules: []rollout.Rule{{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 95, Window: 300 * time.Second,
			Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 10}}},
		FinalTarget: ptr(4),
	}, s)
	back, err := json.Marshal(SpecToAPI(s))
	require.NoError(t, err)
	require.JSONEq(t, demoBody, string(back))
}

func TestEachBadFormIsAProblemAtItsField(t *testing.T) {
	latency := `"name":"router_latency","stat":"METRIC_STAT_TYPE_PERCENTILE","percentile":95`
	regression := `"regressionCheck":{"direction":"REGRESSION_DIRECTION_HIGHER_IS_WORSE"}`
	for name, c := range map[string]struct{ body, field, says string }{
		"two strategies":         {`"canary":{},"blueGreen":{}`, "strategy", "canary and blueGreen"},
		"no strategy":            {`"finalTargetReplicas":1`, "strategy", "no strategy"},
		"short stat":             {`"canary":{},"metrics":[{"name":"router_latency","stat":"AVG",` + regression + `}]`, "metrics[0].stat", "METRIC_STAT_TYPE_AVG"},
		"p95 as a stat":          {`"canary":{},"metrics":[{"name":"router_latency","stat":"p95",` + regression + `}]`, "metrics[0].stat", "prefix"},
		"max":                    {`"canary":{},"metrics":[{"name":"router_latency","stat":"METRIC_STAT_TYPE_MAX",` + regression + `}]`, "metrics[0].stat", "MAX"},
		"short direction":        {`"canary":{},"metrics":[{` + latency + `,"regressionCheck":{"direction":"HIGHER_IS_WORSE"}}]`, "metrics[0].regressionCheck.direction", "REGRESSION_DIRECTION_HIGHER_IS_WORSE"},
		"short operator":         {`"canary":{},"metrics":[{` + latency + `,"thresholdCheck":{"operator":"LT","value":9}}]`, "metrics[0].thresholdCheck.operator", "THRESHOLD_OPERATOR_LT"},
		"zero window":            {`"canary":{},"metrics":[{` + latency + `,"window":"0s",` + regression + `}]`, "metrics[0].window", "0s"},
		"short window":           {`"canary":{},"metrics":[{` + latency + `,"window":"30s",` + regression + `}]`, "metrics[0].window", "below the minimum"},
		"zero interval":          {`"canary":{"stepInterval":"0s"}`, "canary.stepInterval", "not positive"},
		"negative interval":      {`"canary":{"stepInterval":"-5s"}`, "canary.stepInterval", "not positive"},
		"both checks":            {`"canary":{},"metrics":[{` + latency + `,` + regression + `,"thresholdCheck":{"operator":"THRESHOLD_OPERATOR_LT","value":9}}]`, "metrics[0]", "exactly one"},
		"metrics on blue-green":  {`"blueGreen":{},"metrics":[{` + latency + `,` + regression + `}]`, "metrics", "canary"},
		"zero percentile on avg": {`"canary":{},"metrics":[{"name":"router_error_rate","percentile":0,` + regression + `}]`, "metrics[0].percentile", "percentile"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Checked(parse(t, `{"sourceDeploymentId":"a","targetDeploymentId":"b",`+c.body+`}`), rollout.DefaultTimings())
			require.Len(t, problems, 1)
			require.Equal(t, c.field, problems[0].Field)
			require.Contains(t, problems[0].String(), c.says)
		})
	}
}

func TestEverySpecSurvivesTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		b, err := json.Marshal(SpecToAPI(s))
		require.NoError(t, err)
		var again api.RolloutSpec
		require.NoError(t, json.Unmarshal(b, &again))
		got, problems := SpecFromAPI(again)
		require.Empty(t, problems)
		require.Equal(t, s, got)
	})
}

func anySpec(t *rapid.T) rollout.Spec {
	s := rollout.Spec{
		Source: "dep_a", Target: "dep_b",
		Strategy:    rapid.SampledFrom([]rollout.Strategy{rollout.Canary, rollout.BlueGreen, rollout.Rolling}).Draw(t, "strategy"),
		FinalSource: rapid.IntRange(0, 9).Draw(t, "final source"),
		Digest:      rapid.SampledFrom([]string{"", "sha256:1"}).Draw(t, "digest"),
		Origin:      rapid.SampledFrom([]string{"", "commit 1"}).Draw(t, "origin"),
	}
	if rapid.Bool().Draw(t, "final target given") {
		s.FinalTarget = ptr(rapid.IntRange(1, 9).Draw(t, "final target"))
	}
	s.HoldSource = rapid.Bool().Draw(t, "hold the source")
	if rapid.Bool().Draw(t, "breaker") {
		s.Breaker = &rollout.Breaker{SignedBy: "ana@example.org", Rules: []rollout.Rule{{
			Metric: rollout.RouterErrorRate, Window: time.Duration(rapid.IntRange(0, 900).Draw(t, "breaker window")) * time.Second,
			Threshold: &rollout.Threshold{Operator: rollout.LT, Value: rapid.Float64Range(0.01, 1).Draw(t, "breaker value")},
		}}}
	}
	if s.Strategy != rollout.Canary {
		return s
	}
	s.StepInterval = time.Duration(rapid.IntRange(0, 3600).Draw(t, "interval")) * time.Second
	for p := rapid.IntRange(1, 101).Draw(t, "first"); p <= 100; p += rapid.IntRange(1, 40).Draw(t, "rise") {
		st := rollout.StepSpec{Percent: p}
		if rapid.Bool().Draw(t, "replicas given") {
			st.Replicas = ptr(rapid.IntRange(1, 9).Draw(t, "replicas"))
		}
		s.Steps = append(s.Steps, st)
	}
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		r := rollout.Rule{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: rapid.IntRange(1, 99).Draw(t, "percentile"), Window: time.Duration(rapid.IntRange(0, 900).Draw(t, "window")) * time.Second}
		if rapid.Bool().Draw(t, "regression") {
			r.Regression = &rollout.Regression{Direction: rollout.LowerIsWorse, MaxPercent: rapid.Float64Range(0, 99).Draw(t, "max")}
		} else {
			r.Threshold = &rollout.Threshold{Operator: rollout.GTE, Value: rapid.Float64Range(0.1, 99).Draw(t, "value")}
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func aRollout(t *testing.T) rollout.Rollout {
	t.Helper()
	s, problems := SpecFromAPI(parse(t, demoBody))
	require.Empty(t, problems)
	j, problems := rollout.NewJourney(s, rollout.Basis{SourceReplicas: 4, SourceBounds: rollout.Bounds{Min: 4, Max: 4}}, rollout.DefaultTimings())
	require.Empty(t, problems)
	r, _ := rollout.New("rol_1", "proj_1", "ep_1", s, j, rollout.DefaultTimings(), noon)
	return r
}

func fields(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

func TestPendingRolloutHasNoCurrentStepAndAStartedOneAnExplicitZero(t *testing.T) {
	r := aRollout(t)
	f := fields(t, RolloutToAPI(r))
	require.NotContains(t, f, "currentStep")
	require.NotContains(t, f, "startedAt")
	require.Equal(t, "ROLLOUT_STATE_PENDING", f["state"])
	require.EqualValues(t, 0, f["currentTrafficPercent"])

	r, _, err := r.Start(noon)
	require.NoError(t, err)
	f = fields(t, RolloutToAPI(r))
	require.EqualValues(t, 0, f["currentStep"])
	require.NotContains(t, f, "completedAt")
	require.NotContains(t, f, "pauseInfo")
	status := f["status"].(map[string]any)
	require.NotContains(t, status, "conditions")
	require.NotContains(t, status, "condition")
	require.EqualValues(t, 3, status["totalSteps"])
	first := status["steps"].([]any)[0].(map[string]any)
	require.EqualValues(t, 0, first["stepIndex"])
	require.EqualValues(t, 10, first["targetTrafficPercent"])
	require.Equal(t, "ROLLOUT_STEP_STATE_RUNNING", first["state"])
}

func TestPauseInfoIsThereOnlyWhilePaused(t *testing.T) {
	r, _, err := aRollout(t).Start(noon)
	require.NoError(t, err)
	r, _, err = r.PauseBy("ann", "lunch", noon.Add(time.Minute))
	require.NoError(t, err)
	require.Nil(t, RolloutToAPI(r).PauseInfo, "PAUSING is not paused yet")
	r = rollout.Decide(r, rollout.Observed{}, noon.Add(time.Minute)).Rollout
	got := RolloutToAPI(r)
	require.Equal(t, "ROLLOUT_STATE_PAUSED", got.State)
	require.Equal(t, "lunch", got.PauseInfo.Reason)
	r, _, err = r.Resume("ann", noon.Add(2*time.Minute))
	require.NoError(t, err)
	require.Nil(t, RolloutToAPI(r).PauseInfo)
}

// An apply that waits reads the park in the instant of the edit, before the rollout's
// next decision.
func TestParkByABrokenGlassIsToldWithThePersonsSplitAtOnce(t *testing.T) {
	r, _, err := aRollout(t).Start(noon)
	require.NoError(t, err)
	r.Percent = 20
	r, _, err = r.BreakGlass("ann", "wrong answers", 20, 0, noon.Add(time.Minute))
	require.NoError(t, err)
	got := RolloutToAPI(r)
	require.Equal(t, "ROLLOUT_STATE_SYSTEM_PAUSED", got.State)
	require.Equal(t, 0, *got.CurrentTrafficPercent)
	require.Equal(t, 20, got.Sluice.Drift.SetPercent)
	require.Equal(t, 0, got.Sluice.Drift.ActualPercent)
}

func TestStepAtAPartOfItsShareIsToldAsACondition(t *testing.T) {
	r, _, err := aRollout(t).Start(noon)
	require.NoError(t, err)
	r.Percent, r.Phase = 5, rollout.PhaseDraining
	r.Limit = &rollout.Limit{Goal: r.Journey.PartialRung(5, 1), Moving: true, At: r.StartedAt}
	out := RolloutToAPI(r)
	require.Nil(t, out.Status.Condition)
	require.Len(t, out.Status.Conditions, 1)
	c := out.Status.Conditions[0]
	require.Equal(t, "CapacityLimited", c.Type)
	require.Equal(t, "ROLLOUT_FAILURE_CATEGORY_CAPACITY_EXHAUSTED", c.Category)
	require.Contains(t, c.Message, "advances to 5% of 10% for now: 1 of ")
	require.Contains(t, out.Sluice.NextEvent, "then the rest of the target is placed")
	r.Limit = nil
	body, err := json.Marshal(RolloutToAPI(r))
	require.NoError(t, err)
	require.NotContains(t, string(body), "conditions")
}

func TestReadingsOfZeroAreSentAndVerdictsCarryTheirReason(t *testing.T) {
	rule := rollout.Rule{Metric: rollout.RouterErrorRate, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 0.01}}
	row := fields(t, RowToAPI(rollout.Judge(rule, rollout.Reading{Complete: true}, rollout.Reading{Value: 0, Samples: 5, Complete: true})))
	require.EqualValues(t, 0, row["targetValue"])
	require.NotContains(t, row, "sourceValue")
	require.NotContains(t, row, "failureReason")
	require.Equal(t, "METRIC_VERDICT_PASS", row["verdict"])
	require.Equal(t, "METRIC_STAT_TYPE_AVG", row["stat"])

	row = fields(t, RowToAPI(rollout.Judge(rule, rollout.Reading{Complete: true}, rollout.Reading{Value: 0.5, Samples: 5, Complete: true})))
	require.Equal(t, "METRIC_VERDICT_BREACHED", row["verdict"])
	require.Contains(t, row["failureReason"], "threshold check")

	row = fields(t, RowToAPI(rollout.Judge(rule, rollout.Reading{Complete: true}, rollout.Reading{Complete: false})))
	require.Equal(t, "METRIC_VERDICT_UNAVAILABLE", row["verdict"])
	require.NotContains(t, row, "targetValue")
	require.NotContains(t, row, "failureReason")
	require.Contains(t, row["sluice"].(map[string]any)["note"], "gap")
}

func TestEveryPhaseSaysWhatComesNext(t *testing.T) {
	r, _, err := aRollout(t).Start(noon)
	require.NoError(t, err)
	for _, p := range rollout.Phases() {
		r.Phase, r.PhaseSince, r.SteadySince = p, noon, noon
		at, what := Next(r)
		require.NotEmpty(t, what, p)
		switch p {
		case rollout.PhasePropagating, rollout.PhaseSoaking, rollout.PhaseGating, rollout.PhaseConfirming:
			require.True(t, at.After(noon), p)
		default:
			require.Zero(t, at, p)
		}
	}
	for _, s := range rollout.States() {
		r.State, r.Phase = s, rollout.PhaseChecking
		_, what := Next(r)
		require.Equal(t, s.Terminal(), what == "", s)
	}
}

func TestFilledSpecNamesEverythingInEffect(t *testing.T) {
	timings := rollout.DefaultTimings()
	s := rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Canary, Rules: []rollout.Rule{{Metric: rollout.InflightRequests, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 8}}}}
	j, _ := rollout.NewJourney(s, rollout.Basis{SourceReplicas: 2}, timings)
	got := FilledToAPI(s, j, timings)
	require.Equal(t, api.Duration(390*time.Second), *got.Canary.StepInterval)
	require.Len(t, got.Canary.Steps, 4)
	require.Equal(t, 1, *got.Canary.Steps[0].Replicas)
	require.Equal(t, api.Duration(300*time.Second), *got.Metrics[0].Window)
	require.Equal(t, "METRIC_STAT_TYPE_AVG", got.Metrics[0].Stat)
	require.Equal(t, 2, *got.FinalTargetReplicas)
	require.Equal(t, 0, *got.FinalSourceReplicas)
	_, problems := Checked(got, timings)
	require.Empty(t, problems, "what a preview shows could be asked for")
}

func TestEventsKeepTheirNumbersAndActor(t *testing.T) {
	e := EventToAPI(rollout.Event{ID: "1", At: noon, EndpointID: "ep_1", Subject: "rol_1", Type: rollout.EventTrafficShifted, Level: rollout.LevelInfo, OldPercent: ptr(0), NewPercent: ptr(10), Actor: "ann", Step: ptr(0)})
	f := fields(t, e)
	require.EqualValues(t, 0, f["oldTrafficPercent"])
	require.EqualValues(t, 10, f["newTrafficPercent"])
	require.Equal(t, "SOURCE_KIND_ENDPOINT", f["sourceKind"])
	require.Equal(t, "LEVEL_INFO", f["level"])
	require.Equal(t, "2026-11-30T12:00:00Z", f["createdAt"])
	d := EventToAPI(rollout.Event{EndpointID: "ep_1", Deployment: "dep_1", Level: rollout.LevelInfo})
	require.Equal(t, "SOURCE_KIND_DEPLOYMENT", d.SourceKind)
	require.Nil(t, d.Sluice)
}

func TestTimingsSurviveTheWire(t *testing.T) {
	want := rollout.DefaultTimings()
	want.MinimumWindow, want.IngestionLag = time.Second, 500*time.Millisecond
	require.Equal(t, want, TimingsFromAPI(TimingsToAPI(want)))
}
