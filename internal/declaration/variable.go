package declaration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// assigned is a value given to a variable from outside.
type assigned struct {
	value cty.Value
	text  *string // from the environment or a flag: read when the type is known
	at    hcl.Range
	from  string
}

// gather collects the variables' values in Terraform's order: environment,
// terraform.tfvars, *.auto.tfvars by name, then what was asked for, in its order.
func gather(m *module, files []File, options Options) map[string]assigned {
	out := map[string]assigned{}
	for _, e := range options.Environ {
		name, value, ok := strings.Cut(e, "=")
		if name, found := strings.CutPrefix(name, "TF_VAR_"); ok && found {
			if _, declared := m.byID[nodeID{kind: variableNode, name: name}]; declared {
				out[name] = assigned{text: &value, from: "TF_VAR_" + name}
			}
		}
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return rank(filepath.Base(a.Name)) - rank(filepath.Base(b.Name)) })
	for _, f := range files {
		if isVariables(filepath.Base(f.Name)) {
			m.assignFile(out, f)
		}
	}
	for _, a := range options.Assign {
		if a.File != nil {
			if withinFile(m.report, *a.File) {
				m.assignFile(out, *a.File)
			}
			continue
		}
		if _, declared := m.byID[nodeID{kind: variableNode, name: a.Name}]; !declared {
			m.report.refuse(hcl.Range{}, fmt.Sprintf("No variable %q", inert(a.Name)), "A value was given for it.", m.nearestVariable(a.Name))
			continue
		}
		out[a.Name] = assigned{text: &a.Text, from: "the value given for " + a.Name}
	}
	return out
}

// rank puts terraform.tfvars before the others; files come sorted by name.
func rank(name string) int {
	switch name {
	case "terraform.tfvars":
		return 0
	case "terraform.tfvars.json":
		return 1
	}
	return 2
}

func (m *module) nearestVariable(name string) string {
	var known []string
	for _, n := range m.nodes {
		if n.id.kind == variableNode {
			known = append(known, n.id.name)
		}
	}
	return nearest(name, known)
}

func (m *module) assignFile(out map[string]assigned, f File) {
	values, places := m.readVariables(f)
	for _, name := range sortedKeys(values) {
		if _, declared := m.byID[nodeID{kind: variableNode, name: name}]; !declared {
			m.report.add(Warning, places[name], fmt.Sprintf("No variable %q", inert(name)), "Its value is not used.", m.nearestVariable(name))
			continue
		}
		out[name] = assigned{value: values[name], at: places[name], from: f.Name}
	}
}

func (m *module) readVariables(f File) (map[string]cty.Value, map[string]hcl.Range) {
	values, places := map[string]cty.Value{}, map[string]hcl.Range{}
	if strings.HasSuffix(f.Name, ".json") {
		at := hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.InitialPos}
		all, err := readJSON(f.Bytes)
		if err != nil {
			m.report.refuse(at, "Not a JSON object", err.Error(), "")
			return nil, nil
		}
		for name := range all {
			places[name] = at
		}
		return all, places
	}
	parsed, diags := hclsyntax.ParseConfig(f.Bytes, f.Name, hcl.InitialPos)
	m.report.take(diags)
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok || diags.HasErrors() {
		return nil, nil
	}
	for _, b := range body.Blocks {
		m.report.refuse(b.DefRange(), "A block in a file of values", "A .tfvars file has lines of the form name = value.", "")
	}
	for _, a := range sortedAttributes(body) {
		if v, ok := evaluate(m.report, a.Expr, &hcl.EvalContext{}); ok {
			values[a.Name], places[a.Name] = v, a.SrcRange
		}
	}
	return values, places
}

// readJSON reads an object of values. Numbers stay exact, but short enough.
func readJSON(b []byte) (map[string]cty.Value, error) {
	tokens, depth := json.NewDecoder(bytes.NewReader(b)), 0
	tokens.UseNumber()
	for {
		t, err := tokens.Token()
		if err == io.EOF { //nolint:errorlint // the decoder's own end, never wrapped
			break
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case json.Delim:
			if depth++; t == '}' || t == ']' {
				depth -= 2
			}
			if depth > deepest {
				return nil, fmt.Errorf("it is more than %d deep", deepest)
			}
		case json.Number:
			if !plainNumber(t.String()) {
				return nil, fmt.Errorf("a number of more than %d characters or an exponent above %d", longestNumber, largestExponent)
			}
		}
	}
	t, err := ctyjson.ImpliedType(b)
	if err != nil {
		return nil, err
	}
	if !t.IsObjectType() {
		return nil, fmt.Errorf("it is %s", typeName(t))
	}
	v, err := ctyjson.Unmarshal(b, t)
	if err != nil {
		return nil, err
	}
	return v.AsValueMap(), nil
}

