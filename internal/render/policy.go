package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// Policy writes what the rules say of a plan: a line a remark, and the verdict.
func Policy(w io.Writer, v policy.Verdict, o Options) error {
	p := o.printer(w)
	denials := 0
	for _, r := range v.Remarks {
		mark := o.paint(yellow, "warn")
		if r.Severity == policy.Deny {
			mark = o.paint(red, "deny")
			denials++
		}
		p.line("%s  %s", mark, remark(r))
	}
	switch {
	case denials > 0:
		p.line("%s", o.paint(red, fmt.Sprintf("denied: %d of %s refuse the plan", denials, planning.Count(len(v.Remarks), "remark"))))
	case len(v.Remarks) > 0:
		p.line("%s", o.paint(green, "allowed, with "+planning.Count(len(v.Remarks), "warning")))
	default:
		p.line("%s", o.paint(green, "allowed"))
	}
	return p.err
}

// remark is one remark as a sentence: of what, which rule, and who may lift it.
func remark(r policy.Remark) string {
	var b strings.Builder
	if r.Address != "" {
		b.WriteString(Inert(r.Address) + ": ")
	}
	b.WriteString(Inert(r.Message))
	if r.Rule != "" {
		b.WriteString(" [" + Inert(r.Rule) + "]")
	}
	if len(r.Override) > 0 {
		b.WriteString("; may be lifted by " + Inert(strings.Join(r.Override, ", ")))
	}
	return b.String()
}
