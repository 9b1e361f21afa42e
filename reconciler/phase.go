package reconciler

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// phase writes where the stack is; nothing else does. What a pass could not find out
// leaves the phase as it was, with the error beside it.
func (p *stackPass) phase(err error) {
	if p.resting {
		return
	}
	p.s.Error = ""
	if err != nil {
		p.s.Error = render.Inert(err.Error())
	}
	p.endRuns()
	p.s.UnderWay = 0
	for _, run := range p.runs {
		p.s.UnderWay += len(slices.DeleteFunc(slices.Clone(run.Rollouts), func(r runRollout) bool { return !r.Ended.IsZero() }))
	}
	was := p.s.Phase
	switch {
	case errors.Is(err, ErrNotHolder):
		return
	case err != nil && !settled(err):
		p.s.Waits = []Wait{{For: waitOf(err), What: p.s.Error}}
	default:
		p.s.Phase, p.s.Waits = p.where(err)
	}
	if p.s.Phase != was {
		p.s.Since = p.now()
		p.tellPhase(was)
	}
	if run := p.current(); run != nil && p.plan != nil && run.Ended.IsZero() {
		run.Phase, run.Waits, run.Error = p.s.Phase, p.s.Waits, p.s.Error
	}
}

func waitOf(err error) WaitKind {
	var other *OtherProject
	if engineclient.IsUnreachable(err) || shutOut(err) || errors.As(err, &other) {
		return ForEngine
	}
	return ForSource
}

// where is the phase of a stack whose pass ended well.
func (p *stackPass) where(err error) (Phase, []Wait) {
	var waits []Wait
	if p.plan != nil {
		waits = p.plan.waits
	}
	for _, run := range p.runs {
		for _, r := range run.Rollouts {
			if r.Category != "" && r.Ended.IsZero() {
				return Parked, append([]Wait{{For: ForPerson, What: p.parkText(run, r, "is parked")}}, waits...)
			}
		}
	}
	switch {
	case p.plan != nil && p.plan.diags.HasErrors():
		return Invalid, []Wait{{For: ForPerson, What: p.mistakes()}}
	case err != nil:
		return Failed, []Wait{{For: ForEngine, What: p.s.Error}}
	case p.s.UnderWay > 0:
		return RollingOut, waits
	case p.plan != nil && p.plan.acted > 0 && !p.plan.done:
		return Applying, waits
	case len(waits) > 0:
		return Waiting, waits
	case p.s.Commit.ID == "":
		return Waiting, []Wait{{For: ForSource, What: p.unread()}}
	case p.plan == nil: // nothing was planned in this pass, so nothing new is known
		return p.asBefore()
	case p.ahead():
		return Ahead, p.aheadOf()
	}
	return InStep, nil
}

// mistakes are the first of the errors of a folder, and where the others are shown.
func (p *stackPass) mistakes() string {
	text, n := firstError(p.plan.diags), 0
	for _, d := range p.plan.diags {
		if d.Severity == declaration.Error {
			n++
		}
	}
	if n > 1 {
		text += fmt.Sprintf(" (and %s; sluice reconcile diff %s shows all)", planning.Count(n-1, "more error"), p.k)
	}
	return text
}

// unread says why no commit of a stack was read yet.
func (p *stackPass) unread() string {
	if p.source.Now.Reason != "" {
		return p.source.Now.Reason
	}
	if p.gitErr != nil {
		return "Git has not been read yet: " + render.Inert(p.gitErr.Error())
	}
	return "Git has not been read yet"
}

// asBefore is the phase of a stack that was not planned: what it was, but for a rollout
// that has ended since.
func (p *stackPass) asBefore() (Phase, []Wait) {
	switch p.s.Phase {
	case RollingOut, Parked, Applying, "":
		return Waiting, []Wait{{For: ForSource, What: "it is planned again when Git can be read"}}
	case InStep, Waiting, Ahead, Invalid, Failed, Superseded, Finished:
	}
	return p.s.Phase, p.s.Waits
}

// allDecisions are the decisions in a steady order.
func (p *stackPass) allDecisions() []decisionRecord {
	return slices.SortedFunc(maps.Values(p.decisions), func(a, b decisionRecord) int {
		return cmp.Or(strings.Compare(a.Address, b.Address), strings.Compare(a.Spec, b.Spec))
	})
}

// ahead reports whether a person's word stands against what Git declares.
func (p *stackPass) ahead() bool { return len(p.aheadOf()) > 0 }

