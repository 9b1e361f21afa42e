package planning

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// What an engine gives of each kind, in the words and the form of the provider's schema.

// overlay puts values over those of an object.
func overlay(all cty.Value, over map[string]cty.Value) cty.Value {
	if all == cty.NilVal {
		return all
	}
	all, marks := all.Unmark()
	values := all.AsValueMap()
	for name, v := range over {
		if _, has := values[name]; has {
			values[name] = v
		}
	}
	return cty.ObjectVal(values).WithMarks(marks)
}

// show fills in what the engine tells of a thing that stays. An update makes what it may
// change unknown, as the provider does.
func (c *Change) show(attributes cty.Value, told map[string]cty.Value) {
	c.after = overlay(attributes, told)
	before := map[string]cty.Value{}
	for _, f := range c.Fields {
		changeAt(before, attributes, f)
	}
	c.before = overlay(c.after, before)
	if c.Action != Update {
		return
	}
	loose := map[string]cty.Value{}
	for _, name := range changing[c.Kind] {
		loose[name] = cty.UnknownVal(cty.DynamicPseudoType)
	}
	c.after = overlay(c.after, loose)
}

// changing are the attributes that follow from an update and not from what was read.
var changing = map[declaration.Kind][]string{
	declaration.DeploymentKind: {"status", "live_min_replicas", "live_max_replicas", "ready_replicas"},
}

// changeAt puts the value that a field had before into an attribute.
func changeAt(before map[string]cty.Value, attributes cty.Value, f FieldChange) {
	plain, _ := attributes.UnmarkDeep()
	name, inner, nested := strings.Cut(f.Path, ".")
	if !plain.Type().HasAttribute(name) {
		return
	}
	old := fromJSON(f.Before)
	if !nested {
		before[name] = old
		return
	}
	object, ok := before[name]
	if !ok {
		object = plain.GetAttr(name)
	}
	before[name] = overlay(object, map[string]cty.Value{inner: old})
}

func head(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return name
}

// valueOf is a plain Go value as the plan's JSON has it.
func valueOf(v any) cty.Value { return fromJSON(raw(v)) }

func fromJSON(b json.RawMessage) cty.Value {
	t, err := ctyjson.ImpliedType(b)
	if err != nil {
		return cty.DynamicVal
	}
	v, err := ctyjson.Unmarshal(b, t)
	if err != nil {
		return cty.DynamicVal
	}
	return v
}

func orNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

type shownWeight struct {
	DeploymentID string  `json:"deployment_id"`
	Weight       float64 `json:"weight"`
}

func endpointValues(e StandingEndpoint) map[string]cty.Value {
	split := []shownWeight{}
	for _, w := range e.TrafficSplit {
		if w.Weight != 0 { // equal to absent
			split = append(split, shownWeight(w))
		}
	}
	gateway := ""
	if e.Sluice != nil {
		gateway = e.Sluice.GatewayURL
	}
	return map[string]cty.Value{"id": cty.StringVal(e.ID), "qualified_name": cty.StringVal(e.Name), "gateway_url": orNull(gateway), "traffic_split": valueOf(split)}
}

func deploymentValues(live api.Deployment, d declaration.Deployment) map[string]cty.Value {
	low, high := boundsOf(live)
	out := map[string]cty.Value{
		"id": cty.StringVal(live.ID), "endpoint_id": cty.StringVal(live.EndpointID), "qualified_name": cty.StringVal(live.Name),
		"hardware": orNull(live.Hardware), "model_revision_id": orNull(live.ModelRevisionID),
		"status":            cty.StringVal(strings.TrimPrefix(live.Status.State, prefixDeploymentState)),
		"live_min_replicas": cty.NumberIntVal(int64(low)), "live_max_replicas": cty.NumberIntVal(int64(high)),
		"ready_replicas": cty.NumberIntVal(int64(live.Status.ReadyReplicas)),
	}
	if !d.Model.Given {
		out["model"] = cty.StringVal(ResourceName(live.Model, "models"))
	}
	if !d.Config.Given {
		out["config"] = cty.StringVal(ResourceName(live.Config, "configs"))
	}
	return out
}

