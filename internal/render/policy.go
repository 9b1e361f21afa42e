package render

import (
	"io"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// Policy writes what the rules say of a plan: a line a remark, and the verdict.
func Policy(w io.Writer, v policy.Verdict, o Options) error {
	p := o.printer(w)
	for _, r := range v.Remarks {
		mark := o.paint(yellow, "warn")
		if r.Severity == policy.Deny {
			mark = o.paint(red, "deny")
		}
		p.line("%s  %s", mark, remark(r))
	}
	tone := green
	if v.Denied() {
		tone = red
	}
	p.line("%s", o.paint(tone, policyVerdict(v)))
	return p.err
}

// policyVerdict is what all remarks come to.
func policyVerdict(v policy.Verdict) string {
	denials := 0
	for _, r := range v.Remarks {
		if r.Severity == policy.Deny {
			denials++
		}
	}
	switch {
	case denials > 0:
		return "denied: " + planning.Count(denials, "denial") + more(len(v.Remarks)-denials)
	case len(v.Remarks) > 0:
		return "allowed, with " + planning.Count(len(v.Remarks), "warning")
	}
	return "allowed"
}

// more tells of the warnings beside denials.
func more(warnings int) string {
	if warnings == 0 {
		return ""
	}
	return ", " + planning.Count(warnings, "warning")
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
