package planning

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// providerName is how the JSON of a plan names the provider of our resources.
const providerName = "registry.terraform.io/sluice-dev/sluice"

// schemaVersions of the provider's resources that are above 0.
var schemaVersions = map[declaration.Kind]int{declaration.RolloutKind: 1}

// planJSON is a plan as terraform show -json prints it, of format 1.2.
type planJSON struct {
	FormatVersion   string                  `json:"format_version"`
	Variables       map[string]variableJSON `json:"variables,omitempty"`
	PlannedValues   valuesJSON              `json:"planned_values"`
	ResourceChanges []resourceChangeJSON    `json:"resource_changes,omitempty"`
	OutputChanges   map[string]changeJSON   `json:"output_changes,omitempty"`
	PriorState      *stateJSON              `json:"prior_state,omitempty"`
	Configuration   configurationJSON       `json:"configuration"`
	Checks          []checkJSON             `json:"checks,omitempty"`
	Applyable       bool                    `json:"applyable"`
	Complete        bool                    `json:"complete"`
	Errored         bool                    `json:"errored"`
	Sluice          planExtra               `json:"sluice"`
}

// planExtra is what Terraform's JSON has no place for.
type planExtra struct {
	Digest  string           `json:"plan_digest"`
	Summary string           `json:"summary"`
	Changes []changeExtraDoc `json:"changes"`
}

