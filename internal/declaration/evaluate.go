package declaration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// secret marks what follows from a sensitive variable.
type secret struct{}

// standIn says what an evaluator puts where only an engine gives the value.
type standIn int

const (
	// unknowns are marked with their Ref, so that what follows from them is known to.
	unknowns standIn = iota
	// tokens are texts that nothing else is: a value that is one was passed on as it is.
	tokens
)

// evaluator gives each node its value, in an order in which all that a node refers
// to has its value already. Each folder is evaluated twice: with unknowns, which is
// its meaning, and with tokens, which tells an id that is passed on from a text that
// is made from one. Where several ids had a part in a value it is evaluated once more
// with one token only.
type evaluator struct {
	module    *module
	report    *reporter
	standIn   standIn
	only      *Ref // the one with a token; nil for all
	assigned  map[string]assigned
	known     map[Ref]cty.Value
	values    map[nodeID]cty.Value
	instances map[nodeID][]*instance
	expanded  map[nodeID][]*instance // of the first evaluation, for the second
	total     int
	outputs   []Output
	checks    []Check
}

// instance is one thing that a resource block declares.
type instance struct {
	node    *node
	address Address
	scope   map[string]cty.Value // each or count
	values  map[string]cty.Value // of all attributes, in their forms
	places  places
}

// evaluate runs one expression, unless its cost is beyond bounds.
func evaluate(report *reporter, e hclsyntax.Expression, ctx *hcl.EvalContext) (v cty.Value, ok bool) {
	if boundOf(e, ctx) > mostWork {
		report.refuse(e.Range(), "Too much work in one expression", "Its result could be far larger than any rollout needs.", "use smaller collections, or fewer loops within each other")
		return cty.DynamicVal, false
	}
	defer func() { // a fault of a function must not end a server that reads other folders
		if p := recover(); p != nil {
			report.refuse(e.Range(), "This expression cannot be evaluated", fmt.Sprint(p), "")
			v, ok = cty.DynamicVal, false
		}
	}()
	v, diags := e.Value(ctx)
	report.takeCalls(diags)
	return v, !diags.HasErrors()
}

// takeCalls is take, with a word on functions that are not evaluated here.
func (r *reporter) takeCalls(diags hcl.Diagnostics) {
	before := len(r.found)
	r.take(diags)
	for i := before; i < len(r.found); i++ {
		d := &r.found[i]
		if d.Summary != "Call to unknown function" {
			continue
		}
		if strings.Contains(d.Detail, `namespace "provider::`) {
			d.Summary, d.Detail, d.Hint = "Only Terraform can evaluate a provider's functions", "", "write the value, make it a variable, or run this folder under Terraform"
			continue
		}
		_, rest, _ := strings.Cut(d.Detail, "\"")
		name, _, _ := strings.Cut(rest, "\"")
		if slices.Contains(onlyTerraform, name) {
			d.Summary, d.Detail, d.Hint = fmt.Sprintf("Only Terraform can evaluate %s()", name), "It looks at files, time or state, or is not among the functions that are evaluated here.", "write the value, make it a variable, or run this folder under Terraform"
		}
	}
}

func (e *evaluator) run(ordered []*node) {
	for _, n := range ordered {
		switch n.id.kind {
		case variableNode:
			e.values[n.id] = e.bounded(n, e.variable(n))
		case localNode:
			v, _ := evaluate(e.report, n.expr, e.context(n, nil))
			e.values[n.id] = e.bounded(n, v)
		case dataNode:
			e.values[n.id] = cty.DynamicVal
		case resourceNode:
			e.values[n.id] = e.resource(n)
		case outputNode:
			e.output(n)
		case checkNode:
			e.check(n)
		}
	}
}

func (e *evaluator) bounded(n *node, v cty.Value) cty.Value {
	if size(v) > largestValue {
		e.report.refuse(n.at, fmt.Sprintf("%s is too large", n.id), "", "no rollout needs a value of this size")
		return cty.DynamicVal
	}
	return v
}

