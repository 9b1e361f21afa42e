package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// hearOverride lifts a denial for the plans that stand, when the denial itself names the
// one who asks.
func (f *follower) hearOverride(ctx context.Context, r *pullRecord, c forge.Comment, command Command, b *journal.Batch) error {
	plans, changed := r.Plans, false
	if r.State == forge.IsOpen {
		plans, changed = r.standAndSeen(c.At)
	}
	var judged []judgement
	for _, p := range plans {
		judged = append(judged, f.judgedOf(r, p.Stack)...)
	}
	allowed, err := f.mayLift(ctx, judged, command.Rule, Person{Name: c.Author, Door: AtForge, Author: r.Author}, f.forge)
	if err != nil {
		return err
	}
	switch {
	case !allowed.OK && changed:
		r.answer(c, "The plan has changed since the comment showed it. Look at what is there now, and say it again.", forge.Denied)
	case !allowed.OK:
		r.answer(c, allowed.Why, forge.Denied)
	case r.State != forge.IsOpen:
		return f.handOn(ctx, r, c, command, b)
	default:
		for _, p := range plans {
			r.Overrides = append(r.Overrides, override{Rule: command.Rule, Who: c.Author, Reason: command.Reason, Digest: p.Digest, At: c.At})
		}
		r.answer(c, "", forge.Done)
	}
	return nil
}

// standAndSeen are the plans that stand now and were shown to whoever said something then.
// Changed tells that there are others.
func (r *pullRecord) standAndSeen(at time.Time) (out []pullPlan, changed bool) {
	seen := r.plansSeen(at)
	for _, p := range r.Plans {
		if slices.Contains(seen, p) {
			out = append(out, p)
		} else if p.Digest != "" {
			changed = true
		}
	}
	return out, changed
}

// judgedOf is what the policies said of the plan that stands for a stack: of the pull
// request while it is open, of the stack afterwards.
func (f *follower) judgedOf(r *pullRecord, stack string) []judgement {
	if r.State == forge.IsOpen {
		if p := f.pulls.plans[r.Number]; p != nil {
			for _, s := range p.stacks {
				if s.c.Name == stack {
					return s.plan.judged
				}
			}
		}
		return nil
	}
	return f.stackJudged(f.key(stack))
}

func (r *Reconciler) stackJudged(k StackKey) []judgement {
	if p := r.stackPlan(k); p != nil {
		return p.judged
	}
	return nil
}

// mayLift decides whether somebody may lift a rule's denials: every one that the word
// would lift, since policies may have rules of the same name.
func (f *follower) mayLift(ctx context.Context, judged []judgement, rule string, who Person, ranks Ranks) (Allowed, error) {
	out := Allowed{Why: fmt.Sprintf("No rule named %s denies the plan that stands now; %s.", render.Inert(rule), denying(judged))}
	for _, j := range judged {
		for _, remark := range j.verdict.Remarks {
			if remark.Severity != policy.Deny || remark.Rule != rule {
				continue
			}
			allowed, err := j.mayLift(ctx, remark, who, ranks)
			if err != nil || !allowed.OK {
				return allowed, err
			}
			out = allowed
		}
	}
	return out, nil
}

// mayLift decides about one denial: it names who in general, and the configuration of its
// own policy says who that is.
func (j judgement) mayLift(ctx context.Context, remark policy.Remark, who Person, ranks Ranks) (Allowed, error) {
	rule := render.Inert(remark.Rule)
	if len(remark.Override) == 0 {
		return Allowed{Why: fmt.Sprintf("Rule %s lets nobody lift it.", rule)}, nil
	}
	for _, name := range remark.Override {
		if allowed, err := Granted(ctx, j.by.Overriders[name], who, ranks); err != nil || allowed.OK {
			return allowed, err
		}
	}
	return Allowed{Why: fmt.Sprintf("%s may not lift rule %s: that takes %s.", who.called(), rule, j.lifters(who, remark))}, nil
}

// lifters names who may lift a denial, and at the person's door what that takes.
func (j judgement) lifters(who Person, remark policy.Remark) string {
	var parts []string
	for _, name := range remark.Override {
		parts = append(parts, fmt.Sprintf("%s (%s)", render.Inert(name), who.takes(j.by.Overriders[name])))
	}
	return joined(parts)
}

// denying names the rules that deny.
func denying(judged []judgement) string {
	var rules []string
	for _, j := range judged {
		for _, remark := range j.verdict.Remarks {
			if remark.Severity == policy.Deny && remark.Rule != "" && !slices.Contains(rules, remark.Rule) {
				rules = append(rules, remark.Rule)
			}
		}
	}
	if len(rules) == 0 {
		return "nothing denies it"
	}
	return "it is denied by " + render.Inert(joined(rules))
}
