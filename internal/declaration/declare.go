package declaration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// declarer makes typed declarations of what was evaluated.
type declarer struct {
	report  *reporter
	timings rollout.Timings
	meaning *evaluator // with unknowns
	passed  *evaluator // with tokens
	again   func(only Ref) *evaluator
	alone   map[Ref]*evaluator // with one token, made by again
	set     Set
}

func (d *declarer) run(ordered []*node) {
	direct := map[nodeID][]nodeID{} // resources behind locals and data
	for _, n := range ordered {
		seen := map[nodeID]bool{}
		for _, to := range n.distinct() {
			behind := direct[to]
			if to.kind == resourceNode {
				behind = []nodeID{to}
			}
			for _, id := range behind {
				if !seen[id] {
					seen[id] = true
					direct[n.id] = append(direct[n.id], id)
				}
			}
		}
		if n.id.kind != resourceNode {
			continue
		}
		var needs []Address
		for _, o := range ordered { // the set's order
			if !seen[o.id] {
				continue
			}
			for _, i := range d.meaning.instances[o.id] {
				needs = append(needs, i.address)
			}
		}
		for at, i := range d.meaning.instances[n.id] {
			d.declare(i, at, needs)
		}
	}
	d.set.Outputs = d.meaning.outputs
	slices.SortFunc(d.set.Outputs, func(a, b Output) int { return strings.Compare(a.Name, b.Name) })
}

func (d *declarer) declare(i *instance, at int, needs []Address) {
	b := &reading{declarer: d, instance: i, index: at}
	block := Block{Address: i.address, Range: i.places.header, DependsOn: needs, Attributes: attributesOf(i)}
	if a, ok := i.node.body.Attributes["provider"]; ok {
		if t, diags := hcl.AbsTraversalForExpr(a.Expr); !diags.HasErrors() {
			block.Provider = traversalText(t)
		}
	}
	block.PreventDestroy = d.lifecycle(i.node.body)
	d.set.Order = append(d.set.Order, i.address)
	switch i.address.Kind {
	case EndpointKind:
		d.set.Endpoints = append(d.set.Endpoints, Endpoint{Block: block, Name: b.text("name"), Visibility: b.text("visibility")})
	case DeploymentKind:
		d.set.Deployments = append(d.set.Deployments, b.deployment(block))
	case RolloutKind:
		d.set.Rollouts = append(d.set.Rollouts, b.rollout(block))
	}
}

// lifecycle reads prevent_destroy and remarks what is Terraform's alone.
func (d *declarer) lifecycle(body *hclsyntax.Body) bool {
	prevent := false
	for _, b := range body.Blocks {
		if b.Type != "lifecycle" {
			continue
		}
		for _, a := range sortedAttributes(b.Body) {
			switch a.Name {
			case "prevent_destroy":
				v, ok := evaluate(d.report, a.Expr, &hcl.EvalContext{})
				prevent = ok && v.IsKnown() && !v.IsNull() && v.Type() == cty.Bool && v.True()
			case "ignore_changes", "create_before_destroy", "replace_triggered_by":
				d.report.add(Note, a.NameRange, a.Name+" is Terraform's alone", "It changes nothing here.", "")
			default:
				d.report.refuse(a.NameRange, fmt.Sprintf("Unknown attribute %q in a lifecycle block", a.Name), "", nearest(a.Name, []string{"prevent_destroy", "ignore_changes", "create_before_destroy", "replace_triggered_by"}))
			}
		}
		for _, c := range b.Body.Blocks {
			d.report.add(Note, c.TypeRange, c.Type+" is not evaluated here", "What it looks at is known after the engine answered.", "")
		}
	}
	return prevent
}

// reading reads one instance.
type reading struct {
	*declarer
	instance *instance
	index    int // of the instance within its block
}

// at gives a value and its place. Marks are cut off.
func (r *reading) at(path ...string) (cty.Value, hcl.Range) {
	v, _ := r.instance.values[path[0]].UnmarkDeep()
	for _, name := range path[1:] {
		if !v.IsKnown() || v.IsNull() {
			break
		}
		v = v.GetAttr(name)
	}
	return v, r.instance.places.at(path)
}

// written reports whether a value is in the text, and not a default.
func (r *reading) written(path ...string) bool {
	_, ok := r.instance.places.exprs[path[0]]
	return ok
}