// context holds what a node refers to and nothing else.
func (e *evaluator) context(n *node, scope map[string]cty.Value) *hcl.EvalContext {
	groups := map[string]map[string]cty.Value{}
	put := func(group, name string, v cty.Value) {
		if groups[group] == nil {
			groups[group] = map[string]cty.Value{}
		}
		groups[group][name] = v
	}
	data := map[string]map[string]cty.Value{}
	for _, id := range n.distinct() {
		v, ok := e.values[id]
		if !ok {
			v = cty.DynamicVal
		}
		switch id.kind {
		case dataNode:
			if data[id.typ] == nil {
				data[id.typ] = map[string]cty.Value{}
			}
			data[id.typ][id.name] = v
		case resourceNode:
			put(id.typ, id.name, v)
		case variableNode, localNode, outputNode, checkNode:
			put(string(id.kind), id.name, v)
		}
	}
	for typ, byName := range data {
		put("data", typ, cty.ObjectVal(byName))
	}
	out := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{
		"path":      cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("."), "root": cty.StringVal("."), "cwd": cty.StringVal(".")}),
		"terraform": cty.ObjectVal(map[string]cty.Value{"workspace": cty.StringVal("default")}),
	}}
	for group, values := range groups {
		out.Variables[group] = cty.ObjectVal(values)
	}
	for name, v := range scope {
		out.Variables[name] = v
	}
	return out
}

// onlyKnown refuses what a block does not have.
func (r *reporter) onlyKnown(b *hclsyntax.Body, what string, attributes, blocks []string) {
	for _, a := range sortedAttributes(b) {
		if !slices.Contains(attributes, a.Name) {
			r.refuse(a.NameRange, fmt.Sprintf("Unknown attribute %q in a %s", a.Name, what), "", nearest(a.Name, attributes))
		}
	}
	for _, inner := range b.Blocks {
		if slices.Contains(blocks, inner.Type) {
			continue
		}
		if slices.Contains(attributes, inner.Type) {
			r.refuse(inner.TypeRange, fmt.Sprintf("%s is an attribute, not a block", inner.Type), "", fmt.Sprintf("write %s = { … }, with an equals sign", inner.Type))
			continue
		}
		r.refuse(inner.TypeRange, fmt.Sprintf("Unknown block %q in a %s", inner.Type, what), "", nearest(inner.Type, slices.Concat(attributes, blocks)))
	}
}

func (e *evaluator) output(n *node) {
	e.report.onlyKnown(n.body, "output", []string{"value", "description", "sensitive", "depends_on", "ephemeral", "deprecated", "type"}, []string{"precondition"})
	a, ok := n.body.Attributes["value"]
	if !ok {
		e.report.refuse(n.at, fmt.Sprintf("Output %q has no value", n.id.name), "", "")
		return
	}
	out := Output{Name: n.id.name, Range: a.Expr.Range(), Sensitive: e.flagOf(n, "sensitive", false)}
	if d, ok := n.body.Attributes["description"]; ok {
		if v, ok := evaluate(e.report, d.Expr, &hcl.EvalContext{}); ok && v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
			out.Description = v.AsString()
		}
	}
	v, ok := evaluate(e.report, a.Expr, e.context(n, nil))
	if !ok {
		return
	}
	v, marks := v.UnmarkDeep()
	out.Value = v
	if _, is := marks[secret{}]; is && !out.Sensitive {
		e.report.refuse(a.Expr.Range(), fmt.Sprintf("Output %q shows a sensitive value", n.id.name), "", "write sensitive = true into the output")
		out.Sensitive = true
	}
	out.Known = v.IsWhollyKnown()
	if out.Known && !out.Sensitive && size(v) <= largestValue {
		if b, err := ctyjson.Marshal(v, v.Type()); err == nil {
			out.JSON = string(b)
		}
	}
	e.outputs = append(e.outputs, out)
}

