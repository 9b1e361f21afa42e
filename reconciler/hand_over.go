package reconciler

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// leftTo is something that a stack declares no more and another stack does.
type leftTo struct {
	change planning.Change
	to     StackKey
}

// leaveToOthers takes out of a plan what it would delete and another stack of this
// configuration declares now: a block that moves from one folder to another is handed
// over, whatever prune says.
func (f *follower) leaveToOthers(c StackConfig, p *planned) {
	goes := func(ch planning.Change) bool {
		return ch.Action == planning.Delete && ch.Kind != declaration.RolloutKind
	}
	if !slices.ContainsFunc(p.changes.List, goes) {
		return
	}
	others := f.declaredElsewhere(c)
	p.changes.List = slices.DeleteFunc(p.changes.List, func(ch planning.Change) bool {
		to, ok := others[ch.Endpoint]
		if ok = ok && goes(ch); ok {
			p.moved = append(p.moved, leftTo{ch, to})
		}
		return ok
	})
}

// declaredElsewhere are the endpoints that other stacks declare at their newest commits, by
// their names.
func (f *follower) declaredElsewhere(c StackConfig) map[string]StackKey {
	out := map[string]StackKey{}
	for _, g := range f.followers {
		tree, ok := f.treeOf(g.config.Name)
		for _, other := range g.config.Stacks {
			if k := g.key(other.Name); ok && k != f.key(c.Name) {
				for _, name := range endpointsIn(folderOf(tree, other), other) {
					out[name] = k
				}
			}
		}
	}
	return out
}

// endpointsIn are the names of a folder's endpoints, as far as they are known without an
// engine; none of one that is not valid.
func endpointsIn(o folder, c StackConfig) []string {
	options, err := o.options(c)
	if err != nil {
		return nil
	}
	set, diags := declaration.LoadFiles(o.Files, options)
	if diags.HasErrors() {
		return nil
	}
	var out []string
	for _, e := range set.Endpoints {
		if !e.Name.Unknown {
			out = append(out, planning.BareName(e.Name.Value))
		}
	}
	return out
}

// handOver lets go of what another stack declares now: that one takes it in, and no thing
// is made or deleted. The endpoint is given back first, or the other one could not have it.
func (p *stackPass) handOver(ctx context.Context) error {
	if p.s.Suspended != nil || len(p.plan.moved) == 0 {
		return nil
	}
	for _, m := range p.plan.moved {
		if m.change.Kind == declaration.EndpointKind {
			if err := p.giveBack(ctx, m.change, m.change.ID, p.owner(p.c)); err != nil {
				return err
			}
		}
		p.s.unbind(m.change.Address)
		p.tellTaken("apply.handed_over", m.change.Address, m.change.ID, fmt.Sprintf("is declared by %s now, and is left to it", m.to))
	}
	p.plan.moved = nil // done, and the next plan is of what is left
	p.forget()
	return nil
}

// giveBack ends an ownership of an endpoint. Where somebody else owns it already there is
// none to end.
func (p *stackPass) giveBack(ctx context.Context, c planning.Change, endpoint, owner string) error {
	if !slices.Contains(p.plan.changes.Standing.Capabilities, api.CapabilityOwner) {
		return nil
	}
	in := journal.Intent{ID: "release " + endpoint + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: c.Address.String(), Verb: "release_endpoint"}
	return p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
		_, err := p.engine.ReleaseEndpoint(ctx, endpoint, owner)
		if engineclient.IsConflict(err) || engineclient.IsNotFound(err) {
			err = nil
		}
		return journal.Batch{}, err
	})
}
