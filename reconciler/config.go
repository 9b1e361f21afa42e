package reconciler

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// Config is everything that a reconciler is told, checked and with its defaults in
// place. Secrets are not in it: it names the file or the environment variable that has
// one, which is read when it is needed and again when it was refused.
type Config struct {
	Engine       EngineConfig
	State        StateConfig
	HTTP         HTTPConfig
	Repositories []RepositoryConfig // by name
	Notify       []NotifyConfig
	Freezes      []Freeze
	Limits       Limits
}

// Secret says where a secret is: exactly one of the two, or none.
type Secret struct {
	File string
	Env  string
}

// Given reports whether there is one.
func (s Secret) Given() bool { return s != Secret{} }

// EngineConfig is the engine that everything is applied to.
type EngineConfig struct {
	URL     string
	Project string // empty for the key's own
	APIKey  Secret
}

// StateConfig is where the journal is: a SQLite file (default sluice-reconciler.db) or
// a PostgreSQL database whose address is a secret.
type StateConfig struct {
	Path     string
	Postgres Secret
	Instance string        // by which endpoints are owned; empty for the journal's own
	Mirrors  string        // folder of bare mirrors and temporary fetches; default beside Path
	Keep     time.Duration // history; default 90 days
}

// HTTPConfig is the reconciler's own door.
type HTTPConfig struct {
	Listen string // host:port; empty for none
	Keys   []KeyConfig
}

// KeyConfig is one who may use the HTTP door.
type KeyConfig struct {
	Name   string
	Secret Secret
	Role   forge.Role // Read sees, Write also suspends and reconciles now, Admin also approves and overrides
}

// RepositoryConfig is one repository that is followed.
type RepositoryConfig struct {
	Name    string
	URL     string // https://, ssh:// or user@host:path; a local path only with Config of tests
	Wanted  gitsource.Wanted
	Include []string // doublestar patterns of watched paths; empty for all below the stacks' folders
	Exclude []string
	Store   StoreKind

	Interval time.Duration // between two polls; default 1 minute, at least 5 s
	Deadline time.Duration // of each part of a pass; default 2 minutes

	Auth   AuthConfig
	Verify VerifyConfig
	Forge  *ForgeConfig // nil for none: plans and parks are then told by status and notifications only
	Stacks []StackConfig

	Permissions Permissions // of keys, where there is no forge; nil for the defaults

	Approval  ApprovalMode
	Supersede SupersedeMode
	Drift     DriftMode
	Prune     PruneConfig
	Policies  []PolicyConfig
}

// StoreKind is how commits are fetched.
type StoreKind string

// The kinds of stores. Mirror keeps a bare mirror, knows history and reads only what is
// new; Shallow fetches depth 1 into an empty folder each time.
const (
	Mirror  StoreKind = "mirror"
	Shallow StoreKind = "shallow"
)

// AuthConfig is how a repository is reached. At most one way is given.
type AuthConfig struct {
	Username   string // of basic authentication, with Password
	Password   Secret
	Token      Secret // bearer of a forge
	SSHUser    string // default git
	SSHKey     Secret // private key; with SSHAgent it is asked for instead
	Passphrase Secret
	SSHAgent   AgentUse
	KnownHosts string // file; required for SSH, no host is ever trusted at first sight
	App        *AppConfig
}

// AgentUse says whether the SSH agent of the environment is asked.
type AgentUse string

// With and without an agent.
const (
	NoAgent  AgentUse = ""
	UseAgent AgentUse = "agent"
)

// AppConfig is a GitHub App.
type AppConfig struct {
	ID           int64
	Installation int64
	Key          Secret // PEM
}

// VerifyConfig says whose signatures a commit needs before anything of it is read.
type VerifyConfig struct {
	Mode           VerifyMode
	OpenPGPKeys    string // armored key ring, a file
	AllowedSigners string // SSH allowed signers, a file
}

// VerifyMode is what must be signed.
type VerifyMode string

// What must be signed: nothing, the commit, the tag, or both.
const (
	VerifyNone VerifyMode = ""
	VerifyHead VerifyMode = "head"
	VerifyTag  VerifyMode = "tag"
	VerifyBoth VerifyMode = "tag_and_head"
)

// ForgeConfig is where a repository's pull requests live.
type ForgeConfig struct {
	Kind          ForgeKind
	URL           string // base address; empty for the public one
	Repository    string // owner/name, for GitLab a path of any depth
	Token         Secret
	App           *AppConfig
	WebhookSecret Secret
	Forks         ForkMode
	Interval      time.Duration // between two looks at open pull requests; default the repository's
	Permissions   Permissions
}

// ForkMode is what is done with pull requests that come from forks.
type ForkMode string

