package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
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
		if v == Override {
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

// shrinkage guards against a commit that takes away more than a person would mean: the
// wrong path, an empty branch, a file that was lost. An approval of the plan lifts it.
func (p *stackPass) shrinkage(run *runRecord) (Wait, bool) {
	if p.config.Prune.Mode != PruneOn || p.said(run) != nil {
		return Wait{}, false
	}
	gone, bound := p.plan.gone(), p.s.things()
	if gone == 0 || bound == 0 {
		return Wait{}, false
	}
	left := bound - gone
	if left > 0 && gone*100 <= p.config.Prune.MostShrink*bound {
		return Wait{}, false
	}
	return Wait{For: ForPrune, What: fmt.Sprintf("this commit takes away %d of %d things, more than prune { most_shrink = %d } allows; nothing is deleted. If it is meant, approve the plan: %s",
		gone, bound, p.config.Prune.MostShrink, p.way(Approve, planning.ShortDigest(run.Digest)))}, true
}

// emptied guards against filling an engine that has lost what it had: where every endpoint
// of a stack is gone, a backup may be about to be put back, or this is not the engine that
// is meant. An approval of the plan lifts it.
func (p *stackPass) emptied(run *runRecord) (Wait, bool) {
	had := len(p.s.endpointIDs())
	if had == 0 || p.said(run) != nil {
		return Wait{}, false
	}
	gone := 0
	for _, c := range p.plan.changes.Pending() {
		if c.Kind == declaration.EndpointKind && c.Action == planning.Create && p.vanished(c) {
			gone++
		}
	}
	if gone < had {
		return Wait{}, false
	}
	return Wait{For: ForApproval, What: fmt.Sprintf("the engine has none of the %s that this stack has made; nothing is made again until somebody says that it is meant. If it is, approve the plan: %s",
		planning.Count(had, "endpoint"), p.way(Approve, planning.ShortDigest(run.Digest)))}, true
}

// said is what a person has said for a run's plan as it is now, by a comment, a review or
// a key.
func (p *stackPass) said(run *runRecord) *approval {
	for i := range run.Approved {
		if run.Approved[i].Digest == run.Digest {
			return &run.Approved[i]
		}
	}
	return nil
}

// approved is the approval of a run's plan as it is now, from wherever it came. The file
// names the whole digest, since it stands there for plans to come, too. It counts where the repository asks for approvals as such: whoever can push can write it, so
// it lifts neither the guard of prune nor what a moved tag asks for.
func (p *stackPass) approved(run *runRecord) *approval {
	if a := p.said(run); a != nil || run.NeedsWord != "" {
		return a
	}
	if p.folder != nil && slices.ContainsFunc(p.folder.Approvals, func(w string) bool { return wholeDigest(w) == run.Digest }) {
		return &approval{Digest: run.Digest, Who: inert(p.folder.Commit.Author), Via: "file " + approvalsFile, At: p.folder.Commit.At}
	}
	return nil
}

// wholeDigest is a word as a digest is written in full.
func wholeDigest(word string) string { return "sha256:" + strings.TrimPrefix(word, "sha256:") }

// unapproved is the wait for a person's word about the plan.
func (p *stackPass) unapproved(run *runRecord) (Wait, bool) {
	why := run.NeedsWord
	if p.config.Approval == ApproveByDigest && why == "" {
		why = "the repository asks for it"
	}
	if why == "" || p.approved(run) != nil {
		return Wait{}, false
	}
	what := fmt.Sprintf("plan %s needs an approval, since %s", planning.ShortDigest(run.Digest), why)
	if n := len(run.Approved); n > 0 {
		old := run.Approved[n-1]
		what += fmt.Sprintf(". The approval of %s by %s is void: what it was given for has changed since", planning.ShortDigest(old.Digest), inert(old.Who))
	}
	if i := slices.IndexFunc(p.folder.Approvals, func(w string) bool { return digestMeans(w, run.Digest) }); i >= 0 && why != run.NeedsWord {
		what += fmt.Sprintf(". %s has %s, and takes the whole digest, %s", approvalsFile, inert(p.folder.Approvals[i]), run.Digest)
	}
	what += ". Approve it: " + p.way(Approve, planning.ShortDigest(run.Digest))
	return Wait{For: ForApproval, What: what}, true
}

// slot counts the rollouts that are under way over all stacks. The caller holds the lock
// of starts until its own is recorded.
func (r *Reconciler) slot(ctx context.Context) (Wait, bool, error) {
	most := r.config.Limits.Rollouts
	if most == 0 {
		return Wait{}, false, nil
	}
	n := 0
	for _, f := range r.followers { // a stack that was taken out of the configuration has no slot
		for _, c := range f.config.Stacks {
			s, err := read[stackRecord](ctx, r.ledger, stackKey(f.key(c.Name)))
			if err != nil {
				return Wait{}, false, err
			}
			n += s.UnderWay
		}
	}
	if n < most {
		return Wait{}, false, nil
	}
	return Wait{For: ForSlot, What: fmt.Sprintf("%d rollouts are under way, and limits { rollouts = %d } allows no more", n, most)}, true, nil
}
