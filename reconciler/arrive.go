package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// arrive takes in what Git has brought: at most one new run begins in a pass.
func (p *stackPass) arrive(ctx context.Context) error {
	if p.tree == nil {
		return p.linger(ctx)
	}
	if p.s.Newest.ID != p.tree.Commit.ID {
		if err := p.advance(ctx); err != nil {
			return err
		}
	}
	for p.next() {
		done, err := p.begin(ctx)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if p.folder != nil {
		return nil
	}
	return p.linger(ctx)
}

// linger reads the folder that is being applied again, after a restart or while the ref
// is not there; without a readable commit nothing is planned.
func (p *stackPass) linger(ctx context.Context) error {
	if p.tree != nil && p.s.Commit.ID == p.tree.Commit.ID {
		return p.reconfigured(ctx, folderOf(*p.tree, p.c))
	}
	if p.tree == nil || p.s.Commit.ID == "" {
		return nil // the ref is not there; what runs was watched
	}
	now := folderOf(*p.tree, p.c)
	if now.Digest == p.s.Files {
		p.folder = &now
		return nil
	}
	tree, err := p.remote.Read(ctx, p.at(p.s.Commit.ID))
	var gone *gitsource.Gone
	if errors.As(err, &gone) { // history was rewritten under it: it cannot be gone on with
		tip := p.tree.Commit
		p.overtake(slices.DeleteFunc(slices.Clone(p.s.Queue), func(c gitsource.Commit) bool { return c.ID == tip.ID }), tip)
		p.s.Queue = []gitsource.Commit{tip}
		_, err := p.begin(ctx)
		return err
	}
	if err != nil {
		return fmt.Errorf("read %s again: %w", short(p.s.Commit.ID), err)
	}
	then := folderOf(tree, p.c)
	p.folder = &then
	return nil
}

// reconfigured takes up the folder of the commit that is known. When it is not what it was
// (the configuration names another folder, or other variables) what was approved is void:
// it is applied as a new commit is.
func (p *stackPass) reconfigured(ctx context.Context, o folder) error {
	if o.Digest != p.s.Files {
		run := p.current()
		if run == nil {
			var err error
			if run, err = p.reopen(ctx, p.s.Commit.ID); err != nil {
				return err
			}
		}
		if run != nil {
			run.Acted, run.Files = time.Time{}, o.Digest
		}
		if p.s.Files = o.Digest; p.s.Settled == p.s.Commit.ID {
			p.s.Settled = ""
		}
	}
	p.folder = &o
	return nil
}

// advance queues the commits between the newest that was known and the one that the ref
// points at now.
func (p *stackPass) advance(ctx context.Context) error {
	to := p.tree.Commit
	commits := []gitsource.Commit{to}
	if from := p.s.Newest.ID; from != "" && p.followsBranch() {
		log, err := p.remote.Log(ctx, from, to.ID, mostCommits)
		var gone *gitsource.Gone
		if err != nil && !errors.As(err, &gone) {
			return fmt.Errorf("read the history from %s to %s: %w", short(from), short(to.ID), err)
		}
		if err == nil && !log.Rewritten && len(log.Commits) > 0 {
			commits = log.Commits
		}
	}
	p.s.Arrived = ids(commits)
	if p.config.Supersede == Every {
		p.s.Queue = append(p.s.Queue, commits...)
	} else {
		p.overtake(append(p.s.Queue, commits[:len(commits)-1]...), to)
		p.s.Queue = []gitsource.Commit{to}
	}
	p.s.Newest = to
	return nil
}

// followsBranch reports whether the followed ref has a history that goes forward.
func (f *follower) followsBranch() bool {
	w := f.config.Wanted
	return w.Tag == "" && w.Semver == "" && w.Commit == ""
}

func ids(commits []gitsource.Commit) []string {
	out := make([]string, 0, len(commits))
	for _, c := range commits {
		out = append(out, c.ID)
	}
	return out
}

// overtake notes commits that are not run for themselves. They are told in the report:
// an intermediate version is never skipped in silence.
func (p *stackPass) overtake(commits []gitsource.Commit, by gitsource.Commit) {
	for _, c := range commits {
		if c.ID == p.s.Commit.ID {
			continue
		}
		p.s.Skipped = append(p.s.Skipped, skipped{Commit: c, By: by.ID, At: p.now()})
	}
	if n := len(p.s.Skipped); n > 50 {
		p.s.Skipped = slices.Delete(p.s.Skipped, 0, n-50)
	}
}

// next reports whether the head of the queue may become the current run.
func (p *stackPass) next() bool {
	if len(p.s.Queue) == 0 {
		return false
	}
	run := p.current()
	return p.config.Supersede != Every || run == nil || p.stranded(run)
}

// stranded reports whether nothing but another commit helps a run: behind one that is not
// valid, that the engine refuses or that a person has to change, a queue would never move.
func (p *stackPass) stranded(run *runRecord) bool {
	switch run.Phase {
	case Invalid, Failed:
		return true
	case Waiting:
		return p.s.Suspended == nil && len(run.Waits) > 0 && !slices.ContainsFunc(run.Waits, func(w Wait) bool { return w.For != ForPerson })
	case InStep, Applying, RollingOut, Parked, Ahead, Superseded, Finished:
	}
	return false
}

// begin makes a run of the queue's head, when it asks for anything new. It reports
// whether there is now a folder to plan.
func (p *stackPass) begin(ctx context.Context) (bool, error) {
	head := p.s.Queue[0]
	tree := *p.tree
	if head.ID != tree.Commit.ID {
		var err error
		tree, err = p.remote.Read(ctx, p.at(head.ID))
		var gone *gitsource.Gone
		if errors.As(err, &gone) {
			p.overtake([]gitsource.Commit{head}, p.tree.Commit)
			p.s.Queue = p.s.Queue[1:]
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %s: %w", short(head.ID), err)
		}
	}
	p.s.Queue = p.s.Queue[1:]
	o := folderOf(tree, p.c)
	same := o.Digest == p.s.Files
	moved := same && p.s.Commit.ID != ""
	first, before := p.s.Commit.ID == "", p.s.Commit.ID
	p.s.Commit, p.s.Files = tree.Commit, o.Digest
	p.folder = &o
	if moved { // another commit with the same files asks for nothing
		if p.s.Settled == before {
			p.s.Settled = tree.Commit.ID
		}
		return true, p.standsFor(ctx, tree.Commit.ID)
	}
	left := p.current()
	p.supersede(tree.Commit)
	run := p.anew(tree.Commit.ID)
	if run == nil {
		run = &runRecord{Commit: tree.Commit, Files: o.Digest, Phase: Waiting, Began: p.now(), Arrived: p.s.Arrived}
		if p.config.Supersede == Every { // each merge has its own run
			run.Arrived = []string{tree.Commit.ID}
		}
	}
	if !first && (p.config.Wanted.Tag != "" || p.source.Happened == gitsource.TagMoved && p.source.Now.Commit == tree.Commit.ID) {
		run.NeedsWord = "the tag " + refName(p.source.Now.Ref) + " was moved"
	}
	if left != nil { // what it has not made is in this plan
		run.by(left.Authors...)
	}
	p.runs = append(p.runs, run)
	p.tell(&p.batch, happening{
		Key: []string{tree.Commit.ID, p.k.Stack}, Kind: "run.began", Stack: p.k.Stack, Commit: tree.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: commit %s is taken up: %s", p.k, short(tree.Commit.ID), inert(tree.Commit.Subject)),
	})
	return true, nil
}

// anew takes an open run of a commit that the ref has come back to out of the others: what
// it has submitted is watched on by it. Nil when there is none.
func (p *stackPass) anew(commit string) *runRecord {
	p.s.Recent = slices.DeleteFunc(p.s.Recent, func(c string) bool { return c == commit })
	i := slices.IndexFunc(p.runs, func(r *runRecord) bool { return r.Commit.ID == commit && r.Ended.IsZero() })
	if i < 0 {
		p.runs = slices.DeleteFunc(p.runs, func(r *runRecord) bool { return r.Commit.ID == commit })
		return nil
	}
	run := p.runs[i]
	p.runs = slices.Delete(p.runs, i, i+1)
	run.By, run.Phase, run.Acted, run.TakenBack = "", Waiting, time.Time{}, false
	return run
}

// standsFor adds a commit with the same files to those that the newest run stands for, such
// as the merge commit of a branch whose last commit was run.
func (p *stackPass) standsFor(ctx context.Context, commit string) error {
	run := p.current()
	if n := len(p.s.Recent); run == nil && n > 0 {
		recent, err := remember[runRecord](ctx, p, runKey(p.k, p.s.Recent[n-1]))
		if err != nil {
			return err
		}
		run = &recent
	}
	if run == nil || run.Files != p.s.Files || slices.Contains(run.Arrived, commit) || len(run.Arrived) >= mostCommits {
		return nil
	}
	run.Arrived = append(run.Arrived, commit)
	p.put(runKey(p.k, run.Commit.ID), record(runKey(p.k, run.Commit.ID), *run))
	return nil
}

// supersede ends the part of the current run that was not made yet. What it has
// submitted is watched on, and told under its own commit.
func (p *stackPass) supersede(by gitsource.Commit) {
	run := p.current()
	if run == nil {
		return
	}
	run.By = by.ID
	if run.Acted.IsZero() {
		run.Phase, run.Ended = Superseded, p.now()
		p.keep(run)
		p.overtake([]gitsource.Commit{run.Commit}, by)
	}
	p.tell(&p.batch, happening{
		Key: []string{run.Commit.ID, by.ID, p.k.Stack}, Kind: "run.superseded", Stack: p.k.Stack, Commit: run.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: commit %s is superseded by %s%s", p.k, short(run.Commit.ID), short(by.ID), submittedText(run)),
	})
}

func submittedText(run *runRecord) string {
	var still []string
	for _, r := range run.Rollouts {
		if r.Ended.IsZero() {
			still = append(still, r.ID)
		}
	}
	if len(still) == 0 {
		return ""
	}
	return "; " + joined(still) + " goes on as it is"
}
