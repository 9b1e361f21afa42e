package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// The kinds of records in the journal.
const (
	kindInstance = "instance" // this reconciler's own name
	kindProject  = "project"  // the engine's project that all of it is about
	kindSource   = "source"   // a followed ref
	kindStack    = "stack"
	kindRun      = "run"      // one commit of one stack, from its plan to its receipt
	kindPull     = "pull"     // an open pull request, or one whose change is under way
	kindAsk      = "ask"      // what a person has asked for and was not done yet
	kindDecision = "decision" // what a person has decided and still stands
	kindPosted   = "posted"   // the statuses of a run's commit
)

// sourceRecord is what was observed of a followed ref. Its key has the address and the
// wish, so that another address never inherits an old commit.
type sourceRecord struct {
	gitsource.Seen
	Redirect string // where the remote redirects to; empty for nowhere
	Happened gitsource.Happening
	From     string // commit before
	At       time.Time
}

// stackRecord is what stands of one stack.
type stackRecord struct {
	Commit    gitsource.Commit // that is planned
	Files     string           // digest of the stack's files there
	Newest    gitsource.Commit // that the ref was seen at
	Arrived   []string         // commits that came with Newest, at most 200
	Open      []string         // commits of the runs that are not over, oldest first
	Settled   string           // commit of the newest run that is over and in step
	Done      []string         // addresses that were changed since then
	Recent    []string         // commits of the runs that are over, newest last
	Bound     []boundThing
	Submitted map[string]string // spec digest that was submitted last, by rollout address
	Again     []allowedAgain
	UnderWay  int // rollouts that are not over
	Suspended *suspension
	Skipped   []skipped // newest last, at most 50
	Drift     []driftLine
	DriftKey  string
	Phase     Phase
	Waits     []Wait
	Error     string
	Since     time.Time          // of Phase
	Queue     []gitsource.Commit // of supersede = "every": commits that wait for their turn
}

// allowedAgain is a spec that a person has allowed to start once more: what was made of it
// before is history.
type allowedAgain struct {
	Spec    string
	Rollout string // that was decided about: an engine may tell no digest
	At      time.Time
}

type suspension struct {
	Who    string
	Reason string
	At     time.Time
}

type skipped struct {
	Commit gitsource.Commit
	By     string // the commit that overtook it
	At     time.Time
}

// driftLine is one difference that Git has not made.
type driftLine struct {
	Address string `json:"address"`
	Field   string `json:"field"`
	Git     string `json:"git"`
	Live    string `json:"live"`
	Actor   string `json:"actor,omitempty"`
	At      string `json:"at,omitempty"`
}

// Phase is where a stack or a run is. It is written in one place (recordPhase).
type Phase string

// The phases. A stack that waits always says for what (Wait).
const (
	InStep     Phase = "in step"      // live is what Git says
	Waiting    Phase = "waiting"      // for something that Wait names
	Applying   Phase = "applying"     // changes are being made
	RollingOut Phase = "rolling out"  // all is submitted, a rollout is under way
	Parked     Phase = "parked"       // a rollout waits for a person
	Ahead      Phase = "ahead of Git" // a person has gone back, or canceled: live is not what Git says, and stays so
	Invalid    Phase = "invalid"      // the files cannot be planned
	Failed     Phase = "failed"       // the engine refused something
	Superseded Phase = "superseded"   // of a run: a newer commit has taken its place
	Finished   Phase = "finished"     // of a run
)

// Wait is one thing that a stack waits for.
type Wait struct {
	For  WaitKind  `json:"for"`
	What string    `json:"what"` // for people; names who or what, and how to go on
	Till time.Time `json:"till,omitzero"`
}

// WaitKind is the kind of a Wait.
type WaitKind string

// The kinds of waits.
const (
	ForApproval   WaitKind = "approval"
	ForPolicy     WaitKind = "policy"
	ForRollout    WaitKind = "rollout"    // another one holds the endpoint
	ForReady      WaitKind = "ready"      // a deployment's replicas
	ForDependency WaitKind = "dependency" // another stack
	ForFreeze     WaitKind = "freeze"
	ForSlot       WaitKind = "slot"   // of the limit on concurrent rollouts
	ForPerson     WaitKind = "person" // suspended, or a decision stands
	ForOwner      WaitKind = "owner"
	ForPrune      WaitKind = "prune"
	ForSource     WaitKind = "source"
	ForEngine     WaitKind = "engine"
)

