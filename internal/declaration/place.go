package declaration

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// places finds where the values of a block are written.
type places struct {
	header hcl.Range
	exprs  map[string]hclsyntax.Expression
}

// of is the place of a field in the words of the wire or of HCL, for example
// "metrics[0].regressionCheck.direction". Where it is not written, it is what
// encloses it; at last the header.
func (p places) of(field string) hcl.Range {
	if field == "strategy" { // at the last one that is written
		for _, name := range []string{"rolling", "blue_green", "canary"} {
			if e, ok := p.exprs[name]; ok {
				return e.Range()
			}
		}
		return p.header
	}
	return p.at(steps(field))
}

func (p places) at(path []string) hcl.Range {
	if len(path) == 0 {
		return p.header
	}
	e, ok := p.exprs[path[0]]
	if !ok {
		return p.header
	}
	return locate(e, path[1:])
}

// steps cuts "canary.steps[1].traffic" to canary, steps, [1], traffic, in the words
// of HCL.
func steps(field string) []string {
	var out []string
	for part := range strings.SplitSeq(snake(declared(field)), ".") {
		name, indices, _ := strings.Cut(part, "[")
		out = append(out, name)
		for index := range strings.SplitSeq(indices, "[") {
			if index != "" {
				out = append(out, "["+index)
			}
		}
	}
	return out
}

// locate goes down into an expression as far as it is written out.
func locate(e hclsyntax.Expression, path []string) hcl.Range {
	for len(path) > 0 {
		var next hclsyntax.Expression
		switch x := bare(e).(type) {
		case *hclsyntax.ObjectConsExpr:
			if next = item(x, path[0]); next == nil {
				return x.OpenRange
			}
		case *hclsyntax.TupleConsExpr:
			i, err := strconv.Atoi(strings.Trim(path[0], "[]"))
			if err != nil || i >= len(x.Exprs) {
				return x.OpenRange
			}
			next = x.Exprs[i]
		default:
			return e.Range()
		}
		e, path = next, path[1:]
	}
	return e.Range()
}

// keyRange is the place of a name within an object that is written out.
func keyRange(e hclsyntax.Expression, path []string, name string) hcl.Range {
	at := locate(e, path)
	for len(path) > 0 {
		switch x := bare(e).(type) {
		case *hclsyntax.ObjectConsExpr:
			if e = item(x, path[0]); e == nil {
				return at
			}
		case *hclsyntax.TupleConsExpr:
			i, err := strconv.Atoi(strings.Trim(path[0], "[]"))
			if err != nil || i >= len(x.Exprs) {
				return at
			}
			e = x.Exprs[i]
		default:
			return at
		}
		path = path[1:]
	}
	if x, ok := bare(e).(*hclsyntax.ObjectConsExpr); ok {
		for _, it := range x.Items {
			if keyName(it.KeyExpr) == name {
				return it.KeyExpr.Range()
			}
		}
	}
	return at
}

func bare(e hclsyntax.Expression) hclsyntax.Expression {
	for {
		p, ok := e.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return e
		}
		e = p.Expression
	}
}

// item is the value of a key that is written as a name or a plain text.
func item(x *hclsyntax.ObjectConsExpr, name string) hclsyntax.Expression {
	for i := len(x.Items) - 1; i >= 0; i-- {
		if keyName(x.Items[i].KeyExpr) == name {
			return x.Items[i].ValueExpr
		}
	}
	return nil
}

func keyName(e hclsyntax.Expression) string {
	if word := hcl.ExprAsKeyword(e); word != "" {
		return word
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// snake turns camelCase to snake_case.
func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
