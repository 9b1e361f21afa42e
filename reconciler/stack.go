package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// stackPass is one look at one stack: what stands in the journal, what was read, and
// what is to be recorded at its end.
type stackPass struct {
	*follower
	c StackConfig
	k StackKey

	s         stackRecord
	runs      []*runRecord // open ones, oldest first; the last may be the one that is applied
	decisions map[decided]decisionRecord
	rollouts  map[string]api.Rollout // that this pass has read
	folder    *folder                // that is planned; nil when no commit can be read
	plan      *planned               // nil when nothing was planned in this pass
	asks      []askRecord            // of this stack
	resting   bool                   // nothing can have changed
	owned     []string               // endpoints that are known to be this stack's own

	batch journal.Batch
	was   map[journal.Key][]byte // records as they were read
}

// stack does one pass over a stack.
func (f *follower) stack(ctx context.Context, c StackConfig) error {
	p, err := f.openStack(ctx, c)
	if err != nil {
		return err
	}
	err = p.run(ctx)
	if errors.Is(err, errUnrecorded) {
		p.forget()
		return err
	}
	p.phase(err)
	if settled(err) { // the stack's own affair: it is told, and the other stacks go on
		f.log.Warn("the engine refused a change", "stack", p.k.Stack, "error", err)
		err = nil
	}
	err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
	if err == nil {
		p.settle(ctx)
	}
	f.noteStack(p)
	return err
}

// hearFirst does what people have asked for before Git and the forge are asked anything:
// a cancel waits for no host that hangs. All else of the stacks comes in its turn.
func (f *follower) hearFirst(ctx context.Context) error {
	asks, err := readAll[askRecord](ctx, f.ledger, journal.Key{Kind: kindAsk, Repository: f.config.Name})
	errs := []error{err}
	f.words = false
	for _, c := range f.config.Stacks {
		if !slices.ContainsFunc(asks, func(a askRecord) bool { return a.Stack == c.Name && a.Ended.IsZero() }) {
			continue
		}
		if err := f.hearStack(ctx, c); err != nil {
			f.words = true
			errs = append(errs, fmt.Errorf("stack %s: %w", f.key(c.Name), err))
		}
	}
	return errors.Join(errs...)
}

func (f *follower) hearStack(ctx context.Context, c StackConfig) error {
	p, err := f.openStack(ctx, c)
	if err != nil {
		return err
	}
	if err := p.sameProject(ctx); err != nil {
		return err
	}
	err = errors.Join(p.watch(ctx), p.doAsks(ctx))
	if errors.Is(err, errUnrecorded) {
		p.forget()
		return err
	}
	return errors.Join(err, p.close(context.WithoutCancel(ctx)))
}

// at is a commit of the followed ref.
func (f *follower) at(commit string) gitsource.Resolved {
	return gitsource.Resolved{Ref: f.source.Now.Ref, Commit: commit, Tag: f.source.Now.Tag, State: gitsource.Found}
}

// openStack reads what the journal has of a stack.
func (f *follower) openStack(ctx context.Context, c StackConfig) (*stackPass, error) {
	p := &stackPass{follower: f, c: c, k: f.key(c.Name), rollouts: map[string]api.Rollout{}, decisions: map[decided]decisionRecord{}, was: map[journal.Key][]byte{}}
	var err error
	if p.s, err = remember[stackRecord](ctx, p, stackKey(p.k)); err != nil {
		return nil, err
	}
	for _, commit := range p.s.Open {
		run, err := remember[runRecord](ctx, p, runKey(p.k, commit))
		if err != nil {
			return nil, err
		}
		if run.Commit.ID != "" {
			p.runs = append(p.runs, &run)
		}
	}
	decisions, err := readAll[decisionRecord](ctx, f.ledger, journal.Key{Kind: kindDecision, Repository: p.k.Repository, Stack: p.k.Stack})
	if err != nil {
		return nil, err
	}
	for _, d := range decisions {
		p.decisions[d.about()] = d
	}
	p.asks, err = readAll[askRecord](ctx, f.ledger, journal.Key{Kind: kindAsk, Repository: p.k.Repository, Stack: p.k.Stack})
	return p, err
}

// remember reads a record and keeps how it was, so that only what has changed is written.
func remember[T any](ctx context.Context, p *stackPass, k journal.Key) (T, error) {
	v, err := read[T](ctx, p.ledger, k)
	if err == nil {
		p.was[k] = record(k, v).Value
	}
	return v, err
}

// run is the order of a pass: what runs is looked at first, since it may have freed what
// the rest waits for; people come before Git; then what Git wants.
func (p *stackPass) run(ctx context.Context) error {
	if err := p.sameProject(ctx); err != nil {
		return err
	}
	rest, err := p.atRest(ctx)
	if err != nil {
		return err
	}
	if p.resting = rest; rest {
		return nil
	}
	if err := errors.Join(p.watch(ctx), p.remind(ctx), p.doAsks(ctx)); err != nil {
		return err
	}
	if err := p.arrive(ctx); err != nil {
		return err
	}
	if err := p.attach(ctx); err != nil {
		return err
	}
	if p.folder == nil {
		return nil
	}
	if err := p.makePlan(ctx); err != nil {
		return err
	}
	return p.apply(ctx)
}

// current is the run that is applied, nil for none.
func (p *stackPass) current() *runRecord {
	if n := len(p.runs); n > 0 && p.runs[n-1].By == "" && !p.runs[n-1].TakenBack {
		return p.runs[n-1]
	}
	return nil
}

// close records what the pass has changed, in one batch.
func (p *stackPass) close(ctx context.Context) error { return p.ledger.write(ctx, p.save()) }

// put adds a record to the batch when it is not what was read.
func (p *stackPass) put(k journal.Key, r journal.Record) {
	if bytes.Equal(p.was[k], r.Value) {
		return
	}
	p.was[k] = r.Value
	p.batch.Put = append(p.batch.Put, r)
}

// save is what an effect's outcome is recorded with: all that this pass has changed so
// far.
func (p *stackPass) save() journal.Batch {
	p.s.Open = nil
	for _, run := range p.runs {
		p.put(runKey(p.k, run.Commit.ID), record(runKey(p.k, run.Commit.ID), *run))
		if run.Ended.IsZero() {
			p.s.Open = append(p.s.Open, run.Commit.ID)
		}
	}
	p.put(stackKey(p.k), record(stackKey(p.k), p.s))
	b := p.batch
	p.batch = journal.Batch{}
	return b
}

// decide records a person's word about a spec.
func (p *stackPass) decide(d decisionRecord) {
	p.decisions[d.about()] = d
	p.batch.Put = append(p.batch.Put, record(decisionKey(p.k, d.about()), d))
}
