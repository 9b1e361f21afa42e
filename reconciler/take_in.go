package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// takeInAll binds what was found at the engine: what an earlier try has made, whose answer
// or whose record was lost, and what stood already. A rollout that was canceled there is
// a person's decision also for a journal that has just begun. What is not there any more,
// and is not asked for, is let go.
func (p *stackPass) takeInAll(ctx context.Context) error {
	for _, c := range p.plan.changes.List {
		if c.ID == "" || c.Action == planning.Delete || c.Action == planning.Replace || p.foreigners(c) {
			continue
		}
		if !p.s.has(c.ID) {
			p.tellTaken("apply.taken_in", c.Address, c.ID, "stands already, made by others or by a try whose record was lost; it is taken in")
		}
		p.s.bind(c.Address, c.ID)
		if c.Kind == declaration.RolloutKind && c.Live != nil {
			if err := p.takeInRollout(ctx, c, *c.Live); err != nil {
				return err
			}
		}
	}
	for _, c := range p.plan.records {
		p.s.unbind(c.Address) // the block is gone, the record at the engine is history
	}
	for _, b := range slices.Clone(p.s.Bound) {
		kept := slices.ContainsFunc(p.plan.kept, func(c planning.Change) bool { return c.Address == b.Address })
		if _, asked := p.plan.changes.Find(b.Address.String()); !asked && !kept {
			p.s.unbind(b.Address)
			p.tellTaken("apply.gone", b.Address, b.ID, "is not declared and not there any more")
		}
	}
	return nil
}

// foreigners reports whether a change is about an endpoint that somebody else reconciles:
// what is there is not ours to take in.
func (p *stackPass) foreigners(c planning.Change) bool {
	return slices.ContainsFunc(p.plan.changes.Standing.Endpoints, func(e planning.StandingEndpoint) bool {
		return e.Owner != "" && (e.ID == c.EndpointID || e.ID == c.ID)
	})
}

// tellTaken tells what was found rather than made.
func (p *stackPass) tellTaken(kind string, address declaration.Address, id, what string) {
	p.tell(&p.batch, happening{
		Key: []string{p.s.Commit.ID, address.String(), id}, Kind: kind, Stack: p.k.Stack, Commit: p.s.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: %s (%s) %s", p.k, address, id, what),
	})
}

func (p *stackPass) takeInRollout(ctx context.Context, c planning.Change, live api.Rollout) error {
	address := c.Address.String()
	p.s.submit(address, c.Digest)
	if !engineclient.Terminal(live.State) {
		if run := p.current(); run != nil {
			p.watchToo(run, c, live)
		}
		return nil
	}
	watched, err := p.watched(ctx, live.ID)
	if err != nil {
		return err
	}
	if run := p.current(); run != nil && watched == nil && live.CreatedAt.After(run.Began.Add(-time.Minute)) {
		p.watchToo(run, c, live)
	}
	if live.State == engineclient.StateCanceled && !p.hasDecided(c) && (watched == nil || !watched.Replaced) {
		p.decide(decisionRecord{Address: address, Spec: c.Digest, Verb: Cancel, Rollout: live.ID, At: p.now()})
	}
	if back, ok := p.wayBackOf(live); ok && live.State == engineclient.StateCompleted && !p.hasDecided(c) {
		p.decide(decisionRecord{Address: address, Spec: c.Digest, Verb: Reverse, Rollout: live.ID, At: back.CreatedAt.Time})
	}
	return nil
}

// wayBackOf is the rollout that has taken another one back: the newest of its endpoint, from
// its target to its source.
func (p *stackPass) wayBackOf(live api.Rollout) (api.Rollout, bool) {
	for _, e := range p.plan.changes.Standing.Endpoints {
		last := planning.Newest(slices.Concat(e.Rollouts, e.Past))
		if e.ID == live.EndpointID && last.ID != live.ID && last.CreatedAt.After(live.CreatedAt.Time) {
			return last, last.State == engineclient.StateCompleted && last.SourceDeploymentID == live.TargetDeploymentID && last.TargetDeploymentID == live.SourceDeploymentID
		}
	}
	return api.Rollout{}, false
}

// watched is what the runs know of a rollout, those that are over too; nil for nothing. What
// was told of it once is not told again under another commit.
func (p *stackPass) watched(ctx context.Context, id string) (*runRollout, error) {
	runs, err := p.known(ctx)
	for _, run := range runs {
		for i := range run.Rollouts {
			if run.Rollouts[i].ID == id {
				return &run.Rollouts[i], err
			}
		}
	}
	return nil, err
}

// endpointIDs are the endpoints that a plan is about.
func (p *stackPass) endpointIDs() []string {
	var out []string
	for _, e := range p.plan.changes.Standing.Endpoints {
		out = append(out, e.ID)
	}
	return out
}
