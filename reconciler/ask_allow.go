package reconciler

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// here refuses what was said on a pull request that did not bring the run: who may say it
// there, such as anybody but the author, is another question than here. The run may be told
// of its pull request in this very pass, after the asks.
func (p *stackPass) here(a *askRecord, run *runRecord) error {
	if a.Pull == 0 || slices.Contains(run.Pulls, a.Pull) {
		return nil
	}
	if r := p.pulls.known[a.Pull]; r != nil && p.brings(r, run) {
		return nil
	}
	if len(run.Pulls) == 0 {
		return refusef("pull request %d did not bring commit %s, whose plan waits", a.Pull, short(run.Commit.ID))
	}
	var brought []string
	for _, n := range run.Pulls {
		brought = append(brought, fmt.Sprintf("pull request %d", n))
	}
	return refusef("pull request %d did not bring commit %s, whose plan waits: say it on %s", a.Pull, short(run.Commit.ID), joined(brought))
}

// brings reports whether a run is still to be told that it came from a pull request.
func (p *stackPass) brings(r *pullRecord, run *runRecord) bool {
	return r.awaits(p.k.Stack) && (run.Commit.ID == r.MergeCommit || slices.Contains(run.Arrived, r.MergeCommit))
}

// ownWork reports whether a user of the forge is an author of what a run's plan has and is
// not named as one who approves it all the same.
func (p *stackPass) ownWork(run *runRecord, user string) bool {
	authors := slices.Clone(run.Authors)
	for _, r := range p.pulls.known {
		if p.brings(r, run) {
			authors = append(authors, r.Author)
		}
	}
	return slices.ContainsFunc(authors, func(a string) bool { return sameUser(a, user) }) && len(p.permissions().naming(Approve, user)) == 0
}

// approve lets the plan of the current run be applied.
func (p *stackPass) approve(a *askRecord) error {
	run := p.current()
	if run != nil {
		if err := p.here(a, run); err != nil {
			return err
		}
	}
	switch {
	case run == nil || !run.Acted.IsZero():
		return refusef("nothing of %s waits for an approval", p.k)
	case a.Pull != 0 && p.ownWork(run, a.Who):
		return refusef("%s may not approve a plan that has changes of their own pull request, also on another one: somebody else of these may: %s", inert(a.Who), Grantees(p.permissions().Of(Approve)))
	case run.Digest == "" || !digestMeans(a.Digest, run.Digest):
		return refusef("%s is not the plan that waits: that is %s", planning.ShortDigest(a.Digest), planning.ShortDigest(run.Digest))
	}
	run.Approved = append(run.Approved, approval{Digest: run.Digest, Who: a.Who, Via: a.Via, At: a.At})
	p.answer(a, "plan "+planning.ShortDigest(run.Digest)+" is approved", "")
	return nil
}

// override lifts a denial for the plan of the current run.
func (p *stackPass) override(a *askRecord) error {
	run := p.current()
	if run == nil || run.Digest == "" {
		return refusef("no plan of %s is denied", p.k)
	}
	if err := p.here(a, run); err != nil {
		return err
	}
	if a.Digest != "" && !digestMeans(a.Digest, run.Digest) {
		return refusef("that was said of plan %s, and %s stands now: look at it and say it again", planning.ShortDigest(a.Digest), planning.ShortDigest(run.Digest))
	}
	run.Overrides = append(run.Overrides, override{Rule: a.Rule, Who: a.Who, Reason: a.Reason, Digest: run.Digest, At: a.At})
	p.answer(a, fmt.Sprintf("rule %s is lifted for plan %s", inert(a.Rule), planning.ShortDigest(run.Digest)), "")
	return nil
}

// again allows the specs that a person has canceled or taken back.
func (p *stackPass) again(ctx context.Context, a *askRecord) error {
	runs, err := p.known(ctx)
	if err != nil {
		return err
	}
	var lifted, there []string
	for _, d := range p.allDecisions() {
		address := d.Address
		there = append(there, address)
		if a.Selector != "" && !slices.Contains(p.namesOf(runs, d), a.Selector) {
			continue
		}
		delete(p.decisions, d.about())
		p.batch.Delete = append(p.batch.Delete, decisionKey(p.k, d.about()))
		for _, b := range slices.Clone(p.s.Bound) {
			if b.Address.String() == address {
				p.s.unbind(b.Address)
			}
		}
		p.s.Again = append(p.s.Again, allowedAgain{Spec: d.Spec, Rollout: d.Rollout, At: p.now()})
		lifted = append(lifted, address)
	}
	switch {
	case len(there) == 0:
		return refusef("nothing of %s was canceled or taken back", p.k)
	case len(lifted) == 0:
		return refusef("nothing named %s was canceled or taken back; there is %s", inert(a.Selector), joined(there))
	}
	p.forget()
	p.answer(a, joined(lifted)+" may start again", "")
	return nil
}

// namesOf are what people call the rollout of a decision.
func (p *stackPass) namesOf(runs []*runRecord, d decisionRecord) []string {
	out := []string{d.Address, d.Rollout}
	for _, run := range runs {
		for _, r := range run.Rollouts {
			if r.ID == d.Rollout || r.Address == d.Address {
				out = append(out, p.names(p.k.Stack, r)...)
			}
		}
	}
	return out
}
