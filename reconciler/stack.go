package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
		p.put(runKey(p.k, run.Commit.ID), record(runKey(p.k, run.Commit.ID), *run))
		r.attached(p.k.Stack)
	}
	return nil
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
	if err := p.watch(ctx); err != nil {
		return err
	}
	if err := p.remind(ctx); err != nil {
		return err
	}
	if err := p.doAsks(ctx); err != nil {
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
	if n := len(p.runs); n > 0 && p.runs[n-1].By == "" {
		return p.runs[n-1]
	}
	return nil
}

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
		return p.use(now)
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
	return p.use(folderOf(tree, p.c))
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
	return p.use(o)
}

func (p *stackPass) use(o folder) error {
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
	p.runs = append(p.runs, run)
	p.tell(&p.batch, happening{
		Key: []string{tree.Commit.ID, p.k.Stack}, Kind: "run.began", Stack: p.k.Stack, Commit: tree.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: commit %s is planned: %s", p.k, short(tree.Commit.ID), inert(tree.Commit.Subject)),
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
	run.By, run.Phase, run.Acted = "", Waiting, time.Time{}
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
