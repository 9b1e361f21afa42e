package wire

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Checked converts a spec and tells everything that can never be right about it,
// in the order in which it was found. Where the wire form itself is wrong, what
// the core says about the same field is left out.
func Checked(in api.RolloutSpec, t rollout.Timings) (rollout.Spec, []rollout.Problem) {
	spec, problems := SpecFromAPI(in)
	told := map[string]bool{} // by field; hostile specs have tens of thousands
	for _, p := range problems {
		told[p.Field] = true
	}
	for _, p := range spec.Validate(t) {
		if !told[p.Field] {
			told[p.Field] = true
			problems = append(problems, p)
		}
	}
	return spec, problems
}

// SpecFromAPI converts a spec. The problems are those that only the wire form can
// have: several strategies, enums without their prefix, durations of zero that the
// core would read as "the default". Values that the core knows to be wrong are
// passed on as they are; Checked does both.
func SpecFromAPI(in api.RolloutSpec) (rollout.Spec, []rollout.Problem) {
	c := &converter{}
	out := rollout.Spec{
		Source:      in.SourceDeploymentID,
		Target:      in.TargetDeploymentID,
		FinalTarget: in.FinalTargetReplicas,
	}
	if in.FinalSourceReplicas != nil {
		out.FinalSource = *in.FinalSourceReplicas
	}
	if in.Sluice != nil {
		out.Digest, out.Origin, out.HoldSource = in.Sluice.Digest, in.Sluice.Origin, in.Sluice.HoldSource
		if b := in.Sluice.CircuitBreaker; b != nil {
			out.Breaker = c.breaker(*b)
		}
	}
	out.Strategy = c.strategy(in)
	if in.Canary != nil {
		c.canary(&out, *in.Canary)
	}
	for i, m := range in.Metrics {
		out.Rules = append(out.Rules, c.rule(fmt.Sprintf("metrics[%d]", i), m))
	}
	return out, c.problems
}

type converter struct{ problems []rollout.Problem }

func (c *converter) add(field, message, hint string) {
	c.problems = append(c.problems, rollout.Problem{Field: field, Message: message, Hint: hint})
}

// strategy returns the first strategy given; more than one is a problem, none is
// left to the core.
func (c *converter) strategy(in api.RolloutSpec) rollout.Strategy {
	var given []string
	var first rollout.Strategy
	note := func(present bool, name string, s rollout.Strategy) {
		if !present {
			return
		}
		if first == "" {
			first = s
		}
		given = append(given, name)
	}
	note(in.Canary != nil, "canary", rollout.Canary)
	note(in.BlueGreen != nil, "blueGreen", rollout.BlueGreen)
	note(in.Rolling != nil, "rolling", rollout.Rolling)
	if len(given) > 1 {
		c.add("strategy", strings.Join(given, " and ")+" are given together", "give exactly one of canary, blueGreen and rolling")
	}
	return first
}

func (c *converter) canary(out *rollout.Spec, in api.Canary) {
	for _, st := range in.Steps {
		out.Steps = append(out.Steps, rollout.StepSpec{Percent: st.Traffic, Replicas: st.Replicas})
	}
	if in.StepInterval != nil {
		out.StepInterval = time.Duration(*in.StepInterval)
		if out.StepInterval == 0 {
			c.add("canary.stepInterval", "step interval 0s is not positive", "give a wait such as 600s, or leave it out")
		}
	}
}

func (c *converter) rule(at string, in api.MetricRule) rollout.Rule {
	out := rollout.Rule{
		Metric: rollout.Metric(in.Name),
		Stat:   rollout.Stat(c.enum(at+".stat", api.PrefixStat, in.Stat)),
	}
	if in.Percentile != nil {
		out.Percentile = *in.Percentile
		if *in.Percentile == 0 && out.Stat != rollout.StatPercentile {
			c.add(at+".percentile", "percentile 0 is not between 1 and 99", "drop it, or give stat PERCENTILE and a whole number such as 95")
		}
	}
	if in.Window != nil {
		out.Window = time.Duration(*in.Window)
		if out.Window == 0 {
			c.add(at+".window", "a window of 0s holds no request", "give a window such as 300s, or leave it out")
		}
	}
	if r := in.RegressionCheck; r != nil {
		out.Regression = &rollout.Regression{
			Direction:  rollout.Direction(c.enum(at+".regressionCheck.direction", api.PrefixDirection, r.Direction)),
			MaxPercent: value(r.MaxRegressionPercent),
		}
	}
	if t := in.ThresholdCheck; t != nil {
		out.Threshold = &rollout.Threshold{
			Operator: rollout.Operator(c.enum(at+".thresholdCheck.operator", api.PrefixOperator, t.Operator)),
			Value:    value(t.Value),
		}
	}
	return out
}