func field[T any](r *reading, read func(cty.Value) T, path ...string) Field[T] {
	v, at := r.at(path...)
	out := Field[T]{Range: at, Unknown: !v.IsKnown(), Given: r.written(path...)}
	if attribute, ok := find(kinds[r.instance.address.Kind], path[0]); ok && attribute.need == optionalComputed && !out.Given {
		out.Unknown = false // left to the engine
		return out
	}
	if v.IsKnown() && !v.IsNull() {
		out.Value = read(v)
	} else if v.IsKnown() {
		out.Given = false
	}
	return out
}

func (r *reading) text(path ...string) Field[string] { return field(r, cty.Value.AsString, path...) }
func (r *reading) flag(path ...string) Field[bool]   { return field(r, cty.Value.True, path...) }
func (r *reading) whole(path ...string) Field[int]   { return field(r, asInt, path...) }
func (r *reading) float(path ...string) Field[float64] {
	return field(r, asFloat, path...)
}
func (r *reading) wait(path ...string) Field[time.Duration] { return field(r, asDuration, path...) }

func asInt(v cty.Value) int {
	n, _ := v.AsBigFloat().Int64()
	return int(n)
}

func asFloat(v cty.Value) float64 {
	n, _ := v.AsBigFloat().Float64()
	return n
}

func asDuration(v cty.Value) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(v.AsString()))
	if err != nil {
		return 0 // refused before
	}
	return d
}

func (r *reading) timeouts() Timeouts {
	return Timeouts{Create: r.wait("timeouts", "create"), Update: r.wait("timeouts", "update"), Delete: r.wait("timeouts", "delete")}
}

