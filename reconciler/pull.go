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
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// pullRecord is a pull request that touches a stack, from its first plan until all that
// it brought is over.
type pullRecord struct {
	Number      int
	Title       string
	Author      string
	URL         string
	HeadRef     string
	State       forge.PullRequestState
	Head        string // commit that was planned
	Base        string // commit of the followed ref that it was merged with for the plan
	MergeCommit string
	Merged      time.Time // when it was seen to be
	Into        string    // the branch that it goes into now, where that is not the followed one: then it is closed for us
	Strayed     bool      // its merge commit did not come into the followed history
	UpdatedAt   time.Time // as the forge has it, in whole seconds
	Heard       time.Time // when its comments were read: what was said in the same second is read once more
	Plans       []pullPlan
	Verdict     string // headline of the plan that is shown
	Approved    []approval
	Overrides   []override
	Reviewed    []string   // marks of the reviews that were taken in
	Since       time.Time  // comments that were changed before it were heard
	Obeyed      []obeyed   // comments with commands, changed at or after Since, that were heard
	Listens     time.Time  // older comments are not commands
	Answers     []answered // that are to be sent
	Told        []string   // asks whose answers were taken over
	Attached    []string   // stacks whose run knows that it came from here
	Unseen      bool       // it was merged before it was ever planned
	History     []pushed
	Body        string   // digest of the comment that stands
	Statuses    []posted // newest of each commit and context
	Opened      time.Time
	Over        time.Time // closed, or all that it brought is over
	Again       bool      // plan it anew
	Fork        bool      // the head is in another repository
	Vouched     string    // head of a fork that somebody who may write wants to be planned
	Now         string    // head as the forge has it
	Showings    []showing // what the comment showed, newest last
	Missing     time.Time // since when the forge says that it is not there; zero while it is
}

// pullPlan is what a pull request would do to one stack.
type pullPlan struct {
	Stack  string
	Digest string // empty when it cannot be planned
}

type pushed struct {
	Commit  string
	Digest  string
	At      time.Time
	Verdict string
}

type posted struct{ Commit, Context, Key string }

// pullMemory is what a follower keeps of its forge between passes.
type pullMemory struct {
	next    time.Time // when to look again
	looked  time.Time
	open    []forge.PullRequest
	known   map[int]*pullRecord
	plans   map[int]*pullPlanned
	failed  map[int]failedMerge
	checked map[int]time.Time       // when it was looked whether our comment still says what we wrote
	refused map[string]refusedWrite // by what was written
	base    string                  // default branch of the forge
	into    string                  // branch that pull requests go into
	looks   int
	at      string // commit of the followed ref at the last look
}

// failedMerge is a merge that could not be made.
type failedMerge struct {
	head, base string
	err        error
	times      int
	again      time.Time // when it is tried again
}

// pullPlanned is the newest plan of an open pull request.
type pullPlanned struct {
	head, base string
	conflict   *gitsource.Conflict
	refused    []gitsource.Refusal
	stacks     []stackPlanned
}

type stackPlanned struct {
	c     StackConfig
	plan  *planned
	looks string // what everything looked like when it was made, see looksTo
	diff  string
}

