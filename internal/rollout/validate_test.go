package rollout_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// good is a spec without a fault, for a test to spoil.
func good() Spec {
	r := latency(95, Regression{HigherIsWorse, 10})
	return Spec{Source: "dep_a", Target: "dep_b", Strategy: Canary, Rules: []Rule{r}}
}

// Every kind of bad spec is refused on its field.
func TestValidation(t *testing.T) {
	zero, one := 0, 1
	rule := func(change func(*Rule)) func(*Spec) { return func(s *Spec) { change(&s.Rules[0]) } }
	threshold := func(m Metric, o Operator, v float64) func(*Spec) {
		return func(s *Spec) { s.Rules[0] = Rule{Metric: m, Stat: StatAvg, Threshold: &Threshold{o, v}} }
	}
	for _, c := range []struct {
		name   string
		spoil  func(*Spec)
		fields string // of the problems, in order; empty for none
	}{
		{"nothing wrong", func(*Spec) {}, ""},
		{"source left to be inferred", func(s *Spec) { s.Source = "" }, ""},
		{"same deployment", func(s *Spec) { s.Source = "dep_b" }, "targetDeploymentId"},
		{"no target", func(s *Spec) { s.Target = "" }, "targetDeploymentId"},
		{"no strategy", func(s *Spec) { s.Strategy = "" }, "strategy"},
		{"gates on blue-green", func(s *Spec) { s.Strategy = BlueGreen }, "metrics"},
		{"gates on rolling", func(s *Spec) { s.Strategy = Rolling }, "metrics"},
		{"step of 0", func(s *Spec) { s.Steps = steps(0, 100) }, "canary.steps[0].traffic"},
		{"step of 101", func(s *Spec) { s.Steps = steps(101) }, "canary.steps[0].traffic canary.steps[0].traffic"},
		{"ladder that falls", func(s *Spec) { s.Steps = steps(50, 25, 100) }, "canary.steps[1].traffic"},
		{"ladder that stands still", func(s *Spec) { s.Steps = steps(50, 50, 100) }, "canary.steps[1].traffic"},
		{"ladder that does not end at 100", func(s *Spec) { s.Steps = steps(10, 50) }, "canary.steps[1].traffic"},
		{"step with no replica", func(s *Spec) { s.Steps = []StepSpec{{Percent: 100, Replicas: &zero}} }, "canary.steps[0].replicas"},
		{"step with one", func(s *Spec) { s.Steps = []StepSpec{{Percent: 100, Replicas: &one}} }, ""},
		{"negative interval", func(s *Spec) { s.StepInterval = -time.Second }, "canary.stepInterval"},
		{"negative final source", func(s *Spec) { s.FinalSource = -1 }, "finalSourceReplicas"},
		{"final target of 0", func(s *Spec) { s.FinalTarget = &zero }, "finalTargetReplicas"},
		{"final target of 1", func(s *Spec) { s.FinalTarget = &one }, ""},
		{"unknown metric", rule(func(r *Rule) { r.Metric = "router_latencyy" }), "metrics[0].name"},
		{"retired metric", rule(func(r *Rule) { r.Metric = "serving_latency" }), "metrics[0].name"},
		{"latency without a stat", rule(func(r *Rule) { r.Stat, r.Percentile = "", 0 }), "metrics[0].stat"},
		{"stat MAX", rule(func(r *Rule) { r.Stat, r.Percentile = "MAX", 0 }), "metrics[0].stat"},
		{"stat MIN on a rate", rule(func(r *Rule) { r.Metric, r.Stat, r.Percentile = RouterErrorRate, "MIN", 0 }), "metrics[0].stat"},
		{"percentile of a rate", rule(func(r *Rule) { r.Metric = RouterErrorRate }), "metrics[0].stat"},
		{"percentile 0", rule(func(r *Rule) { r.Percentile = 0 }), "metrics[0].percentile"},
		{"percentile 100", rule(func(r *Rule) { r.Percentile = 100 }), "metrics[0].percentile"},
		{"percentile without the stat", rule(func(r *Rule) { r.Stat = StatAvg }), "metrics[0].percentile"},
		{"window of 59 s", rule(func(r *Rule) { r.Window = 59 * time.Second }), "metrics[0].window"},
		{"negative window", rule(func(r *Rule) { r.Window = -time.Minute }), "metrics[0].window"},
		{"window of 60 s", rule(func(r *Rule) { r.Window = time.Minute }), ""},
		{"no check", rule(func(r *Rule) { r.Regression = nil }), "metrics[0]"},
		{"both checks", rule(func(r *Rule) { r.Threshold = &Threshold{LT, 1} }), "metrics[0]"},
		{"unknown direction", rule(func(r *Rule) { r.Regression.Direction = "UP" }), "metrics[0].regressionCheck.direction"},
		{"negative budget", rule(func(r *Rule) { r.Regression.MaxPercent = -1 }), "metrics[0].regressionCheck.maxRegressionPercent"},
		{"NaN budget", rule(func(r *Rule) { r.Regression.MaxPercent = math.NaN() }), "metrics[0].regressionCheck.maxRegressionPercent"},
		{"infinite budget", rule(func(r *Rule) { r.Regression.MaxPercent = math.Inf(1) }), "metrics[0].regressionCheck.maxRegressionPercent"},
		{"budget of 0", rule(func(r *Rule) { r.Regression.MaxPercent = 0 }), ""},
		{"fall by more than everything", rule(func(r *Rule) { *r.Regression = Regression{LowerIsWorse, 100} }), "metrics[0].regressionCheck.maxRegressionPercent"},
		{"error rate LT 0", threshold(RouterErrorRate, LT, 0), "metrics[0].thresholdCheck.value"},
		{"error rate GTE 0", threshold(RouterErrorRate, GTE, 0), "metrics[0].thresholdCheck.value"},
		{"error rate LTE 1", threshold(RouterErrorRate, LTE, 1), "metrics[0].thresholdCheck.value"},
		{"error rate GT 1", threshold(RouterErrorRate, GT, 1), "metrics[0].thresholdCheck.value"},
		{"error rate LTE 0", threshold(RouterErrorRate, LTE, 0), ""},
		{"error rate LT 1", threshold(RouterErrorRate, LT, 1), ""},
		{"latency LT 0", threshold(RouterLatency, LT, 0), "metrics[0].thresholdCheck.value"},
		{"latency GTE 0", threshold(RouterLatency, GTE, 0), "metrics[0].thresholdCheck.value"},
		{"latency LT 2000", threshold(RouterLatency, LT, 2000), ""},
		{"inflight GT -1", threshold(InflightRequests, GT, -1), "metrics[0].thresholdCheck.value"},
		{"threshold NaN", threshold(RouterLatency, LT, math.NaN()), "metrics[0].thresholdCheck.value"},
		{"unknown operator", threshold(RouterLatency, "EQ", 1), "metrics[0].thresholdCheck.operator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good()
			c.spoil(&s)
			var fields []string
			for _, p := range s.Validate(DefaultTimings()) {
				fields = append(fields, p.Field)
				assert.NotEmpty(t, p.Message)
				assert.NotEmpty(t, p.Hint)
			}
			assert.Equal(t, c.fields, strings.Join(fields, " "))
		})
	}
}