// meta are the attributes that every resource has.
var meta = []string{"count", "for_each", "depends_on", "provider"}

// resource evaluates a resource block for each of its instances.
func (e *evaluator) resource(n *node) cty.Value {
	kind := Kind(n.id.typ)
	attributes := kinds[kind]
	e.report.onlyKnown(withoutComputed(e.report, n.body, attributes), string(kind), slices.Concat(settable(attributes), meta), []string{"lifecycle"})
	found := e.expanded[n.id]
	if e.expanded == nil {
		found = e.expand(n)
	}
	var values []cty.Value
	byKey := map[string]cty.Value{}
	for _, from := range found {
		i := &instance{node: n, address: from.address, scope: from.scope, values: map[string]cty.Value{}, places: places{header: n.at, exprs: map[string]hclsyntax.Expression{}}}
		e.attributes(i, attributes)
		e.instances[n.id] = append(e.instances[n.id], i)
		v := cty.ObjectVal(i.values)
		values = append(values, v)
		if each, ok := i.scope["each"]; ok {
			byKey[each.GetAttr("key").AsString()] = v
		}
	}
	switch {
	case n.body.Attributes["count"] != nil:
		return cty.TupleVal(values)
	case n.body.Attributes["for_each"] != nil:
		return cty.ObjectVal(byKey)
	case len(values) == 1:
		return values[0]
	}
	return cty.DynamicVal
}

// withoutComputed refuses attributes that only an engine gives and returns the body
// without them.
func withoutComputed(report *reporter, b *hclsyntax.Body, attributes []attribute) *hclsyntax.Body {
	out := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, Blocks: b.Blocks}
	for name, a := range b.Attributes {
		if known, ok := find(attributes, name); ok && known.need == computed {
			report.refuse(a.NameRange, fmt.Sprintf("%s cannot be set", name), "The engine gives it.", "leave it out")
			continue
		}
		out.Attributes[name] = a
	}
	return out
}

func (e *evaluator) attributes(i *instance, attributes []attribute) {
	ctx := e.context(i.node, i.scope)
	for _, a := range attributes {
		written, ok := i.node.body.Attributes[a.name]
		var v cty.Value
		if ok && a.need != computed {
			i.places.exprs[a.name] = written.Expr
			raw, fine := evaluate(e.report, written.Expr, ctx)
			if !fine {
				i.values[a.name] = cty.UnknownVal(a.form.cty())
				continue
			}
			c := &conformer{report: e.report, expr: written.Expr, name: a.name}
			v = c.value(raw, a.form, nil)
		}
		i.values[a.name] = e.filled(i, a, v)
	}
}

// filled puts a default, or what only the engine gives, in the place of nothing.
func (e *evaluator) filled(i *instance, a attribute, v cty.Value) cty.Value {
	if v != cty.NilVal {
		if plain, _ := v.Unmark(); !plain.IsNull() {
			return v
		}
	}
	switch {
	case a.need == required:
		e.report.refuse(i.places.at([]string{a.name}), fmt.Sprintf("Missing %s in %s", a.name, i.address), "It is required.", "")
		return cty.UnknownVal(a.form.cty())
	case a.need == computed || a.need == optionalComputed:
		return e.engineValue(Ref{Address: i.address, Attribute: a.name}, a.form)
	case a.fallback != cty.NilVal:
		return a.fallback
	}
	return cty.NullVal(a.form.cty())
}

func (e *evaluator) engineValue(r Ref, f form) cty.Value {
	if v, ok := e.known[r]; ok {
		return v
	}
	if f.cty() != cty.String {
		return cty.UnknownVal(f.cty()).Mark(r)
	}
	if e.standIn == tokens && (e.only == nil || *e.only == r) {
		return cty.StringVal(token(r))
	}
	return cty.UnknownVal(cty.String).Mark(r)
}