// lookAtPulls asks the forge what is new: pull requests that opened, moved or ended, and
// what people say on them. Webhooks only make it come sooner, and so does a commit on the
// followed ref, which may be a merge: the run that it begins is to know its pull request.
func (f *follower) lookAtPulls(ctx context.Context) error {
	hinted := f.wasHinted()
	if !hinted && f.now().Before(f.pulls.next) && f.pulls.at == f.source.Now.Commit {
		return nil
	}
	if err := f.loadPulls(ctx); err != nil {
		return err
	}
	base, err := f.baseBranch(ctx)
	if err != nil {
		return f.noteForge(err)
	}
	began := f.now()
	f.pulls.into = base
	f.pulls.next = began.Add(f.config.Forge.Interval) // also when the forge fails: it is not asked more often for that
	open, err := f.forge.Open(ctx, base)
	if err != nil {
		return f.noteForge(fmt.Errorf("list the open pull requests into %s: %w", base, err))
	}
	since := f.pulls.looked
	if since.IsZero() {
		since = began.Add(-24 * time.Hour)
	}
	closed, err := f.forge.Closed(ctx, base, since.Add(-time.Minute))
	if err != nil {
		return f.noteForge(fmt.Errorf("list the closed pull requests into %s: %w", base, err))
	}
	f.pulls.open = open
	var errs []error
	for _, pr := range slices.Concat(open, closed) {
		errs = append(errs, f.ofPull(ctx, pr.Number, f.lookAt(ctx, pr)))
	}
	errs = append(errs, f.askAfterMissing(ctx, open, closed), f.listenToMerged(ctx, hinted))
	if err := errors.Join(errs...); err != nil {
		return f.noteForge(err) // the instants stay, so that what was missed is asked for again
	}
	f.pulls.looked, f.pulls.at = began, f.source.Now.Commit
	return f.noteForge(nil)
}

// askAfterMissing asks after the pull requests that were open and are in neither list now:
// lists shift while they are read, and one may have ended while nobody looked. Nothing is
// cleaned up on a guess.
func (f *follower) askAfterMissing(ctx context.Context, lists ...[]forge.PullRequest) error {
	var errs []error
	for _, number := range sortedNumbers(f.pulls.known) {
		r := f.pulls.known[number]
		if r.State != forge.IsOpen || slices.ContainsFunc(slices.Concat(lists...), func(pr forge.PullRequest) bool { return pr.Number == number }) {
			continue
		}
		pr, err := f.forge.PullRequest(ctx, number)
		if err == nil && pr.State == forge.IsOpen && !f.goesElsewhere(pr) {
			f.pulls.open = append(f.pulls.open, pr)
		}
		if err == nil {
			err = f.lookAt(ctx, pr)
		}
		errs = append(errs, f.ofPull(ctx, number, err))
	}
	return errors.Join(errs...)
}

// seldom is how often those are listened to that are over: in every so manieth look.
const seldom = 5

// listenToMerged hears what people say on what was merged: each time while it is under
// way and for an hour, and more seldom afterwards, unless a webhook came.
func (f *follower) listenToMerged(ctx context.Context, hinted bool) error {
	f.pulls.looks++
	var errs []error
	for _, number := range sortedNumbers(f.pulls.known) {
		r := f.pulls.known[number]
		if r.State != forge.IsMerged || !hinted && f.pulls.looks%seldom != 0 && !r.Over.IsZero() && f.now().Sub(r.Over) > time.Hour {
			continue
		}
		errs = append(errs, f.ofPull(ctx, number, f.listen(ctx, r)))
	}
	return errors.Join(errs...)
}

// loadPulls reads the pull requests that are not over, once in a process.
func (f *follower) loadPulls(ctx context.Context) error {
	if f.pulls.known != nil {
		return nil
	}
	all, err := readAll[pullRecord](ctx, f.ledger, journal.Key{Kind: kindPull, Repository: f.config.Name})
	if err != nil {
		return err
	}
	f.pulls.known, f.pulls.plans, f.pulls.failed = map[int]*pullRecord{}, map[int]*pullPlanned{}, map[int]failedMerge{}
	f.pulls.checked, f.pulls.refused = map[int]time.Time{}, map[string]refusedWrite{}
	for _, r := range all {
		if r.UpdatedAt.After(f.pulls.looked) {
			f.pulls.looked = r.UpdatedAt
		}
		f.pulls.known[r.Number] = &r
	}
	return nil
}