func (p *stackPass) aheadOf() []Wait {
	var out []Wait
	for _, d := range p.allDecisions() {
		address := d.Address
		if p.s.Submitted[address] != d.Spec && !p.declares(address, d.Spec) || p.asGitSays(address) {
			continue
		}
		verb := "canceled"
		if d.Verb == Reverse {
			verb = "taken back"
		}
		what := fmt.Sprintf("%s: rollout %s was %s", address, d.Rollout, verb)
		if d.Who != "" {
			what += " by " + render.Inert(d.Who)
		}
		what += "; this spec is not started again by itself. Change it in Git, or allow it: " + p.way(Retry, address)
		out = append(out, Wait{For: ForPerson, What: what})
	}
	return out
}

// declares reports whether Git asks for a spec now.
func (p *stackPass) declares(address, spec string) bool {
	if p.plan == nil {
		return false
	}
	c, ok := p.plan.changes.Find(address)
	return ok && c.Pending() && c.Digest == spec
}

// asGitSays reports whether Git itself asks for the end that a rollout has had.
func (p *stackPass) asGitSays(address string) bool {
	if p.plan == nil {
		return false
	}
	c, ok := p.plan.changes.Find(address)
	return ok && c.Declared.Rollout != nil && c.Declared.Rollout.DesiredState.Value == planning.WantCanceled
}

// endRuns ends the runs that have nothing left to do or to watch.
func (p *stackPass) endRuns() {
	for _, run := range p.runs {
		if !run.Ended.IsZero() || slices.ContainsFunc(run.Rollouts, func(r runRollout) bool { return r.Ended.IsZero() }) {
			continue
		}
		switch {
		case run.By != "":
			run.Phase = Superseded
		case run.TakenBack:
			run.Phase = Finished
		case p.plan != nil && p.plan.done && run == p.current():
			run.Phase = Finished
			p.s.Settled, p.s.Done = run.Commit.ID, nil
		default:
			continue
		}
		run.Ended, run.Waits = p.now(), nil
		p.retire(run)
	}
}

// keep keeps a run that is over among the newest, for its receipt and for those who take
// it back, and lets go of the oldest.
func (p *stackPass) keep(run *runRecord) {
	p.s.Recent = append(slices.DeleteFunc(p.s.Recent, func(c string) bool { return c == run.Commit.ID }), run.Commit.ID)
	for len(p.s.Recent) > keepRuns {
		old := runKey(p.k, p.s.Recent[0])
		p.batch.Delete = append(p.batch.Delete, old, journal.Key{Kind: kindPosted, Repository: old.Repository, Stack: old.Stack, Name: old.Name})
		p.s.Recent = p.s.Recent[1:]
	}
}

// retire keeps a run that is over, and tells its end, once.
func (p *stackPass) retire(run *runRecord) {
	p.keep(run)
	if run.TakenBack {
		return
	}
	outcome := "is done"
	if run.Phase == Superseded {
		by := run.By
		if p.s.Commit.ID != run.Commit.ID { // which may be newer than the one that came first
			by = p.s.Commit.ID
		}
		outcome = "is over; " + short(by) + " has taken its place"
	}
	p.tell(&p.batch, happening{
		Key: []string{run.Commit.ID, p.k.Stack, string(run.Phase)}, Kind: "run." + strings.ReplaceAll(string(run.Phase), " ", "_"), Stack: p.k.Stack, Commit: run.Commit.ID,
		Severity: info, Text: fmt.Sprintf("%s: commit %s %s", p.k, short(run.Commit.ID), outcome),
	})
}

// keepRuns is how many runs of a stack that are over are kept whole.
const keepRuns = 20

// tellPhase tells a new phase of a stack.
func (p *stackPass) tellPhase(was Phase) {
	severity := info
	switch p.s.Phase {
	case Invalid, Failed:
		severity = urgent
	case Waiting, Ahead:
		severity = warning
	case InStep, Applying, RollingOut, Parked, Superseded, Finished: // a park is told by its rollout
	}
	text := fmt.Sprintf("%s is %s", p.k, p.s.Phase)
	for i, w := range p.s.Waits {
		text += map[bool]string{true: ": ", false: "; "}[i == 0] + w.What
	}
	p.tell(&p.batch, happening{
		Key:  []string{p.k.Stack, p.s.Commit.ID, string(was), string(p.s.Phase), fmt.Sprint(len(p.s.Waits))},
		Kind: "stack." + strings.ToLower(strings.ReplaceAll(string(p.s.Phase), " ", "_")), Stack: p.k.Stack, Commit: p.s.Commit.ID, Severity: severity, Text: text,
	})
}
