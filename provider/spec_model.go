package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// specModel is a rollout's spec as HCL has it; any part may be unknown at plan.
type specModel struct {
	EndpointID          types.String `tfsdk:"endpoint_id"`
	SourceDeploymentID  types.String `tfsdk:"source_deployment_id"`
	TargetDeploymentID  types.String `tfsdk:"target_deployment_id"`
	Canary              types.Object `tfsdk:"canary"`
	BlueGreen           types.Object `tfsdk:"blue_green"`
	Rolling             types.Object `tfsdk:"rolling"`
	Metrics             types.List   `tfsdk:"metrics"`
	FinalSourceReplicas whole        `tfsdk:"final_source_replicas"`
	FinalTargetReplicas whole        `tfsdk:"final_target_replicas"`
	HoldSource          types.Bool   `tfsdk:"hold_source_until_complete"`
	CircuitBreaker      types.Object `tfsdk:"circuit_breaker"`
}

var (
	stepType    = types.ObjectType{AttrTypes: map[string]attr.Type{"traffic": wholeNumber, "replicas": wholeNumber}}
	canaryType  = types.ObjectType{AttrTypes: map[string]attr.Type{"steps": types.ListType{ElemType: stepType}, "step_interval": durationType}}
	emptyType   = types.ObjectType{AttrTypes: map[string]attr.Type{}}
	statType    = enumType(api.PrefixStat)
	directions  = enumType(api.PrefixDirection)
	operators   = enumType(api.PrefixOperator)
	regressions = types.ObjectType{AttrTypes: map[string]attr.Type{"direction": directions, "max_regression_percent": types.Float64Type}}
	thresholds  = types.ObjectType{AttrTypes: map[string]attr.Type{"operator": operators, "value": types.Float64Type}}
	metricType  = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "stat": statType, "percentile": wholeNumber, "window": durationType,
		"regression_check": regressions, "threshold_check": thresholds,
	}}
)

// decoded is a spec with the fields that are not known yet, as wire paths.
type decoded struct {
	spec    api.RolloutSpec
	unknown []string
}

// idFields are the fields that a journey does not depend on.
var idFields = []string{"sourceDeploymentId", "targetDeploymentId"}

// shapeKnown reports whether all that shapes a journey is known.
func (d decoded) shapeKnown() bool {
	return !slices.ContainsFunc(d.unknown, func(f string) bool { return !slices.Contains(idFields, f) })
}

// digestKnown reports whether all that the digest covers is known.
func (d decoded) digestKnown() bool { return len(d.unknown) == 0 }

// covers reports whether a problem at a field may only come from unknown values.
func (d decoded) covers(field string) bool {
	return slices.ContainsFunc(d.unknown, func(u string) bool {
		return field == u || strings.HasPrefix(field, u+".") || strings.HasPrefix(field, u+"[")
	})
}

// decode reads a spec. An unset source stays empty: what was asked for is what has
// a digest.
func (m specModel) decode() decoded {
	d := &decoder{}
	d.out.spec.SourceDeploymentID = d.str("sourceDeploymentId", m.SourceDeploymentID)
	d.out.spec.TargetDeploymentID = d.str("targetDeploymentId", m.TargetDeploymentID)
	d.strategy(m)
	d.metrics(m.Metrics)
	d.out.spec.FinalSourceReplicas = d.number("finalSourceReplicas", m.FinalSourceReplicas)
	d.out.spec.FinalTargetReplicas = d.number("finalTargetReplicas", m.FinalTargetReplicas)
	d.wayBack(m)
	return d.out
}

type decoder struct{ out decoded }

func (d *decoder) missing(field string) { d.out.unknown = append(d.out.unknown, field) }

func (d *decoder) str(field string, v types.String) string {
	if v.IsUnknown() {
		d.missing(field)
	}
	return v.ValueString()
}

// number is nil for what is not given, not known, or not whole; the last is refused
// by the number's own type.
func (d *decoder) number(field string, v whole) *int {
	if v.IsUnknown() || v.isWrong() {
		d.missing(field)
	}
	n, ok := v.int()
	if !ok {
		return nil
	}
	return &n
}

func (d *decoder) strategy(m specModel) {
	if m.Canary.IsUnknown() || m.BlueGreen.IsUnknown() || m.Rolling.IsUnknown() {
		d.missing("strategy")
		d.missing("canary")
		d.missing("metrics")
		return
	}
	if !m.Canary.IsNull() {
		d.canary(m.Canary)
	}
	if !m.BlueGreen.IsNull() {
		d.out.spec.BlueGreen = &api.BlueGreen{}
	}
	if !m.Rolling.IsNull() {
		d.out.spec.Rolling = &api.Rolling{}
	}
}

func (d *decoder) canary(o types.Object) {
	c := &api.Canary{}
	d.out.spec.Canary = c
	interval := textAt(o, "step_interval", durationType)
	if interval.IsUnknown() {
		d.missing("canary.stepInterval")
	}
	c.StepInterval = wireDuration(interval)
	steps := listAt(o, "steps")
	if steps.IsUnknown() {
		d.missing("canary.steps")
		return
	}
	for i, e := range steps.Elements() {
		at := fmt.Sprintf("canary.steps[%d]", i)
		step, ok := e.(types.Object)
		if !ok || step.IsUnknown() {
			d.missing(at)
			c.Steps = append(c.Steps, api.CanaryStep{})
			continue
		}
		traffic := d.number(at+".traffic", wholeAt(step, "traffic"))
		st := api.CanaryStep{Replicas: d.number(at+".replicas", wholeAt(step, "replicas"))}
		if traffic != nil {
			st.Traffic = *traffic
		}
		c.Steps = append(c.Steps, st)
	}
}

