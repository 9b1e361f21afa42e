package planning

import (
	"encoding/json"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// The four views of a value that the JSON of a plan has: what is known of it, what is not,
// what of it is sensitive, and all of it. They are as terraform show -json has them, so
// that one policy reads both.

// known leaves out what is not known: attributes are dropped, elements become null since
// their order tells which is which. NilVal when nothing of it is known.
func known(v cty.Value) cty.Value {
	t := v.Type()
	switch {
	case !v.IsKnown():
		return cty.NilVal
	case v.IsNull(), t.IsPrimitiveType():
		return v
	case t.IsListType(), t.IsTupleType(), t.IsSetType():
		out := make([]cty.Value, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			k := known(e)
			if k == cty.NilVal {
				k = cty.NullVal(e.Type())
			}
			out = append(out, k)
		}
		return cty.TupleVal(out)
	case t.IsMapType(), t.IsObjectType():
		out := map[string]cty.Value{}
		for it := v.ElementIterator(); it.Next(); {
			name, e := it.Element()
			if k := known(e); k != cty.NilVal {
				out[name.AsString()] = k
			}
		}
		return cty.ObjectVal(out)
	}
	return v
}

// flags says of each part of a value whether it is so: true and false, objects without
// the attributes of which nothing is so.
func flags(v cty.Value, is func(cty.Value) bool) cty.Value {
	if is(v) {
		return cty.True
	}
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() {
		return cty.False
	}
	switch t := v.Type(); {
	case t.IsListType(), t.IsTupleType(), t.IsSetType():
		out := make([]cty.Value, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, flags(e, is))
		}
		return cty.TupleVal(out)
	case t.IsMapType(), t.IsObjectType():
		out := map[string]cty.Value{}
		for it := v.ElementIterator(); it.Next(); {
			name, e := it.Element()
			if f := flags(e, is); !f.RawEquals(cty.False) {
				out[name.AsString()] = f
			}
		}
		return cty.ObjectVal(out)
	}
	return cty.False
}

func isUnknown(v cty.Value) bool { return !v.IsKnown() }

// isSecret reports whether the value itself is marked, and not only a part of it.
func isSecret(v cty.Value) bool {
	_, marks := v.Unmark()
	return len(marks) > 0 && declaration.Secret(v)
}

// jsonOf is a value as JSON; null for none.
func jsonOf(v cty.Value) json.RawMessage {
	if v == cty.NilVal || !v.IsWhollyKnown() {
		return json.RawMessage("null")
	}
	v, _ = v.UnmarkDeep()
	b, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		panic("a known value always marshals: " + err.Error())
	}
	return b
}

// knownJSON is what is known of a value.
func knownJSON(v cty.Value) json.RawMessage {
	if v == cty.NilVal {
		return json.RawMessage("null")
	}
	plain, _ := v.UnmarkDeep()
	return jsonOf(known(plain))
}

// declaredJSON are all attributes as declared.
func (c Change) declaredJSON() json.RawMessage { return knownJSON(c.Declared.block().Attributes) }