// Ask plans one when somebody who may write asks for it, head by head; Plan plans all.
const (
	AskForForks ForkMode = "ask"
	PlanForks   ForkMode = "plan"
)

// ForgeKind names an adaptor.
type ForgeKind string

// The forges. Forgejo is spoken to as Gitea.
const (
	GitHub ForgeKind = "github"
	GitLab ForgeKind = "gitlab"
	Gitea  ForgeKind = "gitea"
)

// Permissions say who may do what by a comment or at another door.
type Permissions map[Verb][]Grant

// Grant lets a role, a user or a team do something. Exactly one field is given.
type Grant struct {
	Role forge.Role
	User string
	Team string
}

// Verb is what a person can ask for.
type Verb string

// The verbs. Those from Resume to Reverse steer a rollout; Override lifts a denial of a
// policy; Now asks for a pass at once.
const (
	Resume   Verb = "resume"
	Promote  Verb = "promote"
	Cancel   Verb = "cancel"
	Reverse  Verb = "reverse"
	Approve  Verb = "approve"
	Override Verb = "override"
	Retry    Verb = "retry" // allow a spec digest again that a person has canceled
	Suspend  Verb = "suspend"
	Continue Verb = "continue" // end a suspension
	Replan   Verb = "plan"
	Help     Verb = "help"
)

// StackConfig is one folder of HCL that is planned and applied together.
type StackConfig struct {
	Name      string
	Folder    string   // from the repository's root; "." for the root
	VarFiles  []string // from the folder
	Variables map[string]string
	DependsOn []StackKey // whose endpoints must be at rest and in step with Git before this one is applied
}

// StackKey names a stack among all repositories.
type StackKey struct{ Repository, Stack string }

// String is the key for people.
func (k StackKey) String() string { return k.Repository + "/" + k.Stack }

// ApprovalMode is what lets a planned change be applied.
type ApprovalMode string

// Merge applies what is on the followed ref; Digest applies it when somebody allowed has
// approved the digest of the plan, by a comment, a review, the HTTP door or a file in
// Git.
const (
	ApproveByMerge  ApprovalMode = "merge"
	ApproveByDigest ApprovalMode = "digest"
)

// SupersedeMode is what becomes of commits that a newer one overtakes while an endpoint
// is busy.
type SupersedeMode string

// Latest goes on with the newest and lists the skipped ones; Every runs all in order.
const (
	Latest SupersedeMode = "latest"
	Every  SupersedeMode = "every"
)

// DriftMode is what is done about differences that Git has not made.
type DriftMode string

// Report tells them, Correct also mends those that nobody's rollout or lock owns.
const (
	ReportDrift  DriftMode = "report"
	CorrectDrift DriftMode = "correct"
)

// PruneConfig says whether what Git no longer declares is deleted.
type PruneConfig struct {
	Mode       PruneMode
	MostShrink int // percent of a stack's things that one commit may take away; default 30
}

// PruneMode is whether things are deleted.
type PruneMode string

// Keep is the default.
const (
	PruneOff PruneMode = ""
	PruneOn  PruneMode = "on"
)

// PolicyConfig is a folder of Rego: on this machine, or in a followed repository, from
// its followed ref and never from a pull request.
type PolicyConfig struct {
	Path       string
	Repository string
	Folder     string
	Overriders map[string][]Grant // by the names that a denial's "override" has
}

// NotifyConfig is one place that hears of events.
type NotifyConfig struct {
	Name   string
	Kind   NotifyKind
	URL    Secret        // of webhook and slack
	Sign   Secret        // key of the webhook's HMAC-SHA256 signature
	Events []string      // kinds; empty for all
	Remind time.Duration // between two reminders of one park; default 4 h, 0 for none
}

// NotifyKind is how a notification travels.
type NotifyKind string

// The kinds of notifications.
const (
	Webhook NotifyKind = "webhook"
	Slack   NotifyKind = "slack"
	Stdout  NotifyKind = "stdout"
)

// Freeze is a time in which nothing is started. What runs already goes on.
type Freeze struct {
	Name   string
	Stacks []StackKey // empty for all; an empty Stack means all of the repository
	From   time.Time  // of a single freeze
	Until  time.Time
	Cron   string        // of a repeated one: when it begins, five fields
	For    time.Duration // how long each lasts
	Zone   string        // IANA time zone of Cron; default UTC
	Reason string
}

// Limits bound what happens at once.
type Limits struct {
	Rollouts  int     // that are under way at once over all stacks; 0 for no limit
	Fetches   int     // at once; default 4
	PerHost   float64 // most Git and forge calls a second to one host; default 5
	FileBytes int64   // of one watched file; default 1 MiB
	Files     int     // watched files of one stack; default 1000
}
