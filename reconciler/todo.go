package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// allow notes what the plan that is about to be applied changes, and the splits as they
// are now: before the first change, and as each of this run's own changes leaves them.
func (p *stackPass) allow(run *runRecord, todo []planning.Change) {
	if todo != nil {
		run.Allowed = nil
		for _, c := range todo {
			run.Allowed = append(run.Allowed, c.Address.String())
		}
	}
	run.Splits = map[string]string{}
	for _, e := range p.plan.changes.Standing.Endpoints {
		run.Splits[e.ID] = splitText(e.TrafficSplit)
	}
}

func splitText(split []api.TrafficWeight) string {
	split = slices.Clone(split)
	slices.SortFunc(split, func(a, b api.TrafficWeight) int { return strings.Compare(a.DeploymentID, b.DeploymentID) })
	return fmt.Sprint(split)
}

// asApproved reports whether what is left to do belongs to the plan that was approved: the
// same files and variables, no other address, and no rollout on a split that somebody has
// changed since.
func (p *stackPass) asApproved(run *runRecord, todo []planning.Change) bool {
	if p.folder.Digest != run.Files {
		return false
	}
	for _, c := range todo {
		if !slices.Contains(run.Allowed, c.Address.String()) {
			return false
		}
		starts := c.Kind == declaration.RolloutKind && (c.Action == planning.Create || c.Action == planning.Replace)
		for _, e := range p.plan.changes.Standing.Endpoints {
			if was, known := run.Splits[e.ID]; starts && known && e.ID == c.EndpointID && was != splitText(e.TrafficSplit) {
				return false
			}
		}
	}
	return true
}

// todo are the changes that this stack would make now: what Git has changed, and what
// stands otherwise where drift is corrected.
func (p *stackPass) todo() []planning.Change {
	var out []planning.Change
	for _, c := range p.plan.changes.Pending() {
		starts := c.Kind == declaration.RolloutKind && (c.Action == planning.Create || c.Action == planning.Replace)
		switch {
		case starts && !p.asksNow() && !p.s.mayAgain(c.Digest):
			continue // only a commit or a person's word starts a rollout, never what somebody has done at the engine
		case c.Action == planning.Create && p.vanished(c) && !p.asksNow() && p.config.Drift != CorrectDrift:
			continue // somebody has deleted it: told as drift
		case c.Action == planning.Delete && neverStarted(c): // it would hold its endpoint for ever
		case c.Action == planning.Delete && c.Kind == declaration.RolloutKind:
			continue // a record of history
		case c.Action == planning.Update && p.config.Drift != CorrectDrift && p.theirs(c):
			continue
		case starts && c.Digest != "" && p.hasDecided(c):
			continue // a person has decided against this very spec
		case p.justStarted(c):
			continue // the engine has taken it; what is read of it may be older than that
		case c.Kind == declaration.RolloutKind && c.Action == planning.Create && c.Digest != "" && p.s.Submitted[c.Address.String()] == c.Digest:
			continue // it was submitted, and its record was deleted since: that is no reason to run it again
		}
		out = append(out, c)
	}
	return out
}

// hasDecided reports whether a person has decided against the spec of a rollout.
func (p *stackPass) hasDecided(c planning.Change) bool {
	_, ok := p.decisions[decided{c.Address.String(), c.Digest}]
	return ok
}

// asksNow reports whether Git asks for something that was not in step yet: a commit is
// being applied for the first time.
func (p *stackPass) asksNow() bool {
	run := p.current()
	return run != nil && p.s.Settled != run.Commit.ID
}

// vanished reports whether a thing that would be made was there already: somebody has
// deleted it.
func (p *stackPass) vanished(c planning.Change) bool {
	return slices.ContainsFunc(p.s.Bound, func(b boundThing) bool { return b.Address == c.Address && b.ID != c.ID })
}

// withoutWeight is a change of a deployment that was there already, or whose endpoint has a
// split: made again it takes no traffic, since what serves now is not its to disturb.
func (p *stackPass) withoutWeight(c planning.Change) planning.Change {
	if c.Action != planning.Create || c.Declared.Deployment == nil || !p.vanished(c) {
		return c
	}
	d := *c.Declared.Deployment
	d.InitialTrafficWeight.Value = 0
	c.Declared.Deployment = &d
	return c
}

// neverStarted reports whether a rollout was made and has moved nothing.
func neverStarted(c planning.Change) bool {
	return c.Kind == declaration.RolloutKind && c.Live != nil && c.Live.State == engineclient.StatePending
}

// theirs reports whether a change is only about what Git has not made.
func (p *stackPass) theirs(c planning.Change) bool {
	for _, f := range c.Fields {
		if f.Whose == planning.Yours || f.Whose == planning.Untold && p.current() != nil {
			return false
		}
	}
	return true
}

// mending is the run that puts a drift right: that of the commit which is in step.
func (p *stackPass) mending(ctx context.Context) (*runRecord, error) {
	run, err := p.reopen(ctx, p.s.Commit.ID)
	if err != nil {
		return nil, err
	}
	if run == nil {
		run = &runRecord{Commit: p.s.Commit, Files: p.s.Files, Began: p.now(), Arrived: []string{p.s.Commit.ID}}
		p.runs = append(p.runs, run)
	}
	run.Mends, run.TakenBack = run.Mends+1, false
	run.Acted = time.Time{}
	return run, nil
}