// baseBranch is the branch that pull requests go into: the followed one, or, when a tag
// or a commit is followed, the forge's default.
func (f *follower) baseBranch(ctx context.Context) (string, error) {
	if b, ok := strings.CutPrefix(f.source.Now.Ref, "refs/heads/"); ok {
		return b, nil
	}
	if f.config.Wanted.Branch != "" {
		return f.config.Wanted.Branch, nil
	}
	if f.pulls.base == "" {
		repo, err := f.forge.Repository(ctx)
		if err != nil {
			return "", err
		}
		f.pulls.base = repo.DefaultBranch
	}
	return f.pulls.base, nil
}

// goesElsewhere reports whether a pull request goes into another branch than the followed
// one: somebody has retargeted it.
func (f *follower) goesElsewhere(pr forge.PullRequest) bool {
	return pr.BaseRef != "" && f.pulls.into != "" && pr.BaseRef != f.pulls.into
}

// lookAt takes in one pull request as the forge has it now.
func (f *follower) lookAt(ctx context.Context, pr forge.PullRequest) error {
	r, into := f.pulls.known[pr.Number], ""
	if f.goesElsewhere(pr) {
		pr.State, into = forge.IsClosed, pr.BaseRef
	}
	if r == nil {
		if pr.State == forge.IsClosed {
			return nil // it was never planned, so there is nothing to end
		}
		r = &pullRecord{Number: pr.Number, Opened: f.now(), Listens: f.now().Add(-time.Hour)}
		f.pulls.known[pr.Number] = r
	}
	if r.State == "" && pr.State == forge.IsMerged {
		r.Unseen = true
	}
	if !r.Over.IsZero() && pr.State == forge.IsOpen { // reopened
		r.Over, r.Again, r.Body = time.Time{}, true, ""
		r.Approved, r.Overrides, r.Reviewed = nil, nil, nil // its end made them void
	}
	news := !r.UpdatedAt.Equal(pr.UpdatedAt) || r.State != pr.State || !r.Heard.After(pr.UpdatedAt.Add(lateListing))
	r.Title, r.Author, r.URL, r.HeadRef, r.State = pr.Title, pr.Author, pr.URL, pr.HeadRef, pr.State
	r.Fork, r.Now, r.Into = pr.Fork, pr.Head, into
	if pr.State == forge.IsMerged {
		if r.MergeCommit = pr.MergeCommit; r.Merged.IsZero() {
			r.Merged = f.now()
		}
	}
	if !news && r.Over.IsZero() && pr.State != forge.IsOpen {
		news = f.now().Sub(r.UpdatedAt) < time.Hour // a forge's clock of a comment may lag
	}
	if !news {
		return nil
	}
	if err := f.listen(ctx, r); err != nil {
		return err
	}
	if pr.State != forge.IsClosed && len(r.Plans) > 0 && len(r.Attached) == 0 { // also once more at the merge
		if err := f.review(ctx, r); err != nil {
			return err
		}
	}
	r.UpdatedAt, r.Heard = pr.UpdatedAt, f.now()
	if r.Unseen && len(r.Attached) == 0 {
		return nil // it may have nothing to do with any stack
	}
	return f.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(pullKey(f.config.Name, r.Number), *r)}})
}

// mayTouch reports whether a pull request can have brought something to a stack.
func (r *pullRecord) mayTouch(stack string) bool {
	return r.Unseen || slices.ContainsFunc(r.Plans, func(x pullPlan) bool { return x.Stack == stack })
}

// awaits reports whether a stack's run is still to be told that it came from here.
func (r *pullRecord) awaits(stack string) bool {
	return r.MergeCommit != "" && r.Over.IsZero() && !slices.Contains(r.Attached, stack) && r.mayTouch(stack)
}

// attached notes that a stack's run knows that it came from here.
func (r *pullRecord) attached(stack string) {
	r.Attached = append(r.Attached, stack)
	if !slices.ContainsFunc(r.Plans, func(x pullPlan) bool { return x.Stack == stack }) {
		r.Plans = append(r.Plans, pullPlan{Stack: stack})
	}
}