// enum cuts the prefix off. Without it the wire refuses even a known short name.
func (c *converter) enum(field, prefix, full string) string {
	if full == "" {
		return ""
	}
	short, ok := strings.CutPrefix(full, prefix)
	if !ok {
		c.add(field, fmt.Sprintf("%q is not an enum value of this field", full), "enum values carry their full prefix: "+prefix+strings.ToUpper(full))
	}
	return short
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// SpecToAPI tells a spec as it was asked: what was left out stays out, but for the
// source's final count, whose default is a plain 0.
func SpecToAPI(s rollout.Spec) api.RolloutSpec {
	out := api.RolloutSpec{
		SourceDeploymentID:  s.Source,
		TargetDeploymentID:  s.Target,
		FinalTargetReplicas: s.FinalTarget,
	}
	if s.FinalSource != 0 {
		out.FinalSourceReplicas = ptr(s.FinalSource)
	}
	out.Sluice = extraOfSpec(s)
	switch s.Strategy {
	case rollout.Canary:
		out.Canary = canaryToAPI(s)
	case rollout.BlueGreen:
		out.BlueGreen = &api.BlueGreen{}
	case rollout.Rolling:
		out.Rolling = &api.Rolling{}
	}
	for _, r := range s.Rules {
		out.Metrics = append(out.Metrics, ruleToAPI(r))
	}
	return out
}

func canaryToAPI(s rollout.Spec) *api.Canary {
	out := &api.Canary{}
	for _, st := range s.Steps {
		out.Steps = append(out.Steps, api.CanaryStep{Traffic: st.Percent, Replicas: st.Replicas})
	}
	if s.StepInterval != 0 {
		out.StepInterval = ptr(api.Duration(s.StepInterval))
	}
	return out
}

func ruleToAPI(r rollout.Rule) api.MetricRule {
	out := api.MetricRule{Name: string(r.Metric)}
	if r.Stat != "" {
		out.Stat = api.PrefixStat + string(r.Stat)
	}
	if r.Percentile != 0 {
		out.Percentile = ptr(r.Percentile)
	}
	if r.Window != 0 {
		out.Window = ptr(api.Duration(r.Window))
	}
	if c := r.Regression; c != nil {
		out.RegressionCheck = &api.RegressionCheck{Direction: api.PrefixDirection + string(c.Direction), MaxRegressionPercent: ptr(c.MaxPercent)}
	}
	if c := r.Threshold; c != nil {
		out.ThresholdCheck = &api.ThresholdCheck{Operator: api.PrefixOperator + string(c.Operator), Value: ptr(c.Value)}
	}
	return out
}

// FilledToAPI tells a spec with everything that a create would fill in: the ladder
// with its replica counts, the wait in effect, each rule's window and statistic,
// and both final counts.
func FilledToAPI(s rollout.Spec, j rollout.Journey, t rollout.Timings) api.RolloutSpec {
	out := SpecToAPI(s)
	out.FinalSourceReplicas, out.FinalTargetReplicas = ptr(j.FinalSource), ptr(j.FinalTarget)
	if out.Canary != nil {
		out.Canary.StepInterval = ptr(api.Duration(j.Soak))
		out.Canary.Steps = nil
		for _, rung := range j.Rungs {
			out.Canary.Steps = append(out.Canary.Steps, api.CanaryStep{Traffic: rung.Percent, Replicas: ptr(rung.Need)})
		}
	}
	fillBreaker(out, s, t)
	for i, r := range s.Rules {
		out.Metrics[i].Window = ptr(api.Duration(t.WindowOf(r)))
		if r.Stat == "" {
			out.Metrics[i].Stat = api.PrefixStat + string(rollout.StatAvg)
		}
	}
	return out
}

func ptr[T any](v T) *T { return &v }