// variable is the value of a variable block.
func (e *evaluator) variable(n *node) cty.Value {
	t, defaults, hasType := cty.DynamicPseudoType, (*typeexpr.Defaults)(nil), false
	if a, ok := n.body.Attributes["type"]; ok {
		var diags hcl.Diagnostics
		if t, defaults, diags = typeexpr.TypeConstraintWithDefaults(a.Expr); diags.HasErrors() {
			e.report.take(diags)
			return cty.DynamicVal
		}
		hasType = true
	}
	e.report.onlyKnown(n.body, "variable", []string{"type", "default", "description", "sensitive", "nullable", "ephemeral", "deprecated"}, []string{"validation"})
	v, at, from := e.given(n, t, hasType)
	if v == cty.NilVal {
		return cty.UnknownVal(t.WithoutOptionalAttributesDeep())
	}
	if defaults != nil && !v.IsNull() {
		v = defaults.Apply(v)
	}
	out, err := convert.Convert(v, t)
	if err != nil {
		e.report.refuse(at, fmt.Sprintf("Wrong value for variable %q", n.id.name), fmt.Sprintf("From %s: %s.", inert(from), err), "")
		return cty.UnknownVal(t.WithoutOptionalAttributesDeep())
	}
	if out.IsNull() && !e.flagOf(n, "nullable", true) {
		if a, ok := n.body.Attributes["default"]; ok {
			out, _ = evaluate(e.report, a.Expr, &hcl.EvalContext{Functions: functions})
			if c, err := convert.Convert(out, t); err == nil {
				out = c
			}
		} else {
			e.report.refuse(at, fmt.Sprintf("Variable %q must not be null", n.id.name), "", "")
		}
	}
	e.validate(n, out)
	if e.flagOf(n, "sensitive", false) {
		out = out.Mark(secret{})
	}
	return out
}

// given is a variable's value before its conversion, and where it comes from; NilVal
// when there is none, which is refused.
func (e *evaluator) given(n *node, t cty.Type, hasType bool) (cty.Value, hcl.Range, string) {
	if a, ok := e.assigned[n.id.name]; ok {
		if a.at.Filename == "" {
			a.at = n.at
		}
		if a.text == nil {
			return a.value, a.at, a.from
		}
		if !hasType || t.IsPrimitiveType() {
			return cty.StringVal(*a.text), a.at, a.from
		}
		return e.parseText(*a.text, a.from), a.at, a.from
	}
	if a, ok := n.body.Attributes["default"]; ok {
		v, ok := evaluate(e.report, a.Expr, &hcl.EvalContext{})
		if !ok {
			return cty.NilVal, a.Expr.Range(), ""
		}
		return v, a.Expr.Range(), "its default"
	}
	e.report.refuse(n.at, fmt.Sprintf("No value for variable %q", n.id.name), "It has no default, and none was given.",
		fmt.Sprintf("give it in terraform.tfvars, as TF_VAR_%s, or as a flag", n.id.name))
	return cty.NilVal, n.at, ""
}

func (e *evaluator) parseText(text, from string) cty.Value {
	if !withinFile(e.report, File{Name: from, Bytes: []byte(text)}) {
		return cty.NilVal
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), from, hcl.InitialPos)
	e.report.take(diags)
	if diags.HasErrors() {
		return cty.NilVal
	}
	v, ok := evaluate(e.report, expr, &hcl.EvalContext{})
	if !ok {
		return cty.NilVal
	}
	return v
}

// flagOf is a literal bool of a block.
func (e *evaluator) flagOf(n *node, name string, fallback bool) bool {
	a, ok := n.body.Attributes[name]
	if !ok {
		return fallback
	}
	v, ok := evaluate(e.report, a.Expr, &hcl.EvalContext{})
	if !ok || !v.IsKnown() || v.IsNull() || v.Type() != cty.Bool {
		e.report.refuse(a.Expr.Range(), name+" is true or false", "", "")
		return fallback
	}
	return v.True()
}

// validate runs a variable's validation blocks. What looks at anything but the
// variable itself is left to Terraform, with a note.
func (e *evaluator) validate(n *node, v cty.Value) {
	ctx := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{n.id.name: v})}}
	for _, b := range n.body.Blocks {
		condition, ok := b.Body.Attributes["condition"]
		if b.Type != "validation" || !ok {
			continue
		}
		if looksElsewhere(condition.Expr, n.id.name) {
			e.report.add(Note, condition.Expr.Range(), "This validation is not evaluated here", "It looks at more than its own variable.", "")
			continue
		}
		holds, ok := evaluate(e.report, condition.Expr, ctx)
		if !ok || !holds.IsKnown() || holds.IsNull() {
			continue
		}
		if c, err := convert.Convert(holds, cty.Bool); err != nil || c.True() {
			continue
		}
		said := "The condition does not hold."
		if m, ok := b.Body.Attributes["error_message"]; ok {
			if text, ok := evaluate(e.report, m.Expr, ctx); ok && text.IsKnown() && !text.IsNull() && text.Type() == cty.String {
				said = text.AsString()
			}
		}
		e.report.refuse(condition.Expr.Range(), fmt.Sprintf("Wrong value for variable %q", n.id.name), said, "")
	}
}

func looksElsewhere(x hclsyntax.Expression, variable string) bool {
	return slices.ContainsFunc(x.Variables(), func(t hcl.Traversal) bool {
		steps := attributeSteps(t)
		return t.RootName() != "var" || len(steps) == 0 || steps[0] != variable
	})
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