// link reads an id. An unknown one that is a reference's token when tokens stand in
// is that reference itself.
func (r *reading) link(name string, kind Kind) Link {
	v, marks := r.instance.values[name].Unmark()
	out := Link{Range: r.instance.places.at([]string{name})}
	if !r.written(name) || v.IsNull() {
		return out
	}
	if v.IsKnown() {
		if out.ID = v.AsString(); out.ID == "" {
			r.report.refuse(out.Range, "Empty "+name, "It names nothing.", "")
		}
		return out
	}
	var refs []Ref
	for m := range marks {
		if ref, ok := m.(Ref); ok {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		out.Unknown = true
		return out
	}
	if ref, ok := r.passedOn(name, refs); ok {
		r.follow(&out, name, ref, kind)
		return out
	}
	out.Unknown = true
	r.report.refuse(out.Range, name+" is made from an id that is not known yet", "Here an id is passed on as it is, through locals too, but not built from other texts.", "refer to one resource's id, or run this folder under Terraform")
	return out
}

// passedOn finds the one of some references that a value is. A value that others had
// a part in (a lookup in a map of ids, or a choice that looks at an id) is that
// reference only when it is so too while all others stay unknown.
func (r *reading) passedOn(name string, refs []Ref) (Ref, bool) {
	for _, ref := range refs {
		if !r.is(r.passed, name, ref) {
			continue
		}
		if len(refs) == 1 {
			return ref, true
		}
		if _, ok := r.alone[ref]; !ok {
			if len(r.alone) >= mostAlone {
				return Ref{}, false
			}
			r.alone[ref] = r.again(ref)
		}
		return ref, r.is(r.alone[ref], name, ref)
	}
	return Ref{}, false
}

func (r *reading) is(e *evaluator, name string, ref Ref) bool {
	v, _ := e.instances[r.instance.node.id][r.index].values[name].Unmark()
	return v.IsKnown() && !v.IsNull() && v.AsString() == token(ref)
}

func (r *reading) follow(out *Link, name string, ref Ref, kind Kind) {
	if ref.Address.Kind != kind || ref.Attribute != "id" {
		r.report.refuse(out.Range, fmt.Sprintf("%s is not the id of a %s", name, kind), fmt.Sprintf("This is %s.", ref), fmt.Sprintf("refer to the id of a %s", kind))
		out.Unknown = true
		return
	}
	out.To = &ref
}

func (r *reading) deployment(block Block) Deployment {
	out := Deployment{
		Block: block, Endpoint: r.link("endpoint_id", EndpointKind), Name: r.text("name"), Model: r.text("model"), Config: r.text("config"),
		MinReplicas: r.whole("autoscaling", "min_replicas"), MaxReplicas: r.whole("autoscaling", "max_replicas"),
		InitialTrafficWeight: r.float("initial_traffic_weight"), WaitReady: r.flag("wait_ready"), Timeouts: r.timeouts(),
	}
	low, high := out.MinReplicas, out.MaxReplicas
	switch {
	case low.Unknown || high.Unknown:
	case high.Value < low.Value:
		r.report.refuse(high.Range, "Ceiling below the floor", fmt.Sprintf("max_replicas %d is below min_replicas %d.", high.Value, low.Value), "")
	case low.Value == 0 && high.Value > 0:
		r.report.refuse(low.Range, "A running deployment keeps a replica", "min_replicas 0 goes with max_replicas 0 only, which stops the deployment.", "give at least 1")
	}
	return out
}

func (r *reading) rollout(block Block) Rollout {
	out := Rollout{
		Block: block, Endpoint: r.link("endpoint_id", EndpointKind),
		Source: r.link("source_deployment_id", DeploymentKind), Target: r.link("target_deployment_id", DeploymentKind),
		OnParked: r.text("on_parked"), DestroyBehavior: r.text("destroy_behavior"), OnTimeout: r.text("on_timeout"),
		DesiredState: r.text("desired_state"), Reason: r.text("reason"), ResumeToken: r.text("resume_token"),
		Wait: r.flag("wait"), Timeouts: r.timeouts(),
		places: r.instance.places,
	}
	if d := out.DesiredState; d.Value == "canceled" && !out.Reason.Unknown && strings.TrimSpace(out.Reason.Value) == "" {
		r.report.refuse(d.Range, "A cancel has a reason", "desired_state is \"canceled\" and reason is left out.", "give reason: those who read the event feed later will ask")
	}
	s := &specReading{values: r.instance.values}
	asked := s.read()
	asked.SourceDeploymentID, asked.TargetDeploymentID = out.Source.String(), out.Target.String()
	if out.Source.Unknown {
		s.missing("sourceDeploymentId")
	}
	if out.Target.Unknown || !out.Target.Given() {
		s.missing("targetDeploymentId")
	}
	spec, problems := wire.Checked(asked, r.timings)
	for _, p := range problems {
		if !s.covers(p.Field) {
			r.report.refuse(r.instance.places.of(p.Field), sentence(p.Message), "At "+inHCL.Replace(snake(declared(p.Field)))+" of "+block.Address.String()+".", inHCL.Replace(p.Hint))
		}
	}
	out.Spec, out.Unknown = spec, s.unknown
	return out
}

// inHCL puts the wire's names into the words of HCL.
var inHCL = strings.NewReplacer("signedBy", "signed_by", "blueGreen", "blue_green", "regressionCheck", "regression_check", "thresholdCheck", "threshold_check")

func sentence(s string) string {
	s = inHCL.Replace(s)
	if first, _, _ := strings.Cut(s, " "); !strings.Contains(first, "_") && s != "" {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// specReading makes a wire spec of a rollout's attributes, so that it goes through
// the same conversion and checks as the provider's and the server's.
type specReading struct {
	values  map[string]cty.Value
	unknown []string
}

func (s *specReading) missing(field string) {
	if !slices.Contains(s.unknown, field) {
		s.unknown = append(s.unknown, field)
	}
}

// covers reports whether a problem at a field may only come from unknown values.
func (s *specReading) covers(field string) bool {
	return slices.ContainsFunc(s.unknown, func(u string) bool {
		return field == u || strings.HasPrefix(field, u+".") || strings.HasPrefix(field, u+"[")
	})
}

func (s *specReading) attribute(name string) cty.Value {
	v, _ := s.values[name].UnmarkDeep()
	return v
}

func (s *specReading) read() api.RolloutSpec {
	var out api.RolloutSpec
	canary, blueGreen, rolling := s.attribute("canary"), s.attribute("blue_green"), s.attribute("rolling")
	if !canary.IsKnown() || !blueGreen.IsKnown() || !rolling.IsKnown() {
		s.missing("strategy")
		s.missing("canary")
		s.missing("metrics")
	} else {
		if !canary.IsNull() {
			out.Canary = s.canary(canary)
		}
		if !blueGreen.IsNull() {
			out.BlueGreen = &api.BlueGreen{}
		}
		if !rolling.IsNull() {
			out.Rolling = &api.Rolling{}
		}
	}
	for i, m := range s.elements(s.attribute("metrics"), "metrics") {
		out.Metrics = append(out.Metrics, s.metric(fmt.Sprintf("metrics[%d]", i), m))
	}
	out.FinalSourceReplicas = s.whole(s.attribute("final_source_replicas"), "finalSourceReplicas")
	out.FinalTargetReplicas = s.whole(s.attribute("final_target_replicas"), "finalTargetReplicas")
	out.Sluice = s.wayBack(s.attribute("hold_source_until_complete"), s.attribute("circuit_breaker"))
	return out
}

func (s *specReading) elements(v cty.Value, field string) []cty.Value {
	switch {
	case !v.IsKnown():
		s.missing(field)
		return nil
	case v.IsNull():
		return nil
	}
	return v.AsValueSlice()
}

func (s *specReading) whole(v cty.Value, field string) *int {
	if !v.IsKnown() {
		s.missing(field)
	}
	if !v.IsKnown() || v.IsNull() {
		return nil
	}
	n := asInt(v)
	return &n
}

func (s *specReading) float(v cty.Value, field string) *float64 {
	if !v.IsKnown() {
		s.missing(field)
	}
	if !v.IsKnown() || v.IsNull() {
		return nil
	}
	n := asFloat(v)
	return &n
}

func (s *specReading) wait(v cty.Value, field string) *api.Duration {
	if !v.IsKnown() {
		s.missing(field)
	}
	if !v.IsKnown() || v.IsNull() {
		return nil
	}
	d := api.Duration(asDuration(v))
	return &d
}

// enum gives a name its prefix if it lacks it.
func (s *specReading) enum(v cty.Value, field, prefix string) string {
	if !v.IsKnown() {
		s.missing(field)
	}
	if !v.IsKnown() || v.IsNull() {
		return ""
	}
	if name := v.AsString(); name == "" || strings.HasPrefix(name, prefix) {
		return name
	}
	return prefix + v.AsString()
}

func (s *specReading) canary(v cty.Value) *api.Canary {
	out := &api.Canary{StepInterval: s.wait(v.GetAttr("step_interval"), "canary.stepInterval")}
	for i, step := range s.elements(v.GetAttr("steps"), "canary.steps") {
		at := fmt.Sprintf("canary.steps[%d]", i)
		if !step.IsKnown() || step.IsNull() {
			s.missing(at)
			out.Steps = append(out.Steps, api.CanaryStep{})
			continue
		}
		st := api.CanaryStep{Replicas: s.whole(step.GetAttr("replicas"), at+".replicas")}
		if traffic := s.whole(step.GetAttr("traffic"), at+".traffic"); traffic != nil {
			st.Traffic = *traffic
		}
		out.Steps = append(out.Steps, st)
	}
	return out
}

func (s *specReading) metric(at string, v cty.Value) api.MetricRule {
	if !v.IsKnown() || v.IsNull() {
		s.missing(at)
		return api.MetricRule{}
	}
	stat := v.GetAttr("stat")
	if !stat.IsKnown() { // whether a percentile may stand there is not known either
		s.missing(at + ".percentile")
	}
	out := api.MetricRule{
		Name: s.enum(v.GetAttr("name"), at+".name", ""), Stat: s.enum(stat, at+".stat", api.PrefixStat),
		Percentile: s.whole(v.GetAttr("percentile"), at+".percentile"), Window: s.wait(v.GetAttr("window"), at+".window"),
	}
	regression, threshold := cty.NullVal(cty.EmptyObject), v.GetAttr("threshold_check")
	if v.Type().HasAttribute("regression_check") { // a circuit breaker's rule has none
		regression = v.GetAttr("regression_check")
	}
	if !regression.IsKnown() || !threshold.IsKnown() {
		s.missing(at)
		return out
	}
	if !regression.IsNull() {
		out.RegressionCheck = &api.RegressionCheck{
			Direction:            s.enum(regression.GetAttr("direction"), at+".regressionCheck.direction", api.PrefixDirection),
			MaxRegressionPercent: s.float(regression.GetAttr("max_regression_percent"), at+".regressionCheck.maxRegressionPercent"),
		}
	}
	if !threshold.IsNull() {
		out.ThresholdCheck = &api.ThresholdCheck{
			Operator: s.enum(threshold.GetAttr("operator"), at+".thresholdCheck.operator", api.PrefixOperator),
			Value:    s.float(threshold.GetAttr("value"), at+".thresholdCheck.value"),
		}
	}
	return out
}
