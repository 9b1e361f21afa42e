package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// steers reports whether a verb is about rollouts, one of which has to be meant.
func steers(v Verb) bool { return slices.Contains([]Verb{Resume, Promote, Cancel, Reverse, Retry}, v) }

// meant is a rollout that a command of a pull request can mean.
type meant struct {
	stack, endpoint, address string
	names                    []string // by which people call it, the shortest first
}

// handRollout hands a command about a rollout to the stack of the one that it means. When
// there are several, one has to be named: a word that was meant for one endpoint must never
// reach another.
func (f *follower) handRollout(ctx context.Context, r *pullRecord, c forge.Comment, command Command, b *journal.Batch) error {
	all, err := f.meantBy(ctx, r)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return f.handOn(ctx, r, c, command, b)
	}
	if command.Selector == "" {
		if first, rest, _ := strings.Cut(command.Reason, " "); slices.ContainsFunc(all, func(m meant) bool { return slices.Contains(m.names, first) }) {
			command.Selector, command.Reason = first, strings.TrimSpace(rest)
		}
	}
	found := all
	if command.Selector != "" {
		found = slices.DeleteFunc(slices.Clone(all), func(m meant) bool { return !slices.Contains(m.names, command.Selector) })
	}
	var there []string
	for _, m := range all {
		there = append(there, m.stack+"/"+m.endpoint)
	}
	switch u, _ := usageOf(command.Verb); {
	case len(found) == 0:
		r.answer(c, fmt.Sprintf("Nothing here is named %s; there is %s.", command.Selector, joined(there)), forge.Denied)
	case len(found) > 1:
		r.answer(c, fmt.Sprintf("Say which one: %s. For example: /sluice %s %s", joined(there), command.Verb, there[0]), forge.Denied)
	case !f.isStack(found[0].stack):
		r.answer(c, fmt.Sprintf("Stack %s is not in the configuration any more. Steer the rollout itself: sluice rollout %[2]s --resume, sluice rollout %[2]s --promote or sluice rollout %[2]s --cancel --reason …", found[0].stack, found[0].endpoint), forge.Denied)
	case u.reason == reasonNeeded && command.Reason == "":
		r.answer(c, fmt.Sprintf("%s needs a reason: %s", command.Verb, u.example), forge.Denied)
	default:
		a := f.askOf(r, c, command, found[0].stack)
		a.Selector = found[0].address
		b.Put = append(b.Put, record(askKey(f.key(a.Stack), a.ID), a))
	}
	return nil
}

// meantBy are the rollouts that a pull request has brought: of runs that are open, and of
// those just over, which can be taken back or allowed again.
func (f *follower) meantBy(ctx context.Context, r *pullRecord) ([]meant, error) {
	var out []meant
	for _, p := range r.Plans {
		s, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(p.Stack)))
		if err != nil {
			return nil, err
		}
		for _, commit := range slices.Concat(s.Recent, s.Open) {
			run, err := read[runRecord](ctx, f.ledger, runKey(f.key(p.Stack), commit))
			if err != nil {
				return nil, err
			}
			if slices.Contains(run.Pulls, r.Number) {
				out = f.gather(out, p.Stack, run)
			}
		}
	}
	return out, nil
}

// gather adds a run's rollouts, one for each address.
func (f *follower) gather(out []meant, stack string, run runRecord) []meant {
	for _, x := range run.Rollouts {
		at := slices.IndexFunc(out, func(m meant) bool { return m.stack == stack && m.address == x.Address })
		if at < 0 {
			out, at = append(out, meant{stack: stack, endpoint: x.Endpoint, address: x.Address, names: append(f.names(stack, x), stack, f.key(stack).String())}), len(out)
		}
		out[at].names = append(out[at].names, x.ID)
	}
	return out
}

// names are what people call a rollout, the shortest first: its endpoint with and without
// project, stack and repository before it, its address, its id.
func (f *follower) names(stack string, r runRollout) []string {
	out := []string{r.Endpoint, stack + "/" + r.Endpoint, f.key(stack).String() + "/" + r.Endpoint, r.Address, r.ID}
	if slug := f.live.slug(); slug != "" {
		out = append(out, slug+"/"+r.Endpoint, stack+"/"+slug+"/"+r.Endpoint, f.key(stack).String()+"/"+slug+"/"+r.Endpoint)
	}
	return out
}