func (d *decoder) metrics(l types.List) {
	if l.IsUnknown() {
		d.missing("metrics")
		return
	}
	for i, e := range l.Elements() {
		at := fmt.Sprintf("metrics[%d]", i)
		o, ok := e.(types.Object)
		if !ok || o.IsUnknown() {
			d.missing(at)
			d.out.spec.Metrics = append(d.out.spec.Metrics, api.MetricRule{})
			continue
		}
		d.out.spec.Metrics = append(d.out.spec.Metrics, d.metric(at, o))
	}
}

func (d *decoder) metric(at string, o types.Object) api.MetricRule {
	window := textAt(o, "window", durationType)
	if window.IsUnknown() {
		d.missing(at + ".window")
	}
	stat := textAt(o, "stat", statType)
	if stat.IsUnknown() { // whether a percentile may stand there is not known either
		d.missing(at + ".stat")
		d.missing(at + ".percentile")
	}
	m := api.MetricRule{
		Name:       d.str(at+".name", stringAt(o, "name")),
		Stat:       fullEnum(api.PrefixStat, stat.ValueString()),
		Percentile: d.number(at+".percentile", wholeAt(o, "percentile")),
		Window:     wireDuration(window),
	}
	regression, threshold := objectAt(o, "regression_check", regressions), objectAt(o, "threshold_check", thresholds)
	if regression.IsUnknown() || threshold.IsUnknown() {
		d.missing(at)
		return m
	}
	if !regression.IsNull() {
		m.RegressionCheck = &api.RegressionCheck{
			Direction:            d.enum(at+".regressionCheck.direction", textAt(regression, "direction", directions)),
			MaxRegressionPercent: d.float(at+".regressionCheck.maxRegressionPercent", float64At(regression, "max_regression_percent")),
		}
	}
	if !threshold.IsNull() {
		m.ThresholdCheck = &api.ThresholdCheck{
			Operator: d.enum(at+".thresholdCheck.operator", textAt(threshold, "operator", operators)),
			Value:    d.float(at+".thresholdCheck.value", float64At(threshold, "value")),
		}
	}
	return m
}

func (d *decoder) enum(field string, v text) string {
	if v.IsUnknown() {
		d.missing(field)
	}
	return fullEnum(string(v.kind), v.ValueString())
}

func (d *decoder) float(field string, v types.Float64) *float64 {
	switch {
	case v.IsUnknown():
		d.missing(field)
		return nil
	case v.IsNull():
		return nil
	}
	f := v.ValueFloat64()
	return &f
}

// check tells everything that can never be right about a spec at the attributes
// that a person wrote. Without timings the engine's shortest window is not checked.
func (m specModel) check(t rollout.Timings) (rollout.Spec, decoded, diag.Diagnostics) {
	var diags diag.Diagnostics
	d := m.decode()
	spec, problems := wire.Checked(d.spec, t)
	for _, p := range problems {
		if d.covers(p.Field) {
			continue
		}
		at := m.pathOf(p.Field)
		detail := sentence(p.Message)
		if p.Hint != "" {
			detail += " " + sentence(p.Hint)
		}
		if at.Equal(path.Empty()) {
			diags.AddError(titleOf(p.Field), detail)
			continue
		}
		diags.AddAttributeError(topLevel(at), titleOf(p.Field)+" at "+at.String(), detail)
	}
	return spec, d, diags
}

// pathOf is attributePath, with the strategy at the last one that was written.
func (m specModel) pathOf(field string) path.Path {
	if field != "strategy" {
		return attributePath(field)
	}
	switch {
	case !m.Rolling.IsNull():
		return path.Root("rolling")
	case !m.BlueGreen.IsNull():
		return path.Root("blue_green")
	case !m.Canary.IsNull():
		return path.Root("canary")
	}
	return path.Empty()
}

func titleOf(field string) string {
	switch {
	case field == "strategy":
		return "Give exactly one of canary, blue_green and rolling"
	case strings.HasPrefix(field, "metrics"):
		return "Invalid metric gate"
	case strings.HasPrefix(field, "sluice.circuitBreaker"):
		return "Invalid circuit breaker"
	case strings.HasPrefix(field, "canary"):
		return "Invalid canary ladder"
	}
	return "Invalid " + snake(field)
}

// inHCL puts the wire's names into the words of HCL.
var inHCL = strings.NewReplacer("signedBy", "signed_by", "blueGreen", "blue_green", "regressionCheck", "regression_check", "thresholdCheck", "threshold_check",
	"minReplicas", "min_replicas", "maxReplicas", "max_replicas", "sourceDeploymentId", "source_deployment_id", "targetDeploymentId", "target_deployment_id")

// sentence makes an engine's words a sentence; a name at its beginning stays as it is.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = inHCL.Replace(s)
	if first, _, _ := strings.Cut(s, " "); !strings.Contains(first, "_") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

func stringAt(o types.Object, name string) types.String {
	v, _ := o.Attributes()[name].(types.String)
	return v
}

func wholeAt(o types.Object, name string) whole {
	if v, ok := o.Attributes()[name].(whole); ok {
		return v
	}
	return noWhole()
}

func float64At(o types.Object, name string) types.Float64 {
	v, _ := o.Attributes()[name].(types.Float64)
	return v
}

func listAt(o types.Object, name string) types.List {
	v, _ := o.Attributes()[name].(types.List)
	return v
}

func objectAt(o types.Object, name string, t types.ObjectType) types.Object {
	if v, ok := o.Attributes()[name].(types.Object); ok {
		return v
	}
	return types.ObjectNull(t.AttrTypes)
}

func textAt(o types.Object, name string, t textType) text {
	if v, ok := o.Attributes()[name].(text); ok {
		return v
	}
	return nullText(t)
}