// D9 (flagger#1581): unknown metric names were accepted and every test passed. The
// refusal names the whole catalogue and the nearest name.
func TestD9UnknownMetric(t *testing.T) {
	for wrong, hint := range map[string]string{
		"router_latencyy":     `did you mean "router_latency"?`,
		"routr_error_rate":    `did you mean "router_error_rate"?`,
		"inflight":            `did you mean "inflight_requests"?`,
		"serving_latency":     `did you mean "router_latency"?`,
		"tokens_per_fortnite": "the catalogue is closed",
		"":                    "the catalogue is closed",
	} {
		s := good()
		s.Rules[0].Metric = Metric(wrong)
		ps := s.Validate(DefaultTimings())
		if assert.Len(t, ps, 1, wrong) {
			assert.Contains(t, ps[0].Message, "inflight_requests, router_error_rate, router_latency")
			assert.Equal(t, hint, ps[0].Hint, wrong)
		}
	}
}

// A spec that passes has a journey wherever a stopped target is beside a source.
func TestValidSpecsHaveJourneys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Spec{Source: "dep_a", Target: "dep_b", Strategy: rapid.SampledFrom([]Strategy{Canary, BlueGreen, Rolling, ""}).Draw(t, "strategy")}
		for _, p := range rapid.SliceOfN(rapid.IntRange(-1, 101), 0, 4).Draw(t, "steps") {
			s.Steps = append(s.Steps, StepSpec{Percent: p})
		}
		if len(s.Validate(DefaultTimings())) > 0 {
			return
		}
		j, problems := NewJourney(s, serving(rapid.IntRange(1, 50).Draw(t, "replicas")), DefaultTimings())
		if len(problems) > 0 || j.Rungs[len(j.Rungs)-1].Percent != 100 {
			t.Fatalf("%v %+v", problems, j)
		}
	})
}
