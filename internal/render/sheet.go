package render

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// Sheet is everything that is shown of one pull request: by Comment as its one comment,
// by Status as one line an endpoint, by SheetText on a terminal. The same sheet with the
// same limit gives the same bytes. Texts in it may be of others: they are made inert.
type Sheet struct {
	Marker    Marker
	Stage     Stage
	Revision  Revision
	Stacks    []StackSheet // in the order in which they are applied
	Approval  Approval
	Conflicts []Notice // files that cannot be merged into the base
	Unmerged  string   // why there is no merge result, where it is not about files
	Refused   []Notice // watched files that are not read, each with its reason
	Waiting   []string // what an apply waits for: a dependency, a freeze, a limit; a sentence each
	Remarks   []string // what a reader should know besides, a sentence each
	History   []Push   // earlier pushes, newest first
	Over      Over     // of a pull request that is superseded or closed
}

// Stage is where a pull request is.
type Stage string

// The stages. Live is after the merge or the approval: the comment then follows the
// rollouts, to their receipts.
const (
	Planned    Stage = "planned"
	Following  Stage = "live"
	Superseded Stage = "superseded"
	Closed     Stage = "closed"
)

// Marker identifies a comment as ours: by the reconciler's instance and the repository
// as it is configured. Whether our account wrote it is for the forge to say.
type Marker struct{ Instance, Repository string }

// String is the marker as it stands in the first line of a comment: an HTML comment
// that readers do not see. Names that are long get a hash in place of their end.
func (m Marker) String() string {
	return fmt.Sprintf("<!-- sluice instance=%s repository=%s -->", marked(m.Instance), marked(m.Repository))
}

// marked writes a name so that it cannot end an HTML comment.
func marked(s string) string {
	const longest = 120
	escaped := strings.ReplaceAll(url.QueryEscape(s), "-", "%2D")
	if len(escaped) <= longest {
		return escaped
	}
	return fmt.Sprintf("%s~%x", escaped[:longest-26], sha256.Sum256([]byte(s)))[:longest]
}

// Revision is what was planned.
type Revision struct {
	Repository string
	Commit     string // head of the pull request, or the merged commit
	Branch     string // of the head
	Base       string // branch
	BaseCommit string // with which the head was merged for the plan
	At         time.Time
	URL        string // of the run, or of the commit
}

// StackSheet is one folder of HCL.
type StackSheet struct {
	Name        string
	Endpoints   []string     // that it changes something of
	Problem     string       // why there is no plan, where it is not the HCL: the engine did not answer
	Diagnostics []Diagnostic // what is wrong with the HCL, or remarked of it
	Changes     []Change
	Rollouts    []RolloutSheet
	Drift       []Drift // theirs: what Git has not made
	Policy      policy.Verdict
	Overrides   []Override
	Diff        string // of the HCL, unified; shown last and folded
}

// Diagnostic is one remark on the HCL.
type Diagnostic struct {
	Severity string // error, warning or note
	At       string // file:line:column
	Summary  string
	Text     string // in full, with the source line and what is marked in it; several lines
}

// Change is what happens to one declared thing.
type Change struct {
	Address string
	Action  planning.Action
	ID      string // of the live thing, where there is one
	From    string // former address of one that moved
	Fields  []Field
	Held    string   // why it is not done now, such as a lock of a rollout
	Notes   []string // what a reader should know of it, a sentence each
}

// moves reports whether anything is done, or would be if nothing held it.
func (ch Change) moves() bool { return ch.Action != planning.NoOp || ch.From != "" || ch.Held != "" }

// Field is one value that changes. Before and After are as JSON writes them; empty for
// none.
type Field struct{ Path, Before, After string }

// RolloutSheet is one rollout: its journey, and what runs of it.
type RolloutSheet struct {
	Address  string // sluice_rollout.chat; empty for one that only a command started
	Endpoint string // as people and commands call it: prod/chat
	Journey  planning.Journey
	Live     Live
	Run      *Run   // nil until the engine has it
	Reverses string // id of the rollout that this one takes back
}

// Live is what was read of the engine for a plan.
type Live struct {
	Fit       Fit
	Shortfall string // what is missing when it does not fit
	FreeGPUs  *int   // of the target's hardware
	Loads     []planning.Load
	Cost      *float64 // of the overlap, in cents
	Warnings  []api.Warning
}

// Fit is whether a rollout has room now.
type Fit string

// Whether it fits: not known, it does, it does not.
const (
	FitUnknown Fit = ""
	Fits       Fit = "fits"
	Short      Fit = "short"
)

// Run is a rollout at the engine.
type Run struct {
	Rollout  api.Rollout
	Events   []api.Event
	Names    map[string]string // deployment ids to names
	URL      string            // for people
	Requests *int64            // answered by the pair during the rollout
	NonOK    *int64            // of these with another status than 200
	Approved []Granted
	Steered  []Steer
}

// Steer is what a person did to a running rollout.
type Steer struct {
	By, Verb, Reason string
	At               time.Time
}

// Drift is one difference that Git has not made.
type Drift struct {
	Address string
	Field   string
	Applied string // what was applied last
	Yours   string // what Git says now
	Theirs  string // what stands at the engine
	Actor   string // who made it so; empty when the feed does not say
	At      time.Time
	Event   string // of the feed, such as endpoint.updated
	Effect  string // what becomes of it, a sentence: it is kept, put back by this plan, owned by rol_1
}

// Override is a denial that somebody lifted.
type Override struct {
	Rule, By, Reason string
	At               time.Time
}

// Approval is what lets the plan be applied.
type Approval struct {
	Mode  ApprovalMode
	Plans []PlanApproval // of the stacks that change something
	May   string         // who may approve, in words
	File  string         // in the repository, whose lines approve digests too; empty for none
}

// ApprovalMode is whether a merge is enough.
type ApprovalMode string

// The modes.
const (
	ByMerge  ApprovalMode = "merge"
	ByDigest ApprovalMode = "digest"
)

// PlanApproval is the approval of one stack's plan.
type PlanApproval struct {
	Stack   string
	Digest  string
	Granted []Granted
	Void    string // why an earlier approval does not hold any more
}

// Granted is an approval that somebody gave.
type Granted struct {
	By  string
	How string // merge, comment, review, file or key
	At  time.Time
}

// Notice is a path, and what is said of it.
type Notice struct{ Path, Reason string }

// Push is an earlier push of the pull request.
type Push struct {
	Commit  string
	Digest  string
	At      time.Time
	Verdict string // as it was shown
}

// Over says how a pull request ended without being followed.
type Over struct {
	By   string // the commit that supersedes it, or the person who closed it
	URL  string
	At   time.Time
	Note string // what that means, such as what was let go of
	Why  string // of a closed one, for the headline; empty for "Closed without a merge"
}
