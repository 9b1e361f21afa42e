package reconciler

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// Status is what a reconciler says of itself and of everything that it follows.
type Status struct {
	Version      string             `json:"version"`
	Instance     string             `json:"instance"`
	Holder       *HolderStatus      `json:"holder,omitempty"` // of the lease
	At           time.Time          `json:"at"`
	Repositories []RepositoryStatus `json:"repositories"`
}

// HolderStatus is the process that may write.
type HolderStatus struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Renewed time.Time `json:"renewed"`
	Expires time.Time `json:"expires"` // unless it is renewed
	Mine    bool      `json:"mine"`    // it is the process that answers
}

// RepositoryStatus is one followed repository.
type RepositoryStatus struct {
	Name     string        `json:"name"`
	URL      string        `json:"url"`
	Ref      string        `json:"ref,omitempty"`
	Commit   string        `json:"commit,omitempty"`
	State    string        `json:"state"` // of the ref: found, missing, empty, no match
	Reason   string        `json:"reason,omitempty"`
	Happened string        `json:"happened,omitempty"` // to the ref, newest
	LastPass *time.Time    `json:"lastPass,omitempty"`
	LastGood *time.Time    `json:"lastGoodPass,omitempty"`
	Failures int           `json:"failures,omitempty"` // passes in a row
	Error    string        `json:"error,omitempty"`
	Forge    string        `json:"forgeError,omitempty"`
	Stacks   []StackStatus `json:"stacks"`
}

// StackStatus is one stack.
type StackStatus struct {
	Name      string          `json:"name"`
	Phase     Phase           `json:"phase"`
	Since     time.Time       `json:"since,omitzero"`
	Waits     []Wait          `json:"waits,omitempty"`
	Commit    string          `json:"commit,omitempty"`  // that is planned or in step
	Subject   string          `json:"subject,omitempty"` // its first line
	Settled   string          `json:"settled,omitempty"` // newest commit that is in step
	Newest    string          `json:"newest,omitempty"`  // that the ref was seen at
	Queue     []string        `json:"queue,omitempty"`
	Skipped   []string        `json:"skipped,omitempty"` // commits that this one has overtaken, newest last
	Suspended string          `json:"suspended,omitempty"`
	Error     string          `json:"error,omitempty"`
	Drift     []driftLine     `json:"drift,omitempty"`
	Rollouts  []RolloutStatus `json:"rollouts,omitempty"`
	Plan      string          `json:"plan,omitempty"` // digest
}

// RolloutStatus is a rollout of a run that is not over, or of the newest one.
type RolloutStatus struct {
	Endpoint string    `json:"endpoint"`
	ID       string    `json:"id"`
	Address  string    `json:"address"`
	Commit   string    `json:"commit"`
	State    string    `json:"state"`
	Step     int       `json:"step,omitempty"` // 1-based
	Percent  int       `json:"percent"`
	Phase    string    `json:"phase,omitempty"`
	Category string    `json:"category,omitempty"` // of a park
	Since    time.Time `json:"since,omitzero"`
	Reverse  bool      `json:"reverse,omitempty"`
}

// Status reads where everything is, from the journal: it tells the truth also when
// another process writes.
func (r *Reconciler) Status(ctx context.Context) (Status, error) {
	out := Status{Version: r.version, Instance: r.instance, At: r.now()}
	lease, err := r.ledger.Holder(ctx)
	if err == nil {
		h := lease.Holder
		out.Holder = &HolderStatus{ID: h.ID, Host: h.Host, PID: h.PID, Since: h.Since, Renewed: lease.Renewed, Expires: lease.Expires, Mine: h.ID == r.ledger.who.ID}
	}
	for _, f := range r.followers {
		s, err := f.status(ctx)
		if err != nil {
			return out, err
		}
		out.Repositories = append(out.Repositories, s)
	}
	return out, nil
}