// runRecord is one commit of one stack on its way. Reports about its rollouts go to its
// commit and its pull request, whatever came later.
type runRecord struct {
	Commit    gitsource.Commit
	Files     string
	Arrived   []string // commits that it stands for, itself last
	Pulls     []int    // merged pull requests that brought it
	Authors   []string // of those, and of what its plan still has of a run before it
	NeedsWord string   // why it needs an approval whatever the mode is; empty for none
	Phase     Phase
	Waits     []Wait
	Digest    string            // of the plan that is being applied
	Allowed   []string          // addresses that its approved plan changes
	Splits    map[string]string // of endpoints, by their ids, as this run saw or left them
	Approved  []approval
	Overrides []override
	Rollouts  []runRollout
	Done      []doneChange
	Began     time.Time
	Acted     time.Time // first write at the engine; zero before
	Ended     time.Time
	By        string // the commit that superseded it
	Error     string
	Mends     int  // drifts that it has put right
	TakenBack bool // it was over, and is open for a way back alone: nothing of it is applied again
}

// doneChange is a change that a run has made.
type doneChange struct {
	Action  planning.Action
	Address string
	ID      string
}

// runRollout is a rollout that a run has submitted, as last seen.
type runRollout struct {
	Address    string
	Endpoint   string // name
	EndpointID string
	ID         string
	Spec       string // digest
	State      string // short
	Step       int
	Percent    int
	Phase      string
	Category   string
	Why        string    // it is parked, and what the engine does about it
	Since      time.Time // of the state
	Steered    []steered
	Ended      time.Time
	Replaced   bool   // Git has canceled it for another spec: nobody's decision
	Requests   *int64 // over its life, where the engine tells
	Failed     *int64
	Reverse    bool
}

// steered is what a person did to a rollout.
type steered struct {
	Verb   Verb
	Who    string
	Reason string
	At     time.Time
}

// approval lets one plan digest be applied.
type approval struct {
	Digest string
	Who    string
	Via    string // comment, review, http, file
	At     time.Time
	Commit string // that was reviewed
}

// override lifts one denial for one plan.
type override struct {
	Rule   string
	Who    string
	Reason string
	Digest string
	At     time.Time
}

// decided is what a decision is about: one spec at one address.
type decided struct{ Address, Spec string }

// about is what a decision is about.
func (d decisionRecord) about() decided { return decided{d.Address, d.Spec} }

// decisionRecord is a person's word about one spec digest of one rollout address: it is
// not submitted again, until somebody allows it (retry) or Git asks for another spec.
type decisionRecord struct {
	Address string
	Spec    string
	Verb    Verb // cancel or reverse
	Rollout string
	Who     string
	Reason  string
	At      time.Time
}

// runOf, stackOf … are the keys.
func sourceKey(c RepositoryConfig) journal.Key {
	return journal.Key{Kind: kindSource, Repository: c.Name, Stack: redacted(c.URL), Name: string(record(journal.Key{}, c.Wanted).Value)}
}

func stackKey(k StackKey) journal.Key {
	return journal.Key{Kind: kindStack, Repository: k.Repository, Stack: k.Stack}
}

func runKey(k StackKey, commit string) journal.Key {
	return journal.Key{Kind: kindRun, Repository: k.Repository, Stack: k.Stack, Name: commit}
}

func pullKey(repository string, number int) journal.Key {
	return journal.Key{Kind: kindPull, Repository: repository, Name: fmt.Sprintf("%010d", number)}
}

func decisionKey(k StackKey, d decided) journal.Key {
	return journal.Key{Kind: kindDecision, Repository: k.Repository, Stack: k.Stack, Name: string(record(journal.Key{}, d).Value)}
}

// read gets a record; the zero value when there is none.
func read[T any](ctx context.Context, j journal.Journal, k journal.Key) (T, error) {
	var v T
	b, err := j.Get(ctx, k)
	if errors.Is(err, journal.ErrNone) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	return decode[T](k, b)
}

// readAll lists the records of a pattern.
func readAll[T any](ctx context.Context, j journal.Journal, pattern journal.Key) ([]T, error) {
	var out []T
	for r, err := range j.List(ctx, pattern) {
		if err != nil {
			return nil, err
		}
		v, err := decode[T](r.Key, r.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func decode[T any](k journal.Key, b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("the journal's %s record of %s/%s/%s cannot be read: %w", k.Kind, k.Repository, k.Stack, k.Name, err)
	}
	return v, nil
}

// record is a value under its key. Our own types always encode.
func record[T any](k journal.Key, v T) journal.Record {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a %s record does not encode: %v", k.Kind, err))
	}
	return journal.Record{Key: k, Value: b}
}
