package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// handOn hands a command to the stacks that it can mean: of those that the pull request
// touches the one that it names, or all of them.
func (f *follower) handOn(ctx context.Context, r *pullRecord, c forge.Comment, command Command, b *journal.Batch) error {
	all, err := f.touched(ctx, r)
	if err != nil {
		return err
	}
	command, found, problem := chosenOf(command, all)
	if problem != "" {
		r.answer(c, problem, forge.Denied)
		return nil
	}
	seen, given := r.plansSeen(c.At), 0
	for _, t := range found {
		a := f.askOf(r, c, command, t.stack)
		if slices.Contains(t.whole, a.Selector) {
			a.Selector = ""
		}
		if a.Verb == Override { // it is said of a plan, and lifts nothing of another one
			i := slices.IndexFunc(seen, func(p pullPlan) bool { return p.Stack == t.stack })
			if i < 0 {
				continue
			}
			a.Digest = seen[i].Digest
		}
		b.Put = append(b.Put, record(askKey(f.key(t.stack), a.ID), a))
		given++
	}
	switch {
	case given > 0:
	case len(found) > 0:
		r.answer(c, "The comment showed no plan of this when that was said. Look at what is there now, and say it again.", forge.Denied)
	default:
		r.answer(c, "This pull request changes nothing here that the command could act on.", forge.Denied)
	}
	return nil
}

// touched is a stack that a pull request touches, with what people call it and what is in it.
type touched struct {
	stack     string
	whole     []string // the stack itself
	parts     []string // of its things, every way to write each
	endpoints []string // for an answer, such as prod/chat
}

func (t touched) has(name string) bool {
	return slices.Contains(t.whole, name) || slices.Contains(t.parts, name)
}

// isStack reports whether the configuration has a stack.
func (f *follower) isStack(name string) bool {
	return slices.ContainsFunc(f.config.Stacks, func(c StackConfig) bool { return c.Name == name })
}

// touched are the stacks of a pull request with the names that mean them: of what they have
// and of what the pull request would make.
func (f *follower) touched(ctx context.Context, r *pullRecord) ([]touched, error) {
	var out []touched
	for _, p := range r.Plans {
		if !f.isStack(p.Stack) {
			continue // it was taken out of the configuration since
		}
		s, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(p.Stack)))
		if err != nil {
			return nil, err
		}
		endpoints, err := f.live.named(ctx, s.endpointIDs())
		if err != nil {
			return nil, err
		}
		t := touched{stack: p.Stack, whole: []string{p.Stack, f.key(p.Stack).String()}}
		for _, thing := range s.Bound {
			t.parts = append(t.parts, thing.Address.String(), thing.ID)
		}
		for _, e := range slices.Concat(endpoints, f.wouldMake(r, p.Stack)) {
			if name := p.Stack + "/" + e; !slices.Contains(t.endpoints, name) {
				t.parts, t.endpoints = append(t.parts, f.names(p.Stack, runRollout{Endpoint: e})...), append(t.endpoints, name)
			}
		}
		t.parts = slices.DeleteFunc(t.parts, func(name string) bool { return name == "" })
		out = append(out, t)
	}
	return out, nil
}

// wouldMake are the endpoints that a pull request, or its merge, changes something of.
func (f *follower) wouldMake(r *pullRecord, stack string) []string {
	var plans []*planned
	if own := f.pulls.plans[r.Number]; own != nil {
		for _, s := range own.stacks {
			if s.c.Name == stack {
				plans = append(plans, s.plan)
			}
		}
	}
	if merged := f.stackPlan(f.key(stack)); merged != nil {
		plans = append(plans, merged)
	}
	var out []string
	for _, p := range plans {
		for _, c := range p.changes.List {
			if c.Endpoint != "" {
				out = append(out, c.Endpoint)
			}
		}
	}
	return out
}

// chosenOf finds the stacks that a command means. A name without a slash may be the first
// word of the reason. The problem says what there is.
func chosenOf(command Command, all []touched) (Command, []touched, string) {
	if u, _ := usageOf(command.Verb); u.takes != takesSelector || len(all) == 0 {
		return command, all, ""
	}
	if command.Selector == "" {
		first, rest, _ := strings.Cut(command.Reason, " ")
		if word := strings.TrimRight(first, ":,"); slices.ContainsFunc(all, func(t touched) bool { return t.has(word) }) {
			command.Selector, command.Reason = word, strings.TrimSpace(rest)
		}
	}
	if command.Selector == "" {
		return command, all, ""
	}
	found := slices.DeleteFunc(slices.Clone(all), func(t touched) bool { return !t.has(command.Selector) })
	var there []string
	for _, t := range all {
		there = append(append(there, t.stack), t.endpoints...)
	}
	switch {
	case len(found) == 0:
		return command, nil, fmt.Sprintf("Nothing here is named %s; there is %s.", command.Selector, joined(there))
	case len(found) > 1:
		return command, nil, fmt.Sprintf("Say which one: %s. For example: /sluice %s %s", joined(there), command.Verb, there[0])
	}
	return command, found, ""
}
