package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// past is what this stack remembers of its folder.
func (f *follower) past(ctx context.Context, c StackConfig, s stackRecord, o folder, options declaration.Options, kept *loads) (Past, error) {
	out := Past{Bound: s.bindings(), Sees: func(standing planning.Standing) planning.Standing { return f.sees(c, s, standing) }}
	applied, known, err := f.applied(ctx, c, s, o, options, kept)
	if known {
		out.Applied = &applied
	}
	return out, err
}

// sees is what stands, as this stack may see it: rollouts that a later decision has
// overtaken are left out, so that going back to an old spec in Git is a new rollout, and
// so is one that a person has allowed again.
func (f *follower) sees(c StackConfig, s stackRecord, standing planning.Standing) planning.Standing {
	ours := f.owner(c)
	standing.Endpoints = slices.Clone(standing.Endpoints)
	for i := range standing.Endpoints {
		e := &standing.Endpoints[i]
		if e.Owner == ours || f.orphaned(e.Owner) {
			e.Owner = ""
		}
		since, all := s.since(*e), e.Rollouts
		e.Rollouts = nil
		for _, r := range all {
			if engineclient.Terminal(r.State) && !s.has(r.ID) && (r.CreatedAt.Before(since) || s.again(r)) {
				e.Past = append(e.Past, r) // what it has left still stands
				continue
			}
			e.Rollouts = append(e.Rollouts, r)
		}
	}
	return standing
}

// history are the rollouts that a plan was made without.
func (p *planned) history() []string {
	var out []string
	for _, e := range p.changes.Standing.Endpoints {
		for _, r := range e.Past {
			out = append(out, r.ID)
		}
	}
	return out
}

// again reports whether a rollout is of a spec that a person has allowed once more since.
func (s *stackRecord) again(r api.Rollout) bool {
	return slices.ContainsFunc(s.Again, func(a allowedAgain) bool {
		return r.CreatedAt.Before(a.At) && (a.Rollout == r.ID || r.Sluice != nil && a.Spec == r.Sluice.Digest)
	})
}

// has reports whether an id is bound.
func (s *stackRecord) has(id string) bool {
	return slices.ContainsFunc(s.Bound, func(b boundThing) bool { return b.ID == id })
}

// since is when the newest rollout of an endpoint that the stack has was made: those
// before it are history.
func (s *stackRecord) since(e planning.StandingEndpoint) time.Time {
	var out time.Time
	for _, r := range e.Rollouts {
		if s.has(r.ID) && r.CreatedAt.After(out) {
			out = r.CreatedAt.Time
		}
	}
	return out
}

// applied is what this stack has applied last: the set of the newest commit that was in
// step, with what the current run has changed since.
func (f *follower) applied(ctx context.Context, c StackConfig, s stackRecord, o folder, options declaration.Options, kept *loads) (declaration.Set, bool, error) {
	if s.Settled == "" {
		return declaration.Set{}, false, nil
	}
	m := f.remember(c.Name)
	if m.settled != s.Settled {
		tree, err := f.remote.Read(ctx, f.at(s.Settled))
		var gone *gitsource.Gone
		if errors.As(err, &gone) {
			return declaration.Set{}, false, nil // whose a difference is cannot be told then
		}
		if err != nil {
			return declaration.Set{}, false, fmt.Errorf("read %s, which was applied last: %w", short(s.Settled), err)
		}
		then := folderOf(tree, c)
		old, err := then.options(c) // with its own files of variables
		old.Timings, old.Known = options.Timings, options.Known
		set, diags := declaration.LoadFiles(then.Files, old)
		if err != nil || diags.HasErrors() {
			return declaration.Set{}, false, nil //nolint:nilerr // the configuration names other variables now
		}
		m.settled, m.applied = s.Settled, set
	}
	if len(s.Done) == 0 {
		return m.applied, true, nil
	}
	now, diags := kept.load(o, options)
	return overlaid(m.applied, now, s.Done), !diags.HasErrors(), nil
}

// overlaid is a set with the blocks of a newer one at some addresses.
func overlaid(base, now declaration.Set, at []string) declaration.Set {
	if len(at) == 0 {
		return base
	}
	newer := func(a declaration.Address) bool { return slices.Contains(at, a.String()) }
	return declaration.Set{
		Order:       base.Order,
		Endpoints:   pick(base.Endpoints, now.Endpoints, func(e declaration.Endpoint) bool { return newer(e.Address) }),
		Deployments: pick(base.Deployments, now.Deployments, func(d declaration.Deployment) bool { return newer(d.Address) }),
		Rollouts:    pick(base.Rollouts, now.Rollouts, func(r declaration.Rollout) bool { return newer(r.Address) }),
	}
}

func pick[T any](base, now []T, newer func(T) bool) []T {
	return slices.Concat(slices.DeleteFunc(slices.Clone(base), newer), slices.DeleteFunc(slices.Clone(now), func(v T) bool { return !newer(v) }))
}
