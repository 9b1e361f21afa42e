package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// mostSweeps bounds how often a pass plans anew because it has changed something. Three
// are enough for endpoints, deployments, and a rollout that is made and started.
const mostSweeps = 8

// apply makes the plan true, as far as nothing holds it: it sweeps over the changes in
// their order and plans anew after each sweep that has changed something, so that every
// change is made of what stands then. It never waits for a rollout.
func (p *stackPass) apply(ctx context.Context) error {
	for range mostSweeps {
		if !p.plan.ok() {
			return nil
		}
		if err := p.takeInAll(ctx); err != nil {
			return err
		}
		if err := p.handOver(ctx); err != nil {
			return err
		}
		p.noteDrift()
		todo := p.todo()
		run := p.current()
		if run == nil && len(todo) == 0 {
			p.plan.waits = append(p.foreign(), p.nothingThere()...)
			p.plan.done = len(p.plan.waits) == 0
			return nil
		}
		if run == nil {
			var err error
			if run, err = p.mending(ctx); err != nil {
				return err
			}
		}
		if !run.Acted.IsZero() && !p.asApproved(run, todo) {
			run.Acted = time.Time{} // it is another plan than the one that was approved
		}
		if run.Acted.IsZero() {
			run.Digest = p.plan.digest
			p.allow(run, todo)
		}
		if len(todo) == 0 {
			p.plan.waits = slices.Concat(p.foreign(), p.nothingThere(), p.starting(run))
			p.plan.done = len(p.plan.waits) == 0
			return nil
		}
		if held, err := p.held(ctx, run, todo); err != nil || held {
			return err
		}
		if p.plan.known { // what is acted on is what stands now
			p.forget()
			if err := p.makePlan(ctx); err != nil {
				return err
			}
			continue
		}
		made, err := p.sweep(ctx, run, todo)
		if err != nil || made == 0 {
			return err
		}
		acted, waits := p.plan.acted, p.plan.waits
		p.live.forget(p.endpointIDs()...)
		p.forget()
		if err := p.makePlan(ctx); err != nil {
			return err
		}
		p.plan.acted, p.plan.waits = acted, waits
		p.allow(run, nil)
	}
	p.hasten()
	return nil
}

// held reports whether anything keeps a run from its next change; the plan's waits say what.
func (p *stackPass) held(ctx context.Context, run *runRecord, todo []planning.Change) (bool, error) {
	if p.plan.waits = blocked(todo); len(p.plan.waits) == len(todo) { // there is nothing to approve
		return true, nil
	}
	holds, err := p.holds(ctx, run)
	if err != nil {
		return true, err
	}
	if !run.Acted.IsZero() { // its approval was given, and it has changed what stands since
		holds = slices.DeleteFunc(holds, func(w Wait) bool { return w.For == ForApproval })
	}
	p.plan.waits = holds
	return len(holds) > 0, nil
}

// sweep goes over the changes once. One that waits keeps those that depend on it waiting;
// the others go on. What waits for a rollout never keeps that rollout from its start.
func (p *stackPass) sweep(ctx context.Context, run *runRecord, todo []planning.Change) (made int, err error) {
	p.plan.waits = nil
	undone := map[declaration.Address]string{} // by the rollout that it waits for, if it is that
	for _, c := range todo {
		if slices.ContainsFunc(c.DependsOn, func(a declaration.Address) bool {
			by, no := undone[a]
			return no && (by == "" || by != c.ID)
		}) {
			undone[c.Address] = ""
			continue
		}
		acted, w, err := p.one(ctx, run, c)
		if err != nil {
			return made, err
		}
		if w.For != "" {
			undone[c.Address] = c.BlockedBy
			p.plan.waits = append(p.plan.waits, w)
			continue
		}
		made += acted
		p.plan.acted += acted
		if c.Kind != declaration.RolloutKind && (acted > 0 || c.Action == planning.Create || c.Action == planning.Replace) {
			undone[c.Address] = "" // what depends on it is planned with its id, and with what it is now
		}
	}
	return made, nil
}

// one makes one change, if it waits for nothing.
func (p *stackPass) one(ctx context.Context, run *runRecord, c planning.Change) (made int, w Wait, err error) {
	if w, err = p.ready(ctx, c); err != nil || w.For != "" {
		return 0, w, err
	}
	if made, w, err = p.act(ctx, run, c); err != nil {
		err = fmt.Errorf("%s: %w", c.Address, err)
	}
	return made, w, err
}