// planned are the attributes of a rollout that a plan of it knows.
func (r *comparedRollout) planned() map[string]cty.Value {
	out := map[string]cty.Value{}
	if r.change.EndpointID != "" {
		out["endpoint_id"] = cty.StringVal(r.change.EndpointID)
	}
	if r.spec.Source != "" {
		out["source_deployment_id"] = cty.StringVal(r.spec.Source)
	}
	if r.spec.Target != "" {
		out["target_deployment_id"] = cty.StringVal(r.spec.Target)
	}
	if r.change.Journey != nil {
		shown(out, *r.change.Journey, r.change.Digest)
	}
	return out
}

func shown(out map[string]cty.Value, j Journey, digest string) {
	out["journey"], out["facts"], out["findings"] = valueOf(ShownSteps(j)), valueOf(FactsOf(j)), valueOf(ShownFindings(j))
	out["summary"] = cty.StringVal(j.Summary())
	if digest != "" {
		out["spec_digest"] = cty.StringVal(digest)
	}
}

// showRollout fills in what the engine tells of a rollout. Where a door goes on waiting,
// or steers, what it will find is not known.
func (c *Change) showRollout(d declaration.Rollout, live api.Rollout, t rollout.Timings) {
	values := map[string]cty.Value{
		"id": cty.StringVal(live.ID), "endpoint_id": cty.StringVal(live.EndpointID), "target_deployment_id": cty.StringVal(live.TargetDeploymentID),
		"source_deployment_id": cty.StringVal(live.SourceDeploymentID),
		"state":                cty.StringVal(string(StateOf(live))), "condition": valueOf(ConditionOf(live.Status.Condition)),
		"current_traffic_percent": cty.Zero, "current_step": cty.NullVal(cty.Number),
		"in_effect": valueOf(InEffectOf(live)), "drift": valueOf(DriftTold(live)),
	}
	if live.CurrentTrafficPercent != nil {
		values["current_traffic_percent"] = cty.NumberIntVal(int64(*live.CurrentTrafficPercent))
	}
	if live.CurrentStep != nil {
		values["current_step"] = cty.NumberIntVal(int64(*live.CurrentStep) + 1)
	}
	if c.Journey != nil {
		shown(values, *c.Journey, c.Digest)
	}
	c.before = overlay(d.Attributes, values)
	c.after = c.before
	if !c.changesInJSON() {
		return
	}
	loose := map[string]cty.Value{}
	for _, name := range []string{"state", "condition", "current_traffic_percent", "current_step", "drift"} {
		loose[name] = cty.UnknownVal(cty.DynamicPseudoType)
	}
	if d.Wait.Value && c.Journey != nil {
		again := NewJourney(c.specOrNone(), Known{Timeout: d.Timeouts.Update.Value}, t)
		shown(loose, again, c.Digest)
	}
	c.after = overlay(c.after, loose)
}

func (c *Change) specOrNone() rollout.Spec {
	if c.Declared.Rollout == nil {
		return rollout.Spec{}
	}
	return c.Declared.Rollout.Spec
}

// changesInJSON reports whether the JSON of a plan has a change for it: a wait that goes
// on is an update there, as it is in Terraform.
func (c Change) changesInJSON() bool {
	return c.Pending() || c.Waits && c.Declared.Rollout != nil && c.Declared.Rollout.Wait.Value
}

// sorted is a split in the order of its deployments.
func sorted(split []api.TrafficWeight) []api.TrafficWeight {
	out := slices.Clone(split)
	slices.SortFunc(out, func(a, b api.TrafficWeight) int { return strings.Compare(a.DeploymentID, b.DeploymentID) })
	return out
}
