package declaration

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// form is what a value must look like.
type form struct {
	of       formOf
	elem     *form       // of a list
	fields   []attribute // of an object
	prefix   string      // of an enum's full names
	choices  []string    // of a text; empty for any
	atLeast  *float64    // of a number
	opaque   cty.Type    // of what only an engine gives
	wantText string      // how a message names it
}

type formOf int

const (
	anyText formOf = iota
	duration
	enum // checked with the spec, where the message can name the choices
	number
	wholeNumber
	boolean
	list
	object
	given // by the engine
)

// need says who gives an attribute.
type need int

const (
	optional need = iota
	required
	computed         // by the engine alone
	optionalComputed // by the engine where it is left out
)

type attribute struct {
	name     string
	form     form
	need     need
	fallback cty.Value // NilVal for none
}

var (
	textForm     = form{of: anyText, wantText: "a string"}
	durationForm = form{of: duration, wantText: "a duration such as \"600s\" or \"10m\""}
	numberForm   = form{of: number, wantText: "a number"}
	wholeForm    = form{of: wholeNumber, wantText: "a whole number"}
	flagForm     = form{of: boolean, wantText: "true or false"}
	zero         = 0.0
)

func enumForm(prefix string) form { return form{of: enum, prefix: prefix, wantText: "a string"} }

func oneOf(choices ...string) form {
	return form{of: anyText, choices: choices, wantText: "a string"}
}

func objectForm(fields ...attribute) form {
	return form{of: object, fields: fields, wantText: "an object"}
}

func listForm(elem form) form { return form{of: list, elem: &elem, wantText: "a list of objects"} }

func must(name string, f form) attribute { return attribute{name: name, form: f, need: required} }
func may(name string, f form) attribute  { return attribute{name: name, form: f} }

func or(name string, f form, fallback cty.Value) attribute {
	return attribute{name: name, form: f, fallback: fallback}
}

func engineGives(t cty.Type, names ...string) []attribute {
	var out []attribute
	for _, n := range names {
		out = append(out, attribute{name: n, form: form{of: given, opaque: t}, need: computed})
	}
	return out
}

var timeoutsForm = objectForm(may("create", durationForm), may("update", durationForm), may("delete", durationForm))

// terraformAlone are the provider's kinds that this door leaves to Terraform. A split
// set by hand is a decision against its own history, which Terraform's state keeps.
var terraformAlone = []string{"sluice_traffic_split"}

// kinds are the attributes of each kind, as the provider's schema has them; a test
// walks that schema and fails when one is missing here.
var kinds = map[Kind][]attribute{
	EndpointKind: slices.Concat([]attribute{
		must("name", textForm),
		or("visibility", oneOf("PRIVATE", "INTERNAL"), cty.StringVal("PRIVATE")),
	}, engineGives(cty.String, "id", "qualified_name", "gateway_url"), engineGives(cty.DynamicPseudoType, "traffic_split")),

	DeploymentKind: slices.Concat([]attribute{
		must("endpoint_id", textForm),
		must("name", textForm),
		{name: "model", form: textForm, need: optionalComputed},
		{name: "config", form: textForm, need: optionalComputed},
		must("autoscaling", objectForm(
			must("min_replicas", form{of: wholeNumber, atLeast: &zero, wantText: "a whole number"}),
			must("max_replicas", form{of: wholeNumber, atLeast: &zero, wantText: "a whole number"}),
		)),
		or("initial_traffic_weight", form{of: number, atLeast: &zero, wantText: "a number"}, cty.Zero),
		or("wait_ready", flagForm, cty.True),
		may("timeouts", timeoutsForm),
	}, engineGives(cty.String, "id", "qualified_name", "hardware", "model_revision_id", "status"),
		engineGives(cty.Number, "live_min_replicas", "live_max_replicas", "ready_replicas")),

	RolloutKind: slices.Concat([]attribute{
		must("endpoint_id", textForm),
		{name: "source_deployment_id", form: textForm, need: optionalComputed},
		must("target_deployment_id", textForm),
		may("canary", objectForm(
			may("steps", listForm(objectForm(must("traffic", wholeForm), may("replicas", wholeForm)))),
			may("step_interval", durationForm),
		)),
		may("blue_green", objectForm()),
		may("rolling", objectForm()),
		may("metrics", listForm(metricForm)),
		or("final_source_replicas", wholeForm, cty.Zero),
		may("final_target_replicas", wholeForm),
		may("hold_source_until_complete", flagForm),
		may("circuit_breaker", objectForm(must("signed_by", textForm), must("rules", listForm(breakerRuleForm)))),
		or("on_parked", oneOf("warn", "silent"), cty.StringVal("warn")),
		or("destroy_behavior", oneOf("refuse", "cancel"), cty.StringVal("refuse")),
		or("on_timeout", oneOf("detach", "pause", "cancel"), cty.StringVal("detach")),
		or("desired_state", oneOf("completed", "paused", "promoted", "canceled"), cty.StringVal("completed")),
		may("reason", textForm),
		may("resume_token", textForm),
		or("wait", flagForm, cty.True),
		may("timeouts", timeoutsForm),
	}, engineGives(cty.String, "id", "state", "spec_digest", "summary"),
		engineGives(cty.Number, "current_traffic_percent", "current_step"),
		engineGives(cty.DynamicPseudoType, "condition", "in_effect", "drift", "journey", "facts", "findings")),
}

var (
	thresholdForm = objectForm(
		must("operator", enumForm(api.PrefixOperator)),
		or("value", numberForm, cty.Zero),
	)
	metricForm = objectForm(
		must("name", textForm),
		may("stat", enumForm(api.PrefixStat)),
		may("percentile", wholeForm),
		may("window", durationForm),
		may("regression_check", objectForm(
			must("direction", enumForm(api.PrefixDirection)),
			or("max_regression_percent", numberForm, cty.Zero),
		)),
		may("threshold_check", thresholdForm),
	)
	// breakerRuleForm is a gate without the check against the source.
	breakerRuleForm = objectForm(
		must("name", textForm),
		may("stat", enumForm(api.PrefixStat)),
		may("percentile", wholeForm),
		may("window", durationForm),
		must("threshold_check", thresholdForm),
	)
)

// cty is the type of values of a form.
func (f form) cty() cty.Type {
	switch f.of {
	case number, wholeNumber:
		return cty.Number
	case boolean:
		return cty.Bool
	case list:
		return cty.List(f.elem.cty())
	case object:
		types := map[string]cty.Type{}
		for _, a := range f.fields {
			types[a.name] = a.form.cty()
		}
		return cty.Object(types)
	case given:
		return f.opaque
	case anyText, duration, enum:
	}
	return cty.String
}

func names(attributes []attribute) []string {
	out := make([]string, 0, len(attributes))
	for _, a := range attributes {
		out = append(out, a.name)
	}
	return out
}

// settable are the names that a person may write.
func settable(attributes []attribute) []string {
	var out []string
	for _, a := range attributes {
		if a.need != computed {
			out = append(out, a.name)
		}
	}
	return out
}

func find(attributes []attribute, name string) (attribute, bool) {
	i := slices.IndexFunc(attributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return attribute{}, false
	}
	return attributes[i], true
}

// EngineGives are the attributes of a kind that an engine gives, some of them only where
// they are left out.
func EngineGives(k Kind) []string {
	var out []string
	for _, a := range kinds[k] {
		if a.need == computed || a.need == optionalComputed {
			out = append(out, a.name)
		}
	}
	return out
}
