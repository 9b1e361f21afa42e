package declaration

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// CheckStatus is how a check block came out.
type CheckStatus string

// The statuses. An unknown one looks at what only an engine gives, or at a data source.
const (
	CheckPass    CheckStatus = "pass"
	CheckFail    CheckStatus = "fail"
	CheckUnknown CheckStatus = "unknown"
)

// Check is a check block with its outcome. A check that fails is a warning and stops
// nothing.
type Check struct {
	Name     string
	Status   CheckStatus
	Problems []string // what the failed assertions say
	Range    hcl.Range
}

// checkBlock takes a check block in. One with a data source of its own is left out with
// a note: that is not read here.
func (m *module) checkBlock(b *hclsyntax.Block) {
	asserts := 0
	for _, inner := range b.Body.Blocks {
		switch inner.Type {
		case "assert":
			asserts++
		case "data":
			m.report.add(Note, inner.DefRange(), "This check reads a data source", "It is not evaluated here.", "")
			m.unread = append(m.unread, Check{Name: b.Labels[0], Status: CheckUnknown, Range: b.DefRange()})
			return
		default:
			m.report.refuse(inner.TypeRange, fmt.Sprintf("Unknown block %q in a check", inner.Type), "", nearest(inner.Type, []string{"assert", "data"}))
			return
		}
	}
	if asserts == 0 {
		m.report.refuse(b.DefRange(), "A check has at least one assert block", "", "")
		return
	}
	m.add(&node{id: nodeID{kind: checkNode, name: b.Labels[0]}, at: b.DefRange(), body: b.Body, block: b})
}

// check evaluates the assertions of a check block, all of them.
func (e *evaluator) check(n *node) {
	out := Check{Name: n.id.name, Status: CheckPass, Range: n.at}
	ctx := e.context(n, nil)
	for _, b := range n.body.Blocks {
		switch holds, said := e.asserts(b, ctx); {
		case holds == CheckFail:
			out.Status = CheckFail
			out.Problems = append(out.Problems, said)
			e.report.add(Warning, b.DefRange(), fmt.Sprintf("Check %q does not hold", n.id.name), said, "")
		case holds == CheckUnknown && out.Status == CheckPass:
			out.Status = CheckUnknown
		}
	}
	e.checks = append(e.checks, out)
}

// asserts evaluates one assertion; said is its message when it does not hold.
func (e *evaluator) asserts(b *hclsyntax.Block, ctx *hcl.EvalContext) (holds CheckStatus, said string) {
	e.report.onlyKnown(b.Body, "assert block", []string{"condition", "error_message"}, nil)
	condition, ok := b.Body.Attributes["condition"]
	message, also := b.Body.Attributes["error_message"]
	if !ok || !also {
		e.report.refuse(b.DefRange(), "An assert block has condition and error_message", "", "")
		return CheckUnknown, ""
	}
	v, ok := evaluate(e.report, condition.Expr, ctx)
	v, _ = v.Unmark()
	if !ok || !v.IsKnown() {
		return CheckUnknown, ""
	}
	truth, err := convert.Convert(v, cty.Bool)
	switch {
	case err != nil || truth.IsNull():
		e.report.refuse(condition.Expr.Range(), "A condition is true or false", fmt.Sprintf("This is %s.", typeName(v.Type())), "")
		return CheckUnknown, ""
	case truth.True():
		return CheckPass, ""
	}
	said = "The condition does not hold."
	if text, ok := evaluate(e.report, message.Expr, ctx); ok && !Secret(text) {
		if text, _ = text.UnmarkDeep(); text.IsKnown() && !text.IsNull() && text.Type() == cty.String {
			said = text.AsString()
		}
	}
	return CheckFail, said
}
