package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// act makes one change: its intent first, then the change, then its outcome with all that
// follows from it.
func (p *stackPass) act(ctx context.Context, run *runRecord, c planning.Change) (int, Wait, error) {
	if c.Kind == declaration.RolloutKind && c.Action != planning.Steer && c.Action != planning.Delete {
		p.slots.Lock()
		defer p.slots.Unlock()
		if w, full, err := p.slotFor(ctx, c); err != nil || full {
			return 0, w, err
		}
	}
	if w := p.inVain(c); w.For != "" {
		return 0, w, nil
	}
	if err := p.claim(ctx, c); err != nil {
		return 0, Wait{}, err
	}
	in := journal.Intent{
		ID:         strings.Join([]string{p.k.Repository, p.k.Stack, run.Commit.ID, c.Address.String(), string(c.Action), token()}, " "),
		Repository: p.k.Repository, Stack: p.k.Stack, Address: c.Address.String(), Verb: string(c.Action) + "_" + strings.TrimPrefix(string(c.Kind), "sluice_"),
	}
	first := run.Acted.IsZero()
	if first { // with the digest that was approved, which is another one after the first write
		run.Acted = p.now()
		p.tellFile(run)
	}
	again := Wait{}
	change := func(ctx context.Context) (journal.Batch, error) {
		done, err := Do(ctx, p.engine, p.withoutWeight(c), p.plan.changes.Bindings(), By{Origin: p.origin(run, c), History: p.plan.history()})
		if err != nil {
			return journal.Batch{}, err
		}
		p.meters.writes.WithLabelValues(in.Verb).Inc()
		p.made(run, c, done)
		if done.Again {
			again = Wait{For: ForReady, What: fmt.Sprintf("%s: the engine is still bringing it to rest before it is %s", c.Address, pastOf(c.Action))}
		}
		return p.save(), nil
	}
	err := p.within(ctx, "apply", func(ctx context.Context) error { return p.ledger.intendWith(ctx, in, p.save(), change) },
		ofStack.String(in.Stack), ofVerb.String(in.Verb), ofAddress.String(clip(inert(in.Address), longestAddress)), ofCommit.String(run.Commit.ID))
	if err != nil && first && (settled(err) || refusedBy(err)) {
		run.Acted = time.Time{} // nothing was changed
	}
	if err != nil {
		return 0, Wait{}, err
	}
	if again.For != "" {
		return 0, again, nil
	}
	return 1, Wait{}, nil
}

// tellFile tells of an approval that stands in Git: nobody has asked for anything here.
func (p *stackPass) tellFile(run *runRecord) {
	a := p.approved(run)
	if a == nil || p.said(run) != nil || p.config.Approval != ApproveByDigest {
		return
	}
	p.tell(&p.batch, happening{
		Key: []string{run.Commit.ID, p.k.Stack, run.Digest}, Kind: "asked.approve", Stack: p.k.Stack, Commit: run.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: plan %s is approved by the %s, in commit %s of %s", p.k, planning.ShortDigest(run.Digest), a.Via, short(p.folder.Commit.ID), a.Who),
	})
}

// slotFor reports whether a rollout may be submitted beside those that are under way. One
// that is made already has its place.
func (p *stackPass) slotFor(ctx context.Context, c planning.Change) (Wait, bool, error) {
	if c.Action == planning.Start {
		return Wait{}, false, nil
	}
	return p.slot(ctx)
}

// origin tells the engine who asked.
func (p *stackPass) origin(run *runRecord, c planning.Change) string {
	text := fmt.Sprintf("git %s@%s %s", p.k, short(run.Commit.ID), c.Address)
	if len(run.Pulls) > 0 {
		text += fmt.Sprintf(" pull request %d", run.Pulls[len(run.Pulls)-1])
	}
	return inert(text)
}

// made records what a change has come to.
func (p *stackPass) made(run *runRecord, c planning.Change, done Done) {
	address := c.Address.String()
	if done.Again { // it is on its way, and the same change is made again until it is done
		if done.Rollout != nil {
			p.watchToo(run, c, *done.Rollout)
			p.replaced(done.Rollout.ID)
		}
		return
	}
	p.countRepeat(c)
	run.Done = append(run.Done, doneChange{Action: c.Action, Address: address, ID: done.ID})
	if !slices.Contains(p.s.Done, address) {
		p.s.Done = append(p.s.Done, address)
	}
	if c.Action == planning.Delete {
		p.s.unbind(c.Address)
	} else {
		p.s.bind(c.Address, done.ID)
	}
	if done.Rollout != nil {
		digest := p.watchToo(run, c, *done.Rollout)
		p.s.submit(address, digest)
		p.s.Again = slices.DeleteFunc(p.s.Again, func(a allowedAgain) bool { return a.Spec == digest })
	}
	p.tell(&p.batch, happening{
		Key:  []string{run.Commit.ID, address, string(c.Action), done.ID, fmt.Sprint(len(run.Done))},
		Kind: "apply." + string(c.Action), Stack: p.k.Stack, Endpoint: c.Endpoint, Rollout: rolloutID(done), Commit: run.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: %s %s (%s) for commit %s", p.k, pastOf(c.Action), address, done.ID, short(run.Commit.ID)),
	})
}

// replaced notes that Git itself has canceled a rollout, for another spec.
func (p *stackPass) replaced(id string) {
	for _, run := range p.runs {
		for i := range run.Rollouts {
			if run.Rollouts[i].ID == id {
				run.Rollouts[i].Replaced = true
			}
		}
	}
}

func rolloutID(d Done) string {
	if d.Rollout == nil {
		return ""
	}
	return d.Rollout.ID
}

func pastOf(a planning.Action) string {
	return map[planning.Action]string{
		planning.Create: "created", planning.Start: "started", planning.Steer: "steered", planning.Update: "updated",
		planning.Replace: "replaced", planning.Delete: "deleted", planning.NoOp: "left",
	}[a]
}

// watchToo adds a rollout to those that a run watches, or sees it anew. It returns the
// digest of its spec.
func (p *stackPass) watchToo(run *runRecord, c planning.Change, live api.Rollout) (digest string) {
	p.rollouts[live.ID] = live
	for _, other := range p.runs {
		for i := range other.Rollouts {
			if other.Rollouts[i].ID == live.ID {
				other.Rollouts[i].see(live)
				return other.Rollouts[i].Spec
			}
		}
	}
	r := runRollout{Address: c.Address.String(), Endpoint: c.Endpoint, EndpointID: live.EndpointID, ID: live.ID, Spec: c.Digest, Since: p.now()}
	if live.Sluice != nil && live.Sluice.Digest != "" {
		r.Spec = live.Sluice.Digest
	}
	r.see(live)
	run.Rollouts = append(run.Rollouts, r)
	p.s.UnderWay++
	return r.Spec
}
