package reconciler

import (
	"context"
	"slices"
	"time"
)

// reopen makes a run that is over an open one again: somebody takes back what it brought,
// or what it made stands otherwise now. It comes before the open ones.
func (p *stackPass) reopen(ctx context.Context, commit string) (*runRecord, error) {
	for _, run := range p.runs {
		if run.Commit.ID == commit {
			return run, nil
		}
	}
	run, err := remember[runRecord](ctx, p, runKey(p.k, commit))
	if err != nil || run.Commit.ID == "" {
		return nil, err
	}
	run.Ended = time.Time{}
	p.s.Recent = slices.DeleteFunc(p.s.Recent, func(c string) bool { return c == commit })
	p.runs = slices.Insert(p.runs, 0, &run)
	return &run, nil
}

// attach tells the runs which merged pull requests they came from, with what was approved
// and lifted there. A run may be over before its pull request is seen to be merged.
func (p *stackPass) attach(ctx context.Context) error {
	for _, number := range sortedNumbers(p.pulls.known) {
		r := p.pulls.known[number]
		if !r.awaits(p.k.Stack) {
			continue
		}
		run, err := p.runBroughtBy(ctx, r.MergeCommit)
		if err != nil {
			return err
		}
		if run == nil {
			continue
		}
		if !slices.Contains(run.Pulls, number) {
			run.Pulls = append(run.Pulls, number)
			slices.Sort(run.Pulls)
			run.Approved = append(run.Approved, r.Approved...)
			run.Overrides = append(run.Overrides, r.Overrides...)
		}
		run.by(r.Author)
		if now := p.current(); now != nil && run.By != "" {
			now.by(r.Author) // what was superseded is in the plan that took its place
		}
		p.put(runKey(p.k, run.Commit.ID), record(runKey(p.k, run.Commit.ID), *run))
		r.attached(p.k.Stack)
	}
	return nil
}

// by adds authors of what a run's plan has.
func (run *runRecord) by(authors ...string) {
	for _, a := range authors {
		if a != "" && !slices.Contains(run.Authors, a) {
			run.Authors = append(run.Authors, a)
		}
	}
}

// runBroughtBy finds the run that a commit has begun, among the open ones and those that
// are just over.
func (p *stackPass) runBroughtBy(ctx context.Context, commit string) (*runRecord, error) {
	brought := func(run *runRecord) bool { return run.Commit.ID == commit || slices.Contains(run.Arrived, commit) }
	for _, run := range p.runs {
		if brought(run) {
			return run, nil
		}
	}
	for _, recent := range slices.Backward(p.s.Recent) {
		run, err := remember[runRecord](ctx, p, runKey(p.k, recent))
		if err != nil || brought(&run) {
			return &run, err
		}
	}
	return nil, nil //nolint:nilnil // there is none yet
}