type changeExtraDoc struct {
	Address   string         `json:"address"`
	Action    Action         `json:"action"`
	ID        string         `json:"id,omitempty"`
	Control   string         `json:"control,omitempty"`
	Fields    []fieldJSON    `json:"fields,omitempty"`
	Findings  []ShownFinding `json:"live_findings,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	Blocked   string         `json:"blocked,omitempty"`
	BlockedBy string         `json:"blocked_by,omitempty"`
	Protected bool           `json:"protected,omitempty"`
}

type fieldJSON struct {
	Path     string `json:"path"`
	Whose    Whose  `json:"whose,omitempty"`
	Replaces bool   `json:"replaces,omitempty"`
}

type variableJSON struct {
	Value json.RawMessage `json:"value"`
}

type stateJSON struct {
	FormatVersion string     `json:"format_version"`
	Values        valuesJSON `json:"values"`
}

type valuesJSON struct {
	Outputs    map[string]outputJSON `json:"outputs,omitempty"`
	RootModule moduleJSON            `json:"root_module"`
}

type moduleJSON struct {
	Resources []resourceJSON `json:"resources,omitempty"`
}

type outputJSON struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}

type resourceJSON struct {
	Address       string          `json:"address"`
	Mode          string          `json:"mode"`
	Type          string          `json:"type"`
	Name          string          `json:"name"`
	Index         any             `json:"index,omitempty"`
	ProviderName  string          `json:"provider_name"`
	SchemaVersion int             `json:"schema_version"`
	Values        json.RawMessage `json:"values"`
	Sensitive     json.RawMessage `json:"sensitive_values"`
}

type resourceChangeJSON struct {
	Address         string     `json:"address"`
	PreviousAddress string     `json:"previous_address,omitempty"`
	Mode            string     `json:"mode"`
	Type            string     `json:"type"`
	Name            string     `json:"name"`
	Index           any        `json:"index,omitempty"`
	ProviderName    string     `json:"provider_name"`
	Change          changeJSON `json:"change"`
	ActionReason    string     `json:"action_reason,omitempty"`
}

type changeJSON struct {
	Actions         []string        `json:"actions"`
	Before          json.RawMessage `json:"before"`
	After           json.RawMessage `json:"after,omitempty"`
	AfterUnknown    json.RawMessage `json:"after_unknown"`
	BeforeSensitive json.RawMessage `json:"before_sensitive"`
	AfterSensitive  json.RawMessage `json:"after_sensitive"`
	ReplacePaths    [][]string      `json:"replace_paths,omitempty"`
}

type checkJSON struct {
	Address   map[string]string   `json:"address"`
	Status    string              `json:"status"`
	Instances []checkInstanceJSON `json:"instances,omitempty"`
}

type checkInstanceJSON struct {
	Address  map[string]string `json:"address"`
	Status   string            `json:"status"`
	Problems []checkProblem    `json:"problems,omitempty"`
}

type checkProblem struct {
	Message string `json:"message"`
}

// JSON is the plan in the shape of terraform show -json for a saved plan, so that one
// policy serves both doors: resource_changes, planned_values, prior_state, output_changes,
// variables and configuration have its names and values for our resources. What the engine
// says of a rollout that is made stands in prior_state as a data source
// sluice_rollout_preview of the same spec would have it, under the rollout's own name,
// whether the folder has such a data source or not. What only this door tells stands under
// the key sluice. Values of sensitive variables are in it, as they
// are in Terraform's: keep it where plans are kept.
func (cs Changes) JSON() ([]byte, error) {
	doc := planJSON{
		FormatVersion: "1.2", Variables: cs.variablesJSON(), Configuration: cs.configurationJSON(), Checks: cs.checksJSON(),
		OutputChanges: cs.outputChanges(), Applyable: len(cs.Pending()) > 0, Complete: true,
		Sluice: planExtra{Digest: cs.Digest(), Summary: cs.Summary(), Changes: []changeExtraDoc{}},
	}
	prior := valuesJSON{}
	for _, c := range cs.List {
		doc.ResourceChanges = append(doc.ResourceChanges, c.resourceChange())
		doc.Sluice.Changes = append(doc.Sluice.Changes, c.extra())
		if c.Action != Delete {
			doc.PlannedValues.RootModule.Resources = append(doc.PlannedValues.RootModule.Resources, c.resource(c.after))
		}
		if c.ID != "" && c.before != cty.NilVal {
			prior.RootModule.Resources = append(prior.RootModule.Resources, c.resource(c.before))
		}
		if c.Ahead != nil {
			prior.RootModule.Resources = append(prior.RootModule.Resources, c.preview())
		}
	}
	byAddress(doc.PlannedValues.RootModule.Resources, func(r resourceJSON) string { return r.Address })
	byAddress(prior.RootModule.Resources, func(r resourceJSON) string { return r.Address })
	byAddress(doc.ResourceChanges, func(r resourceChangeJSON) string { return r.Address })
	doc.PlannedValues.Outputs = cs.outputs()
	doc.PriorState = &stateJSON{FormatVersion: "1.0", Values: prior}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func byAddress[T any](list []T, address func(T) string) {
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(address(a), address(b)) })
}

func (c Change) extra() changeExtraDoc {
	out := changeExtraDoc{Address: c.Address.String(), Action: c.Action, ID: c.ID, Control: c.Control.String(), Notes: c.Notes, Blocked: c.Blocked, BlockedBy: c.BlockedBy, Protected: c.Protected}
	for _, f := range c.Fields {
		out.Fields = append(out.Fields, fieldJSON{f.Path, f.Whose, f.Replaces})
	}
	for _, f := range c.Findings {
		out.Findings = append(out.Findings, f.Shown(snake(strings.TrimPrefix(f.Subject, "sluice."))))
	}
	return out
}

func (c Change) resourceChange() resourceChangeJSON {
	out := resourceChangeJSON{
		Address: c.Address.String(), Mode: "managed", Type: string(c.Kind), Name: c.Address.Name, Index: indexOf(c.Address), ProviderName: providerName,
		Change: changeJSON{Actions: c.terraformActions(), Before: knownJSON(c.before), After: knownJSON(c.after), BeforeSensitive: jsonOf(sensitivity(c.before)), AfterSensitive: jsonOf(sensitivity(c.after))},
	}
	if c.Previous != nil {
		out.PreviousAddress = c.Previous.String()
	}
	out.Change.AfterUnknown = json.RawMessage("{}")
	if c.after != cty.NilVal {
		if plain, _ := c.after.UnmarkDeep(); !plain.IsWhollyKnown() {
			out.Change.AfterUnknown = jsonOf(flags(plain, isUnknown))
		}
	}
	switch c.Action {
	case Replace:
		out.ActionReason = "replace_because_cannot_update"
		for _, f := range c.Fields {
			if f.Replaces {
				out.Change.ReplacePaths = append(out.Change.ReplacePaths, strings.Split(f.Path, "."))
			}
		}
	case Delete:
		out.ActionReason = "delete_because_no_resource_config"
	case NoOp, Create, Start, Steer, Update:
	}
	return out
}

func (c Change) terraformActions() []string {
	switch c.Action {
	case Create:
		return []string{"create"}
	case Replace:
		return []string{"delete", "create"}
	case Delete:
		return []string{"delete"}
	case Update, Start, Steer:
		return []string{"update"}
	case NoOp:
	}
	if c.changesInJSON() {
		return []string{"update"}
	}
	return []string{"no-op"}
}

func (c Change) resource(v cty.Value) resourceJSON {
	return resourceJSON{
		Address: c.Address.String(), Mode: "managed", Type: string(c.Kind), Name: c.Address.Name, Index: indexOf(c.Address), ProviderName: providerName,
		SchemaVersion: schemaVersions[c.Kind], Values: knownJSON(v), Sensitive: jsonOf(sensitivity(v)),
	}
}

// previewType is the data source whose values a rollout's live facts have.
const previewType = "sluice_rollout_preview"

// asked are the attributes of a rollout that its preview has too.
var asked = []string{
	"endpoint_id", "source_deployment_id", "target_deployment_id", "canary", "blue_green", "rolling", "metrics",
	"final_source_replicas", "final_target_replicas", "hold_source_until_complete", "circuit_breaker",
}

// preview is what was read of the engine for a rollout, as the data source of the same
// spec has it. A source that is left out is the one that was inferred.
func (c Change) preview() resourceJSON {
	values := map[string]cty.Value{}
	plain, _ := c.after.Unmark()
	for _, name := range asked {
		if plain.Type().HasAttribute(name) {
			values[name] = plain.GetAttr(name)
		}
	}
	values["source_deployment_id"] = orNull(c.Ahead.Spec.SourceDeploymentID)
	spec := cty.ObjectVal(values)
	return resourceJSON{
		Address: "data." + previewType + "." + c.Address.Name + c.Address.Instance, Mode: "data", Type: previewType, Name: c.Address.Name, Index: indexOf(c.Address), ProviderName: providerName,
		Values: joined(knownJSON(spec), raw(c.Ahead.Shown())), Sensitive: jsonOf(sensitivity(spec)),
	}
}

// joined is one object of two.
func joined(a, b json.RawMessage) json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, part := range []json.RawMessage{a, b} {
		if err := json.Unmarshal(part, &all); err != nil {
			panic("an object always unmarshals: " + err.Error())
		}
	}
	return raw(all)
}

// indexOf is the key of an instance: a number, a text, or nothing.
func indexOf(a declaration.Address) any {
	inner := strings.TrimSuffix(strings.TrimPrefix(a.Instance, "["), "]")
	if inner == "" {
		return nil
	}
	if n, err := strconv.Atoi(inner); err == nil {
		return n
	}
	text, err := strconv.Unquote(inner)
	if err != nil {
		return inner
	}
	return text
}

// sensitivity says which parts of a value are sensitive: false for a thing that is not.
func sensitivity(v cty.Value) cty.Value {
	if v == cty.NilVal {
		return cty.False
	}
	return flags(v, isSecret)
}

func (cs Changes) variablesJSON() map[string]variableJSON {
	out := map[string]variableJSON{}
	for _, v := range cs.Set.Variables {
		out[v.Name] = variableJSON{Value: knownJSON(v.Value)}
	}
	return out
}

func (cs Changes) outputs() map[string]outputJSON {
	out := map[string]outputJSON{}
	for _, o := range cs.Set.Outputs {
		shown := outputJSON{Sensitive: o.Sensitive}
		if o.Known {
			shown.Value = jsonOf(o.Value)
			if t, err := ctyjson.MarshalType(o.Value.Type()); err == nil {
				shown.Type = t
			}
		}
		out[o.Name] = shown
	}
	return out
}

// outputChanges tells each output as made, as changed, or, when nothing else changes, as
// it was: no door keeps the values of outputs.
func (cs Changes) outputChanges() map[string]changeJSON {
	action, stands := "create", false
	pending := false
	for _, c := range cs.List {
		stands = stands || c.ID != ""
		pending = pending || c.changesInJSON()
	}
	if stands {
		action = "update"
	}
	out := map[string]changeJSON{}
	for _, o := range cs.Set.Outputs {
		sensitive := raw(o.Sensitive)
		c := changeJSON{Actions: []string{action}, Before: raw(nil), After: knownJSON(o.Value), AfterUnknown: raw(false), BeforeSensitive: sensitive, AfterSensitive: sensitive}
		switch {
		case !o.Known:
			c.AfterUnknown = jsonOf(flags(o.Value, isUnknown))
			if known(o.Value) == cty.NilVal {
				c.After = nil
			}
		case !pending, o.Value.IsNull():
			c.Actions, c.Before = []string{"no-op"}, c.After
		}
		out[o.Name] = c
	}
	return out
}

func (cs Changes) checksJSON() []checkJSON {
	var out []checkJSON
	for _, c := range cs.Set.Checks {
		address := map[string]string{"kind": "check", "name": c.Name, "to_display": "check." + c.Name}
		one := checkInstanceJSON{Address: map[string]string{"to_display": "check." + c.Name}, Status: string(c.Status)}
		for _, p := range c.Problems {
			one.Problems = append(one.Problems, checkProblem{p})
		}
		out = append(out, checkJSON{Address: address, Status: string(c.Status), Instances: []checkInstanceJSON{one}})
	}
	byAddress(out, func(c checkJSON) string { return c.Address["name"] })
	return out
}
