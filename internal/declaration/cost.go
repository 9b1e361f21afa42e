package declaration

import (
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// cost is a bound on how large a value an expression can make and how much work
// that is, in bytes and elements. It is computed from the expression and from the
// sizes of what it refers to, before anything is evaluated: three nested loops, or a
// text that repeats a text that repeats a text, are refused and not run.
//
// Variables of a loop count as the largest thing that they may be.
type cost struct {
	ctx   *hcl.EvalContext
	bound []map[string]float64 // variables of the loops around, innermost last
	spent float64              // on looking at what is referred to
}

// boundOf is the cost of an expression in a context.
func boundOf(e hcl.Expression, ctx *hcl.EvalContext) float64 {
	x, ok := e.(hclsyntax.Expression)
	if !ok {
		return 1
	}
	return (&cost{ctx: ctx}).of(x)
}

func (c *cost) of(e hclsyntax.Expression) float64 {
	if c.spent > mostWork {
		return math.Inf(1)
	}
	switch x := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		return size(x.Val)
	case *hclsyntax.ScopeTraversalExpr:
		return c.traversal(x)
	case *hclsyntax.FunctionCallExpr:
		return c.call(x)
	case *hclsyntax.ForExpr:
		return c.loop(x)
	case *hclsyntax.SplatExpr:
		over := c.of(x.Source)
		return over + over*max(1, c.inner(x.Each))
	case *hclsyntax.AnonSymbolExpr:
		return 1
	// Those that can lie deep within each other are not walked again at each level.
	case *hclsyntax.BinaryOpExpr:
		return 1 + c.of(x.LHS) + c.of(x.RHS)
	case *hclsyntax.UnaryOpExpr:
		return 1 + c.of(x.Val)
	case *hclsyntax.ParenthesesExpr:
		return c.of(x.Expression)
	case *hclsyntax.ConditionalExpr:
		return 1 + c.of(x.Condition) + c.of(x.TrueResult) + c.of(x.FalseResult)
	case *hclsyntax.IndexExpr:
		return 1 + c.of(x.Collection) + c.of(x.Key)
	case *hclsyntax.RelativeTraversalExpr:
		return 1 + c.of(x.Source)
	}
	return 1 + c.inner(e)
}

// inner is the sum over the direct parts of an expression.
func (c *cost) inner(e hclsyntax.Expression) float64 {
	sum := 0.0
	w := &parts{root: e, see: func(part hclsyntax.Expression) { sum += c.of(part) }}
	_ = hclsyntax.Walk(e, w)
	return sum
}

// parts visits the expressions directly below one.
type parts struct {
	root  hclsyntax.Node
	depth int
	see   func(hclsyntax.Expression)
}

// Enter takes the first expression on each way down and nothing below it.
func (p *parts) Enter(n hclsyntax.Node) hcl.Diagnostics {
	e, ok := n.(hclsyntax.Expression)
	if !ok || n == p.root {
		return nil
	}
	if p.depth++; p.depth == 1 {
		p.see(e)
	}
	return nil
}

// Exit leaves a node.
func (p *parts) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if _, ok := n.(hclsyntax.Expression); ok && n != p.root {
		p.depth--
	}
	return nil
}

func (c *cost) traversal(x *hclsyntax.ScopeTraversalExpr) float64 {
	for i := len(c.bound) - 1; i >= 0; i-- {
		if n, ok := c.bound[i][x.Traversal.RootName()]; ok {
			return n
		}
	}
	v, diags := x.Value(c.ctx)
	if diags.HasErrors() {
		return 1 // its own error comes with the evaluation
	}
	n := size(v)
	c.spent += n
	return n
}

func (c *cost) call(x *hclsyntax.FunctionCallExpr) float64 {
	sum, product, first := 1.0, 1.0, 1.0
	for i, a := range x.Args {
		n := c.of(a)
		if sum, product = sum+n, product*max(1, n); i == 0 {
			first = n
		}
	}
	switch x.Name {
	case "range":
		return 1024 * 8 // the function's own bound
	case "format", "formatlist", "indent": // each verb gives an argument or a width
		return sum + first*(sum+widest)
	case "join", "replace", "setproduct", "regexall", "zipmap":
		return sum + product
	}
	return 8 * sum
}

func (c *cost) loop(x *hclsyntax.ForExpr) float64 {
	over := c.of(x.CollExpr)
	turns, key, value := over, over, over
	if v, ok := c.counted(x.CollExpr, over); ok {
		turns, key, value = elements(v), 1, 1
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			key, value = max(key, size(k)), max(value, size(e))
		}
	}
	names := map[string]float64{x.ValVar: value}
	if x.KeyVar != "" {
		names[x.KeyVar] = key
	}
	c.bound = append(c.bound, names)
	each := 1.0
	for _, e := range []hclsyntax.Expression{x.KeyExpr, x.ValExpr, x.CondExpr} {
		if e != nil {
			each += c.of(e)
		}
	}
	c.bound = c.bound[:len(c.bound)-1]
	return over + turns*each
}

// cheap is the cost up to which the collection of a loop is evaluated to be counted.
const cheap = 1 << 16

// counted evaluates what a loop goes over, when that is cheap and does not hang on the
// variable of a loop around it.
func (c *cost) counted(x hclsyntax.Expression, over float64) (v cty.Value, ok bool) {
	if over > cheap || c.spent > mostWork {
		return cty.NilVal, false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	v, diags := x.Value(c.ctx)
	v, _ = v.Unmark()
	c.spent += over
	return v, !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.CanIterateElements()
}

func elements(v cty.Value) float64 {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 1
	}
	return float64(v.LengthInt())
}

// size is how large a value is: bytes of texts, bits of numbers, and one for each
// element.
func size(v cty.Value) float64 {
	v, _ = v.Unmark()
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() {
		return 1
	}
	switch t := v.Type(); {
	case t == cty.String:
		return 1 + float64(len(v.AsString()))
	case t == cty.Number:
		return 8 + math.Abs(float64(v.AsBigFloat().MantExp(nil)))/3
	case v.CanIterateElements():
		sum := 1.0
		for it := v.ElementIterator(); it.Next(); {
			key, elem := it.Element()
			sum += size(elem)
			if t.IsMapType() || t.IsObjectType() {
				sum += size(key)
			}
		}
		return sum
	}
	return 1
}
