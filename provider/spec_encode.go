package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// fill writes a spec as the engine told it into a model, for an import: in the
// short spellings that the documentation shows.
func (m *specModel) fill(s api.RolloutSpec) {
	m.SourceDeploymentID = types.StringValue(s.SourceDeploymentID)
	m.TargetDeploymentID = types.StringValue(s.TargetDeploymentID)
	m.Canary, m.BlueGreen, m.Rolling = types.ObjectNull(canaryType.AttrTypes), types.ObjectNull(emptyType.AttrTypes), types.ObjectNull(emptyType.AttrTypes)
	switch {
	case s.Canary != nil:
		m.Canary = canaryValue(*s.Canary)
	case s.BlueGreen != nil:
		m.BlueGreen = types.ObjectValueMust(emptyType.AttrTypes, map[string]attr.Value{})
	case s.Rolling != nil:
		m.Rolling = types.ObjectValueMust(emptyType.AttrTypes, map[string]attr.Value{})
	}
	m.Metrics = types.ListNull(metricType)
	if len(s.Metrics) > 0 {
		rules := make([]attr.Value, 0, len(s.Metrics))
		for _, r := range s.Metrics {
			rules = append(rules, metricValue(r))
		}
		m.Metrics = types.ListValueMust(metricType, rules)
	}
	m.FinalSourceReplicas = wholeOf(0)
	if s.FinalSourceReplicas != nil {
		m.FinalSourceReplicas = wholeOf(*s.FinalSourceReplicas)
	}
	m.FinalTargetReplicas = wholeOrNull(s.FinalTargetReplicas)
	m.fillWayBack(s.Sluice)
}

func canaryValue(c api.Canary) types.Object {
	steps := types.ListNull(stepType)
	if len(c.Steps) > 0 {
		values := make([]attr.Value, 0, len(c.Steps))
		for _, st := range c.Steps {
			values = append(values, types.ObjectValueMust(stepType.AttrTypes, map[string]attr.Value{
				"traffic": wholeOf(st.Traffic), "replicas": wholeOrNull(st.Replicas),
			}))
		}
		steps = types.ListValueMust(stepType, values)
	}
	return types.ObjectValueMust(canaryType.AttrTypes, map[string]attr.Value{"steps": steps, "step_interval": durationValue(c.StepInterval)})
}

func metricValue(r api.MetricRule) types.Object {
	regression, threshold := types.ObjectNull(regressions.AttrTypes), types.ObjectNull(thresholds.AttrTypes)
	if c := r.RegressionCheck; c != nil {
		regression = types.ObjectValueMust(regressions.AttrTypes, map[string]attr.Value{
			"direction": enumValue(directions, c.Direction), "max_regression_percent": floatOrZero(c.MaxRegressionPercent),
		})
	}
	if c := r.ThresholdCheck; c != nil {
		threshold = types.ObjectValueMust(thresholds.AttrTypes, map[string]attr.Value{
			"operator": enumValue(operators, c.Operator), "value": floatOrZero(c.Value),
		})
	}
	return types.ObjectValueMust(metricType.AttrTypes, map[string]attr.Value{
		"name": types.StringValue(r.Name), "stat": enumValue(statType, r.Stat), "percentile": wholeOrNull(r.Percentile),
		"window": durationValue(r.Window), "regression_check": regression, "threshold_check": threshold,
	})
}

func durationValue(d *api.Duration) text {
	if d == nil {
		return nullText(durationType)
	}
	return newText(durationType, d.String())
}

func enumValue(t textType, full string) text {
	if full == "" {
		return nullText(t)
	}
	return newText(t, shortEnum(string(t.kind), full))
}

func optionalInt(v *int) types.Int64 {
	if v == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(*v))
}

func floatOrZero(v *float64) types.Float64 {
	if v == nil {
		return types.Float64Value(0)
	}
	return types.Float64Value(*v)
}

// optionalString is null for an empty text.
func optionalString(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