func (f *follower) status(ctx context.Context) (RepositoryStatus, error) {
	out := RepositoryStatus{Name: f.config.Name, URL: redacted(f.config.URL)}
	src, err := read[sourceRecord](ctx, f.ledger, sourceKey(f.config))
	if err != nil {
		return out, err
	}
	out.Ref, out.Commit, out.State, out.Reason, out.Happened = refName(src.Now.Ref), src.Now.Commit, string(src.Now.State), src.Now.Reason, string(src.Happened)
	if out.State == "" {
		out.State = "not seen yet"
	}
	seen := f.health()
	out.LastPass, out.LastGood = instant(seen.Ended), instant(seen.LastGood)
	out.Failures, out.Error, out.Forge = seen.Failures, seen.Error, seen.Forge
	for _, c := range f.config.Stacks {
		s, err := f.stackStatus(ctx, c)
		if err != nil {
			return out, err
		}
		out.Stacks = append(out.Stacks, s)
	}
	return out, nil
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (f *follower) stackStatus(ctx context.Context, c StackConfig) (StackStatus, error) {
	k := f.key(c.Name)
	s, err := read[stackRecord](ctx, f.ledger, stackKey(k))
	if err != nil {
		return StackStatus{}, err
	}
	out := StackStatus{
		Name: c.Name, Phase: s.Phase, Since: s.Since, Waits: s.Waits, Commit: s.Commit.ID, Subject: render.Inert(s.Commit.Subject), Settled: s.Settled,
		Newest: s.Newest.ID, Queue: ids(s.Queue), Error: s.Error, Drift: s.Drift,
	}
	if out.Phase == "" {
		out.Phase = "not seen yet"
	}
	for _, k := range s.Skipped {
		if k.By == s.Commit.ID {
			out.Skipped = append(out.Skipped, k.Commit.ID)
		}
	}
	if s.Suspended != nil {
		out.Suspended = render.Inert(s.Suspended.Who + ": " + s.Suspended.Reason)
	}
	for _, commit := range s.Open {
		if err := f.addRun(ctx, k, commit, &out); err != nil {
			return out, err
		}
	}
	for _, commit := range slices.Backward(s.Recent) { // what was run last is shown until something newer is
		if len(out.Rollouts) > 0 || len(s.Open) == 0 && out.Plan != "" {
			break
		}
		if err := f.addRun(ctx, k, commit, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addRun adds a run's rollouts to the status of its stack, and the digest of its plan when
// there is none yet.
func (f *follower) addRun(ctx context.Context, k StackKey, commit string, out *StackStatus) error {
	run, err := read[runRecord](ctx, f.ledger, runKey(k, commit))
	if err != nil {
		return err
	}
	if out.Plan == "" || run.Ended.IsZero() {
		out.Plan = run.Digest
	}
	for _, r := range run.Rollouts {
		out.Rollouts = append(out.Rollouts, RolloutStatus{
			Endpoint: r.Endpoint, ID: r.ID, Address: r.Address, Commit: commit, State: r.State, Step: r.Step + 1, Percent: r.Percent,
			Phase: r.Phase, Category: r.Category, Since: r.Since, Reverse: r.Reverse,
		})
	}
	return nil
}

// HistoryLine is one line of history for people and machines.
type HistoryLine struct {
	Seq        int64     `json:"seq"`
	At         time.Time `json:"at"`
	Repository string    `json:"repository"`
	Stack      string    `json:"stack,omitempty"`
	Endpoint   string    `json:"endpoint,omitempty"`
	Commit     string    `json:"commit,omitempty"`
	Kind       string    `json:"kind"`
	Text       string    `json:"text"`
}

// History lists what happened, newest first.
func (r *Reconciler) History(ctx context.Context, q journal.Query) ([]HistoryLine, error) {
	out := []HistoryLine{}
	for e, err := range r.ledger.History(ctx, q) {
		if err != nil {
			return nil, err
		}
		out = append(out, HistoryLine{Seq: e.Seq, At: e.At, Repository: e.Repository, Stack: e.Stack, Endpoint: e.Endpoint, Commit: e.Commit, Kind: e.Kind, Text: e.Text})
	}
	return out, nil
}

// ExitPending is the exit code of a single pass that leaves changes waiting or under way.
const ExitPending = 2

// ExitCode is what a single pass tells a pipeline: 0 nothing to do, or done; 2 changes
// are pending or under way; 3 a rollout is parked; 1 a stack that cannot be planned or
// was refused, or a ref that is not there. An error is the caller's 1.
func (s Status) ExitCode() int {
	code := 0
	for _, r := range s.Repositories {
		if r.unfollowed() {
			code = 1
		}
		for _, k := range r.Stacks {
			switch k.Phase {
			case Parked:
				return 3
			case Invalid, Failed:
				code = max(code, 1)
			case InStep, Ahead:
			default:
				if code != 1 {
					code = ExitPending
				}
			}
		}
	}
	return code
}
