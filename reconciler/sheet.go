package reconciler

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// mostDiff bounds the HCL diff that a comment may fold in.
const mostDiff = 100 << 10

// stackSheet is a plan as a comment shows it.
func (f *follower) stackSheet(c StackConfig, p *planned, diff string, given []override) render.StackSheet {
	out := render.StackSheet{Name: c.Name, Problem: p.problem, Policy: p.verdict, Diff: diff}
	for _, d := range p.diags {
		var text bytes.Buffer
		_ = declaration.Diagnostics{d}.Render(&text)
		out.Diagnostics = append(out.Diagnostics, render.Diagnostic{Severity: string(d.Severity), At: place(d), Summary: d.Summary, Text: text.String()})
	}
	for _, o := range given {
		if o.Digest == p.digest {
			out.Overrides = append(out.Overrides, render.Override{Rule: o.Rule, By: o.Who, Reason: o.Reason, At: o.At})
		}
	}
	if !p.ok() {
		return out
	}
	shown := render.StackOf(c.Name, p.changes)
	out.Changes, out.Rollouts, out.Drift = shown.Changes, shown.Rollouts, shown.Drift
	for i := range out.Drift {
		if ch, ok := p.changes.Find(out.Drift[i].Address); ok {
			out.Drift[i].Effect = f.driftEffect(ch)
		}
	}
	for i := range out.Rollouts {
		if ch, ok := p.changes.Find(out.Rollouts[i].Address); ok {
			showAhead(ch, &out.Rollouts[i])
		}
	}
	for _, ch := range p.changes.Pending() {
		if ch.Endpoint != "" && !slices.Contains(out.Endpoints, ch.Endpoint) {
			out.Endpoints = append(out.Endpoints, ch.Endpoint)
		}
	}
	for _, k := range p.kept {
		out.Changes = append(out.Changes, render.Change{Address: k.Address.String(), Action: planning.NoOp, ID: k.ID, Held: staysText})
	}
	return out
}

func place(d declaration.Diagnostic) string {
	return fmt.Sprintf("%s:%d:%d", d.Range.Filename, d.Range.Start.Line, d.Range.Start.Column)
}

// driftEffect says what becomes of a difference that somebody else has made.
func (f *follower) driftEffect(c planning.Change) string {
	switch {
	case c.Blocked != "":
		return "It is left: " + c.Blocked + "."
	case f.config.Drift == CorrectDrift:
		return "This plan puts it back."
	}
	return "It is reported and left."
}

// showAhead adds what the engine said of a planned rollout when the plan was made.
func showAhead(c planning.Change, out *render.RolloutSheet) {
	a := c.Ahead
	if a == nil || a.Refused != "" {
		return // it is not known then whether it fits
	}
	out.Journey = a.Journey()
	out.Journey.Findings, out.Journey.Digest = slices.Concat(out.Journey.Findings, c.Findings), c.Digest
	out.Live.Warnings, out.Live.Loads, out.Live.Cost, out.Live.FreeGPUs = a.Preview.Warnings, a.Loads(), a.Cents(), a.FreeGPUs()
	if x := a.Preview.Sluice; x != nil {
		out.Live.Fit = render.Fits
		if !x.Feasible {
			out.Live.Fit, out.Live.Shortfall = render.Short, x.Shortfall
		}
	}
}

// diffOf is what a merge changes in a stack's files, as a unified diff.
func diffOf(before, after folder) string {
	var out strings.Builder
	names := map[string]bool{}
	for _, f := range slices.Concat(before.Files, before.Shared, after.Files, after.Shared) {
		names[f.Name] = true
	}
	for _, name := range sortedKeys(names) {
		a, _ := before.file(name)
		b, _ := after.file(name)
		if bytes.Equal(a.Bytes, b.Bytes) {
			continue
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(string(a.Bytes)), B: difflib.SplitLines(string(b.Bytes)), FromFile: "a/" + name, ToFile: "b/" + name, Context: 3})
		if err != nil || out.Len()+len(text) > mostDiff {
			_, _ = fmt.Fprintf(&out, "%s: not shown\n", name)
			continue
		}
		out.WriteString(text)
	}
	return out.String()
}
