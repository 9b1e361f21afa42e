// Package forge talks to the place where pull requests live: GitHub, GitLab, Gitea and
// Forgejo behind one port, with one conformance suite.
//
// What comes from a forge is text of others. What goes there is idempotent: a comment
// is found again by its marker before another is made, a status is read before it is
// repeated. Failures are told by the reaction that they need: *Limited (wait until),
// *Refused (do not repeat), anything else (try again with a back-off).
package forge

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Forge is one repository at a forge. It is safe for concurrent use.
type Forge interface {
	// Repository reads the repository itself; its ID stays when it is renamed.
	Repository(ctx context.Context) (Repository, error)
	// Open lists the open pull requests into a branch, by number, and Closed those that
	// ended at or after an instant, newest last. A list may lack what only PullRequest
	// knows: Base is then empty and Mergeable Unknown. One that is no longer in Open
	// need not be over; PullRequest says what became of it.
	Open(ctx context.Context, base string) ([]PullRequest, error)
	Closed(ctx context.Context, base string, since time.Time) ([]PullRequest, error)
	// PullRequest reads one.
	PullRequest(ctx context.Context, number int) (PullRequest, error)
	// Files lists the paths that a pull request touches, sorted; a rename has both. More
	// than the forge lists is *Refused, never a part.
	Files(ctx context.Context, number int) ([]string, error)
	// Comments lists those of a pull request that were made or changed at or after an
	// instant, which counts to its second, oldest first.
	Comments(ctx context.Context, number int, since time.Time) ([]Comment, error)
	// Comment makes one, EditComment replaces its text. What is longer than Limits says
	// is *Refused before it is sent.
	Comment(ctx context.Context, number int, body string) (Comment, error)
	EditComment(ctx context.Context, number int, id int64, body string) error
	// React answers a comment with a small sign; one that is there already is left.
	React(ctx context.Context, number int, comment int64, sign Sign) error
	// Reviews lists the newest verdict of each reviewer, by name. Where the forge does
	// not tell which commit was reviewed, Commit is empty: an approval of nothing.
	Reviews(ctx context.Context, number int) ([]Review, error)
	// Statuses lists the newest status of each context of a commit, by context; SetStatus
	// adds one.
	Statuses(ctx context.Context, commit string) ([]Status, error)
	SetStatus(ctx context.Context, commit string, s Status) error
	// Role is what a user may do in the repository, None for one who is no member; Teams
	// are those of some names that the user is a member of, such as "acme/platform". A
	// look-up that fails, or a team that the token cannot see, is an error and never an
	// answer.
	Role(ctx context.Context, user string) (Role, error)
	Teams(ctx context.Context, user string, of []string) ([]string, error)
	// Limits of this forge.
	Limits() Limits
}

// Limits are what a forge takes.
type Limits struct {
	Comment     int // characters of a comment
	Context     int // characters of a status's context
	Description int // characters of a status's text
}

// Repository is a repository at a forge.
type Repository struct {
	ID            int64
	FullName      string // owner/name as it is now
	DefaultBranch string
	URL           string // for people
	Archived      bool
}

// PullRequest is a pull or merge request.
type PullRequest struct {
	Number      int
	Title       string
	Author      string
	URL         string
	State       PullRequestState
	Draft       bool
	Head        string // commit
	HeadRef     string // branch
	Fork        bool   // the head is in another repository
	Base        string // commit of the base branch when the forge last looked; it may have moved on
	BaseRef     string
	MergeCommit string    // of a merged one
	Mergeable   Mergeable // as far as the forge knows
	UpdatedAt   time.Time
	ClosedAt    time.Time // zero while it is open
}

// PullRequestState is whether a pull request is over.
type PullRequestState string

// The states of a pull request.
const (
	IsOpen   PullRequestState = "open"
	IsClosed PullRequestState = "closed"
	IsMerged PullRequestState = "merged"
)

// Mergeable is what a forge says of a merge; Unknown is never taken for Clean.
type Mergeable string

// Whether a pull request can be merged.
const (
	Clean       Mergeable = "clean"
	Conflicting Mergeable = "conflicting"
	Blocked     Mergeable = "blocked" // by a rule of the forge
	Unknown     Mergeable = "unknown"
)

// Comment is one comment of a pull request.
type Comment struct {
	ID        int64
	Author    string
	Bot       bool // written by the account that this adaptor uses
	Body      string
	At        time.Time
	UpdatedAt time.Time
	URL       string
}

// Sign is a reaction to a comment.
type Sign string

// The signs.
const (
	Seen   Sign = "eyes"
	Done   Sign = "+1"
	Denied Sign = "-1"
)

// Review is a reviewer's verdict on one commit.
type Review struct {
	Author   string
	Commit   string // the head that was reviewed
	Approved bool   // the newest verdict is an approval that was not dismissed
	At       time.Time
}

// Status is a commit status.
type Status struct {
	Context string // its key on the commit
	State   StatusState
	Text    string
	URL     string
}

// StatusState is what a status says.
type StatusState string

// The states of a status.
const (
	Pending StatusState = "pending"
	Success StatusState = "success"
	Failure StatusState = "failure"
	Error   StatusState = "error"
)

// Role is a user's rank in a repository; a higher one may all that a lower one may.
type Role int

// The roles.
const (
	None Role = iota
	Read
	Triage
	Write
	Maintain
	Admin
)

// String names a role as configurations do.
func (r Role) String() string {
	names := [...]string{"none", "read", "triage", "write", "maintain", "admin"}
	if r < None || r > Admin {
		return fmt.Sprintf("role %d", int(r))
	}
	return names[r]
}

// Hook checks and reads a webhook. It never acts: a delivery only hastens a poll.
type Hook interface {
	// Delivery verifies the signature over the body, which the caller has bounded, and
	// only then looks into it. A wrong or missing signature is *BadSignature.
	Delivery(header http.Header, body []byte) (Delivery, error)
}

// Delivery is what a webhook says happened.
type Delivery struct {
	ID          string // the forge's own, for deliveries that come twice
	Kind        string // push, pull_request, comment, review, ping, the forge's own word, or unknown
	Repository  string // owner/name
	Ref         string // of a push
	PullRequest int    // 0 for none
}

// Limited is a refusal because of too many calls.
type Limited struct {
	Until time.Time // when to try again
	What  string
}

func (l *Limited) Error() string {
	return fmt.Sprintf("%s: rate limit of the forge; next try at %s", l.What, l.Until.UTC().Format(time.RFC3339))
}

// Refused is an answer that a repetition would not change: a wrong token, a missing
// right, a thing that is not there, an input that is not taken.
type Refused struct {
	Status int // HTTP; 0 when it was not even sent
	What   string
	Hint   string
}

func (r *Refused) Error() string {
	text := fmt.Sprintf("%s: the forge answered %d", r.What, r.Status)
	if r.Status == 0 {
		text = r.What + ": not sent to the forge"
	}
	if r.Hint != "" {
		text += "; " + r.Hint
	}
	return text
}

// BadSignature is a delivery that nobody who knows the secret has sent.
type BadSignature struct{ Why string }

func (b *BadSignature) Error() string { return "webhook refused: " + b.Why }