// token is a text that no file holds by accident, and that neither upper nor lower
// leaves as it is.
func token(r Ref) string { return "\x01Ref:" + r.String() + "\x02" }

// expand lists a block's instances by count or for_each.
func (e *evaluator) expand(n *node) []*instance {
	address := Address{Kind: Kind(n.id.typ), Name: n.id.name}
	count, each := n.body.Attributes["count"], n.body.Attributes["for_each"]
	var out []*instance
	switch {
	case count != nil && each != nil:
		e.report.refuse(each.NameRange, "count and for_each together", "A block has one of them at most.", "")
	case count != nil:
		out = e.counted(n, address, count)
	case each != nil:
		out = e.forEach(n, address, each)
	default:
		out = []*instance{{address: address}}
	}
	if e.total += len(out); e.total > mostBlocks {
		e.report.refuse(n.at, "Too many resources", fmt.Sprintf("All blocks together may declare %d.", mostBlocks), "")
		return nil
	}
	return out
}

func (e *evaluator) counted(n *node, address Address, a *hclsyntax.Attribute) []*instance {
	v, ok := evaluate(e.report, a.Expr, e.context(n, nil))
	if !ok {
		return nil
	}
	v, _ = v.Unmark()
	if v.IsKnown() && !v.IsNull() {
		if c, err := convert.Convert(v, cty.Number); err == nil && c.AsBigFloat().IsInt() {
			if c.GreaterThan(cty.NumberIntVal(mostInstances)).True() || c.LessThan(cty.Zero).True() {
				e.report.refuse(a.Expr.Range(), "Invalid count", fmt.Sprintf("It is from 0 to %d.", mostInstances), "")
				return nil
			}
			total, _ := c.AsBigFloat().Int64()
			var out []*instance
			for i := range total {
				address.Instance = fmt.Sprintf("[%d]", i)
				out = append(out, &instance{address: address, scope: map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(i)})}})
			}
			return out
		}
	}
	e.notKnown(a, v, "count", "a whole number")
	return nil
}

func (e *evaluator) forEach(n *node, address Address, a *hclsyntax.Attribute) []*instance {
	v, ok := evaluate(e.report, a.Expr, e.context(n, nil))
	if !ok {
		return nil
	}
	v, _ = v.Unmark()
	t := v.Type()
	if !v.IsKnown() || v.IsNull() || !t.IsMapType() && !t.IsObjectType() && (!t.IsSetType() || t.ElementType() != cty.String && v.LengthInt() > 0) {
		e.notKnown(a, v, "for_each", "a map, or a set of strings: toset([…])")
		return nil
	}
	if v.LengthInt() > mostInstances {
		e.report.refuse(a.Expr.Range(), "Too many instances", fmt.Sprintf("At most %d of one block.", mostInstances), "")
		return nil
	}
	var out []*instance
	for it := v.ElementIterator(); it.Next(); {
		key, elem := it.Element()
		if t.IsSetType() {
			key = elem
		}
		if key, _ = key.Unmark(); !key.IsKnown() || key.IsNull() {
			e.notKnown(a, cty.UnknownVal(cty.String), "for_each", "made of known keys")
			return nil
		}
		address.Instance = fmt.Sprintf("[%q]", key.AsString())
		out = append(out, &instance{address: address, scope: map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": elem})}})
	}
	return out
}

func (e *evaluator) notKnown(a *hclsyntax.Attribute, v cty.Value, name, want string) {
	if !v.IsKnown() {
		e.report.refuse(a.Expr.Range(), name+" is not known before the engine answers", "How many things are declared must follow from the files alone.", "make it from variables and locals")
		return
	}
	e.report.refuse(a.Expr.Range(), "Invalid "+name, fmt.Sprintf("It must be %s; this is %s.", want, typeName(v.Type())), "")
}
