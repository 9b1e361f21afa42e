package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// holds lists what keeps a run from being applied, all of it and not only the first: a
// person who lifts one thing wants to know what is next. Each names how to go on.
func (p *stackPass) holds(ctx context.Context, run *runRecord) ([]Wait, error) {
	var out []Wait
	if s := p.s.Suspended; s != nil {
		out = append(out, Wait{For: ForPerson, What: fmt.Sprintf("suspended by %s at %s: %s. Go on with: %s", inert(s.Who), stamp(s.At), inert(s.Reason), p.way(Continue, ""))})
	}
	switch {
	case p.gitErr != nil:
		out = append(out, Wait{For: ForSource, What: "Git could not be read, so it is not known whether this is still what it says: " + inert(p.gitErr.Error())})
	case p.source.Now.State != gitsource.Found:
		out = append(out, Wait{For: ForSource, What: p.source.Now.Reason})
	}
	out = append(out, p.frozen()...)
	deps, err := p.dependencies(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, deps...)
	out = append(out, p.denials(p.plan.verdict, run)...)
	if w, ok := p.shrinkage(run); ok {
		out = append(out, w)
	}
	if w, ok := p.emptied(run); ok {
		out = append(out, w)
	} else if w, ok := p.unapproved(run); ok {
		out = append(out, w)
	}
	return out, nil
}

// way is what a person types for a verb: a comment where there is a forge, a command
// where there is none. Words are what the verb takes.
func (p *stackPass) way(v Verb, words string) string {
	if p.forge != nil {
		if v == Override || v == Reverse {
			words += " because …"
		}
		return strings.TrimSpace(fmt.Sprintf("/sluice %s %s", v, words))
	}
	command := string(v)
	switch v {
	case Continue:
		command = "resume"
	case Override:
		words += " --reason …"
	case Retry:
		words = "--endpoint " + words
	case Reverse:
		words = "--endpoint " + words + " --reason …"
	default:
	}
	return strings.TrimSpace(fmt.Sprintf("sluice reconcile %s %s %s", command, p.k, words))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

// frozen is the change freezes that cover this stack now.
func (p *stackPass) frozen() []Wait {
	var out []Wait
	for _, z := range p.Reconciler.config.Freezes {
		if len(z.Stacks) > 0 && !slices.ContainsFunc(z.Stacks, func(k StackKey) bool {
			return k.Repository == p.k.Repository && (k.Stack == "" || k.Stack == p.k.Stack)
		}) {
			continue
		}
		if until, ok := z.Frozen(p.now()); ok {
			out = append(out, Wait{For: ForFreeze, Till: until, What: strings.TrimSuffix(fmt.Sprintf("change freeze %s until %s: %s", z.Name, stamp(until), z.Reason), ": ")})
		}
	}
	return out
}

// dependencies are the stacks that must be at rest before this one.
func (p *stackPass) dependencies(ctx context.Context) ([]Wait, error) {
	var out []Wait
	for _, k := range p.c.DependsOn {
		s, err := read[stackRecord](ctx, p.ledger, stackKey(k))
		if err != nil {
			return nil, err
		}
		behind := k.Repository == p.k.Repository && p.tree != nil && s.Newest.ID != p.tree.Commit.ID
		if s.Phase == InStep && len(s.Queue) == 0 && len(s.Open) == 0 && s.Error == "" && !behind {
			continue
		}
		phase := string(s.Phase)
		if phase == "" {
			phase = "not seen yet"
		}
		what := fmt.Sprintf("stack %s is %s", k, phase)
		if len(s.Waits) > 0 {
			what += " (" + s.Waits[0].What + ")"
		}
		out = append(out, Wait{For: ForDependency, What: what})
	}
	return out, nil
}

// denials are what the policy refuses and nobody has lifted for this plan.
func (p *stackPass) denials(v policy.Verdict, run *runRecord) []Wait {
	var out []Wait
	for _, r := range v.Remarks {
		if r.Severity != policy.Deny || lifted(r, run.Overrides, run.Digest) {
			continue
		}
		what := "denied by policy"
		if r.Rule != "" {
			what += " " + inert(r.Rule)
		}
		what += ": " + inert(r.Message)
		if len(r.Override) > 0 {
			what += ". " + joined(r.Override) + " may lift it: " + p.way(Override, inert(r.Rule))
		}
		out = append(out, Wait{For: ForPolicy, What: what})
	}
	return out
}

func lifted(r policy.Remark, given []override, digest string) bool {
	return r.Rule != "" && len(r.Override) > 0 && slices.ContainsFunc(given, func(o override) bool { return o.Rule == r.Rule && o.Digest == digest })
}

// slot counts the rollouts that are under way over all stacks. The caller holds the lock
// of starts until its own is recorded.
func (r *Reconciler) slot(ctx context.Context) (Wait, bool, error) {
	most := r.config.Limits.Rollouts
	if most == 0 {
		return Wait{}, false, nil
	}
	n, holders := 0, []string(nil)
	for _, f := range r.followers { // a stack that was taken out of the configuration has no slot
		for _, c := range f.config.Stacks {
			s, err := read[stackRecord](ctx, r.ledger, stackKey(f.key(c.Name)))
			if err != nil {
				return Wait{}, false, err
			}
			n += s.UnderWay
			switch {
			case s.UnderWay > 0 && s.Phase == Parked:
				holders = slices.Insert(holders, 0, fmt.Sprintf("%s, parked since %s", f.key(c.Name), stamp(s.Since)))
			case s.UnderWay > 0:
				holders = append(holders, f.key(c.Name).String())
			}
		}
	}
	if n < most {
		return Wait{}, false, nil
	}
	return Wait{For: ForSlot, What: fmt.Sprintf("%s under way (%s), and limits { rollouts = %d } allows no more", planning.Count(n, "rollout"), clip(strings.Join(holders, "; "), 500), most)}, true, nil
}
