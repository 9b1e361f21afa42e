package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// planPull plans an open pull request at its merge result, when its head, the followed
// ref or the request itself is new, and where something looks otherwise at the engine.
func (f *follower) planPull(ctx context.Context, r *pullRecord, pr forge.PullRequest) (*pullPlanned, error) {
	was := f.pulls.plans[r.Number]
	if was != nil && was.head == pr.Head && was.base == f.source.Now.Commit && !r.Again {
		return was, f.renew(ctx, r, was)
	}
	out := &pullPlanned{head: pr.Head, base: f.source.Now.Commit}
	tree, err := f.mergeResult(ctx, r, out)
	var large *gitsource.TooMuch
	switch {
	case errors.As(err, &out.conflict):
	case errors.As(err, &large): // another head may be smaller
		out.conflict = &gitsource.Conflict{Base: out.base, Head: out.head, Why: large.Error()}
	case err != nil:
		return nil, err
	default:
		if err := f.planStacks(ctx, tree, out, f.trustOf(r, pr)); err != nil {
			return nil, err
		}
	}
	f.pulls.plans[r.Number] = out
	f.takeIn(r, out)
	return out, nil
}

// mergeResult reads the merge of a pull request. What cannot be merged while Git itself can
// be read is the pull request's own fault: it is tried again ever more seldom, so that no
// head can make every pass fetch it anew.
func (f *follower) mergeResult(ctx context.Context, r *pullRecord, out *pullPlanned) (gitsource.Snapshot, error) {
	was := f.pulls.failed[r.Number]
	if same := was.head == out.head && was.base == out.base; !same || r.Again {
		was = failedMerge{head: out.head, base: out.base}
	} else if f.now().Before(was.again) {
		return gitsource.Snapshot{}, was.err
	}
	tree, err := f.remote.Merge(ctx, out.base, out.head)
	var conflict *gitsource.Conflict
	var large *gitsource.TooMuch
	if err == nil || errors.As(err, &conflict) || errors.As(err, &large) {
		delete(f.pulls.failed, r.Number)
		return tree, err
	}
	err = fmt.Errorf("merge %s into %s for the plan: %w", short(out.head), short(out.base), err)
	if f.gitErr == nil && ctx.Err() == nil {
		was.again, was.err = f.now().Add(min(longestBackOff, f.config.Interval<<min(was.times, 6))), err
		was.times++
		r.Again = false
		f.pulls.failed[r.Number] = was
	}
	return tree, err
}

// trust says whether a pull request's files may be planned.
type trust string

const (
	trusted  trust = "trusted"
	stranger trust = "stranger"
)

// trustOf is whether a pull request is of the repository itself, or somebody who may write
// has asked for the plan of this very head.
func (f *follower) trustOf(r *pullRecord, pr forge.PullRequest) trust {
	if !pr.Fork || f.config.Forge.Forks == PlanForks || r.Vouched == pr.Head {
		return trusted
	}
	return stranger
}

// planStacks plans the stacks whose files the merge would change.
func (f *follower) planStacks(ctx context.Context, tree gitsource.Snapshot, out *pullPlanned, trust trust) error {
	for _, c := range f.config.Stacks {
		before, after := folderOf(*f.tree, c), folderOf(tree, c)
		if before.Digest == after.Digest {
			continue
		}
		out.refused = append(out.refused, after.Refused...)
		s, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(c.Name)))
		if err != nil {
			return err
		}
		looks, err := f.looksTo(ctx, s)
		if err != nil {
			return err
		}
		plan := &planned{folder: after, problem: "This pull request comes from a fork. Its plan would tell values of variables and of the engine, so it is made when somebody who may write asks for it: /sluice plan"}
		if trust == trusted {
			if plan, err = f.planFolder(ctx, c, after, s, nil); err != nil {
				return err
			}
		}
		out.stacks = append(out.stacks, stackPlanned{c: c, plan: plan, looks: looks, diff: diffOf(before, after)})
	}
	return nil
}

// renewAfter is the shortest time between two plans of one head.
const renewAfter = time.Minute

// renew plans anew what looks otherwise since the plan was made: the comment shows what a
// merge would do now, and an approval that does not hold any more is told before it.
func (f *follower) renew(ctx context.Context, r *pullRecord, was *pullPlanned) error {
	changed := false
	for i := range was.stacks {
		s := &was.stacks[i]
		if s.plan.problem != "" || f.now().Sub(s.plan.at) < renewAfter {
			continue
		}
		record, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(s.c.Name)))
		if err != nil {
			return err
		}
		looks, err := f.looksTo(ctx, record)
		if err != nil {
			return err
		}
		if looks == s.looks {
			continue
		}
		plan, err := f.planFolder(ctx, s.c, s.plan.folder, record, nil)
		if err != nil {
			return err
		}
		s.plan, s.looks, changed = plan, looks, true
	}
	if changed {
		f.takeIn(r, was)
	}
	return nil
}

// looksTo is how everything looks to a stack besides its files: what it has at the engine,
// the rules, and what it was allowed.
func (f *follower) looksTo(ctx context.Context, s stackRecord) (string, error) {
	tags, err := f.live.looks(ctx, s.endpointIDs())
	return strings.Join([]string{tags, f.judgedBy, fmt.Sprint(len(s.Again))}, "\n"), err
}

// takeIn makes a plan the one that the record stands for. An approval of another digest
// is void by itself, since it names its digest. When the followed ref alone has moved and
// has the change already, the plan that was shown stays on record: it was merged, and the
// forge has not said so yet.
func (f *follower) takeIn(r *pullRecord, p *pullPlanned) {
	if r.Head == p.head && p.conflict == nil && len(p.stacks) == 0 {
		r.Base, r.Again = p.base, false
		return
	}
	if r.Head != "" && r.Head != p.head {
		old := ""
		for _, s := range r.Plans {
			old = s.Digest
		}
		r.History = append(r.History, pushed{Commit: r.Head, Digest: old, At: f.now(), Verdict: r.Verdict})
		if n := len(r.History); n > 30 {
			r.History = slices.Delete(r.History, 0, n-30)
		}
	}
	r.Head, r.Base, r.Again, r.Plans = p.head, p.base, false, nil
	for _, s := range p.stacks {
		r.Plans = append(r.Plans, pullPlan{Stack: s.c.Name, Digest: s.plan.digest})
	}
}
