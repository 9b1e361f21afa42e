package declaration

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// conformer brings the value of one attribute into its form: types as Terraform
// converts them, defaults filled in, every deviation refused where it is written.
type conformer struct {
	report *reporter
	expr   hclsyntax.Expression
	name   string
}

func (c *conformer) refuse(path []string, summary, detail, hint string) {
	c.report.refuse(locate(c.expr, path), summary, detail, hint)
}

// label is the attribute's path for messages.
func (c *conformer) label(path []string) string {
	out := c.name
	for _, p := range path {
		if !strings.HasPrefix(p, "[") {
			out += "."
		}
		out += p
	}
	return out
}

// value gives a value of f.cty(). What is refused becomes unknown, so that nothing
// else is said about it.
func (c *conformer) value(v cty.Value, f form, path []string) cty.Value {
	v, marks := v.Unmark()
	return c.plain(v, f, path).WithMarks(marks)
}

func (c *conformer) plain(v cty.Value, f form, path []string) cty.Value {
	refused := cty.UnknownVal(f.cty())
	switch {
	case v.IsNull():
		return cty.NullVal(f.cty())
	case !v.IsKnown():
		if !mayBe(v.Type(), f) {
			c.wrong(v, f, path)
		}
		return cty.UnknownVal(f.cty())
	}
	switch f.of {
	case list:
		return c.list(v, f, path)
	case object:
		return c.object(v, f, path)
	case anyText, duration, enum, number, wholeNumber, boolean, given:
	}
	out, err := convert.Convert(v, f.cty())
	if err != nil || out.IsNull() {
		c.wrong(v, f, path)
		return refused
	}
	if !c.fits(out, f, path) {
		return refused
	}
	return out
}

func mayBe(t cty.Type, f form) bool {
	switch {
	case t == cty.DynamicPseudoType:
		return true
	case f.of == list:
		return t.IsListType() || t.IsTupleType() || t.IsSetType()
	case f.of == object:
		return t.IsObjectType() || t.IsMapType()
	}
	return t.IsPrimitiveType()
}

func (c *conformer) wrong(v cty.Value, f form, path []string) {
	c.refuse(path, "Wrong type for "+c.label(path), fmt.Sprintf("%s is required, this is %s.", strings.ToUpper(f.wantText[:1])+f.wantText[1:], typeName(v.Type())), "")
}

func typeName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "a bool"
	case t.IsTupleType(), t.IsListType(), t.IsSetType():
		return "a list"
	case t.IsObjectType(), t.IsMapType():
		return "an object"
	}
	return t.FriendlyName()
}

// fits checks a known value that has its type.
func (c *conformer) fits(v cty.Value, f form, path []string) bool {
	switch f.of {
	case duration:
		if _, err := time.ParseDuration(strings.TrimSpace(v.AsString())); err != nil {
			c.refuse(path, "Not a duration: "+c.label(path), fmt.Sprintf("%q is not a duration.", v.AsString()), "write a number with a unit, such as \"600s\", \"10m\" or \"1h30m\"")
			return false
		}
	case anyText:
		if len(f.choices) > 0 && !slices.Contains(f.choices, v.AsString()) {
			c.refuse(path, "Invalid "+c.label(path), fmt.Sprintf("%q is none of %s.", v.AsString(), strings.Join(f.choices, ", ")), nearest(v.AsString(), f.choices))
			return false
		}
	case wholeNumber:
		if n := v.AsBigFloat(); !n.IsInt() || n.Cmp(big.NewFloat(1e9)) > 0 || n.Cmp(big.NewFloat(-1e9)) < 0 {
			c.refuse(path, "Wrong type for "+c.label(path), fmt.Sprintf("A whole number (integer) is required, this is %s.", n.Text('g', 12)), "")
			return false
		}
	case number, boolean, enum, list, object, given:
	}
	if f.atLeast != nil && v.AsBigFloat().Cmp(big.NewFloat(*f.atLeast)) < 0 {
		c.refuse(path, "Invalid "+c.label(path), fmt.Sprintf("It must be at least %v, this is %s.", *f.atLeast, v.AsBigFloat().Text('g', 12)), "")
		return false
	}
	return true
}

func (c *conformer) list(v cty.Value, f form, path []string) cty.Value {
	if !mayBe(v.Type(), f) {
		c.wrong(v, f, path)
		return cty.UnknownVal(f.cty())
	}
	var out []cty.Value
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		at := append(slices.Clone(path), fmt.Sprintf("[%d]", len(out)))
		elem := c.value(e, *f.elem, at)
		if plain, _ := elem.Unmark(); plain.IsNull() {
			if raw, _ := e.Unmark(); raw.IsNull() {
				c.refuse(at, "Null in a list: "+c.label(at), "Each element must be "+f.elem.wantText+".", "leave it out")
				elem = cty.UnknownVal(f.elem.cty())
			}
		}
		out = append(out, elem)
	}
	if len(out) == 0 {
		return cty.ListValEmpty(f.elem.cty())
	}
	return cty.ListVal(out)
}

func (c *conformer) object(v cty.Value, f form, path []string) cty.Value {
	if !mayBe(v.Type(), f) {
		c.wrong(v, f, path)
		return cty.UnknownVal(f.cty())
	}
	have := map[string]cty.Value{}
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		name := key.AsString()
		have[name] = e
		if _, ok := find(f.fields, name); !ok {
			c.report.refuse(keyRange(c.expr, path, name), "Unknown attribute "+inert(c.label(append(slices.Clone(path), name))),
				"Terraform would drop it without a word.", nearest(name, names(f.fields)))
		}
	}
	out := map[string]cty.Value{}
	for _, a := range f.fields {
		out[a.name] = c.field(have, a, path)
	}
	return cty.ObjectVal(out)
}

func (c *conformer) field(have map[string]cty.Value, a attribute, path []string) cty.Value {
	at := append(slices.Clone(path), a.name)
	v, ok := have[a.name]
	if raw, _ := v.Unmark(); !ok || raw.IsNull() {
		switch {
		case a.need == required:
			c.refuse(at, "Missing "+c.label(at), strings.ToUpper(a.form.wantText[:1])+a.form.wantText[1:]+" is required.", "")
			return cty.UnknownVal(a.form.cty())
		case a.fallback != cty.NilVal:
			return a.fallback
		}
		return cty.NullVal(a.form.cty())
	}
	return c.value(v, a.form, at)
}
