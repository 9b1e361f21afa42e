package render

import (
	"io"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// SheetText writes a sheet for a terminal: the headline, what stands in the way, then
// each stack in the words of a plan or of a live rollout. The error is the writer's.
func SheetText(w io.Writer, s Sheet, o Options) error {
	p := o.printer(w)
	p.line("%s", o.paint(bold, s.Headline()))
	if s.Revision.Commit != "" {
		p.line("%s of %s, planned %s", Inert(shortCommit(s.Revision.Commit)), Inert(s.Revision.Branch), instant(s.Revision.At))
	}
	for _, n := range s.Conflicts {
		p.line("cannot be merged: %s: %s", Inert(n.Path), Inert(n.Reason))
	}
	if s.Unmerged != "" {
		p.line("cannot be merged: %s", Inert(s.Unmerged))
	}
	for _, n := range s.Refused {
		p.line("not read: %s: %s", Inert(n.Path), Inert(n.Reason))
	}
	for _, wait := range s.Waiting {
		p.line("waits for: %s", Inert(wait))
	}
	for _, st := range s.Stacks {
		if p.err == nil {
			p.err = st.text(w, o)
		}
	}
	for _, a := range s.Approval.Plans {
		if s.Approval.unproved(a.Stack) {
			p.line("")
			p.line("%s: not approved yet: plan %s", Inert(a.Stack), Inert(planning.ShortDigest(a.Digest)))
		}
	}
	return p.err
}

// text writes a stack: what is wrong, what others changed, and its rollouts.
func (st StackSheet) text(w io.Writer, o Options) error {
	p := o.printer(w)
	if st.quiet() {
		p.line("%s: nothing to change", Inert(st.Name))
		return p.err
	}
	p.line("")
	p.line("%s", o.paint(bold, Inert(st.Name)))
	if st.Problem != "" {
		p.line("no plan: %s", Inert(st.Problem))
	}
	for _, d := range st.Diagnostics {
		p.line("%s %s: %s", Inert(d.At), Inert(d.Severity), Inert(d.Summary))
	}
	if len(st.Policy.Remarks) > 0 && p.err == nil {
		p.err = Policy(w, st.Policy, o)
	}
	st.changesText(p)
	for _, r := range st.Rollouts {
		if p.err == nil {
			p.line("")
			p.err = r.text(w, o)
		}
	}
	return p.err
}

func (st StackSheet) changesText(p *printer) {
	t := &table{}
	for _, ch := range st.Changes {
		if ch.moves() {
			t.add(string(ch.Action), Inert(ch.Address), Inert(ch.ID), Inert(ch.Held))
		}
	}
	for _, d := range st.Drift {
		t.add("theirs", Inert(d.Address)+" "+Inert(d.Field), Inert(d.Theirs), Inert(d.Actor)+" "+Inert(d.Effect))
	}
	t.print(p, "  ", func(_ int, s string) string { return s })
}

// text writes a rollout as it runs, or as it will.
func (r RolloutSheet) text(w io.Writer, o Options) error {
	if r.Run == nil {
		return Plan(w, r.Endpoint, r.Journey, o)
	}
	o.Names = r.Run.Names
	return Rollout(w, r.Run.Rollout, o)
}
