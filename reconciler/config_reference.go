package reconciler

import (
	"slices"
	"strings"
)

// Block is one kind of block of the configuration file, as it is read and documented.
type Block struct {
	Path       string // such as repository.forge.permissions
	Label      string // what its label is; empty for a block without one
	Doc        string
	Attributes []Attribute
}

// Attribute is one attribute of a block. One of type Secret is written as name_file or
// name_env.
type Attribute struct {
	Name    string
	Type    Type
	Default string // as in the file; empty for none
	Doc     string
	Choices []string
}

// Type is what an attribute's value is.
type Type string

// The types of attributes.
const (
	TextType     Type = "text"
	TextsType    Type = "list of texts"
	MapType      Type = "map of texts"
	GrantsType   Type = "list of grants"
	GrantMapType Type = "map of lists of grants"
	NumberType   Type = "number"
	BoolType     Type = "true or false"
	SpanType     Type = "duration"
	InstantType  Type = "time"
	FileType     Type = "path"
	SecretType   Type = "secret"
)

var verbs = []Verb{Resume, Promote, Cancel, Reverse, Approve, Override, Retry, Suspend, Continue, Replan, Help}

// grantText is who may use a verb when the file does not say, as the file would say it.
func grantText(v Verb) string {
	var words []string
	for _, g := range DefaultGrants(v) {
		words = append(words, `"role:`+g.Role.String()+`"`)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// appBlock is the GitHub App of a repository's auth or forge block.
func appBlock(path string) Block {
	return Block{Path: path, Doc: "A GitHub App instead of a token.", Attributes: []Attribute{
		{Name: "id", Type: NumberType, Doc: "the App's id"},
		{Name: "installation", Type: NumberType, Doc: "the id of its installation"},
		{Name: "key", Type: SecretType, Doc: "its private key, PEM"},
	}}
}

// permissionsBlock is the table of who may use a verb.
func permissionsBlock(path, doc string) Block {
	return Block{Path: path, Doc: doc, Attributes: []Attribute{
		{Name: string(Resume), Type: GrantsType, Default: grantText(Resume), Doc: "let a parked rollout go on"},
		{Name: string(Promote), Type: GrantsType, Default: grantText(Promote), Doc: "let it go on past the gate"},
		{Name: string(Cancel), Type: GrantsType, Default: grantText(Cancel), Doc: "end it and freeze the split"},
		{Name: string(Reverse), Type: GrantsType, Default: grantText(Reverse), Doc: "roll back to the source"},
		{Name: string(Approve), Type: GrantsType, Default: grantText(Approve), Doc: "approve a plan's digest"},
		{Name: string(Override), Type: GrantsType, Default: grantText(Override), Doc: "lift a denial of a policy that names nobody else"},
		{Name: string(Retry), Type: GrantsType, Default: grantText(Retry), Doc: "allow a change again that a person has canceled"},
		{Name: string(Suspend), Type: GrantsType, Default: grantText(Suspend), Doc: "stop applying"},
		{Name: string(Continue), Type: GrantsType, Default: grantText(Continue), Doc: "end a suspension"},
		{Name: string(Replan), Type: GrantsType, Default: grantText(Replan), Doc: "plan a pull request anew"},
		{Name: string(Help), Type: GrantsType, Default: grantText(Help), Doc: "be told the commands"},
	}}
}

// Reference is everything that a configuration file can say, with all defaults. The page
// docs/reconcile.md is kept in step with it by a test.
var Reference = []Block{
	{Path: "engine", Doc: "The engine that everything is applied to.", Attributes: []Attribute{
		{Name: "url", Type: TextType, Doc: "its address; required"},
		{Name: "project", Type: TextType, Doc: "a project's id; without it that of the key"},
		{Name: "api_key", Type: SecretType, Doc: "the key"},
	}},
	{Path: "state", Doc: "Where the journal is: a SQLite file or a PostgreSQL database.", Attributes: []Attribute{
		{Name: "path", Type: FileType, Default: "sluice-reconciler.db", Doc: "the SQLite file"},
		{Name: "postgres", Type: SecretType, Doc: "the address of a PostgreSQL database, instead of a file"},
		{Name: "mirrors", Type: FileType, Default: "sluice-mirrors", Doc: "the folder of Git mirrors and temporary fetches"},
		{Name: "keep", Type: SpanType, Default: "2160h", Doc: "how long history is kept"},
		{Name: "instance", Type: TextType, Doc: "the name by which this reconciler owns endpoints and knows its comments; default one that the journal makes up. Give it the old name when a journal was lost"},
	}},
	{Path: "http", Doc: "The reconciler's own door: status, metrics, webhooks, commands.", Attributes: []Attribute{
		{Name: "listen", Type: TextType, Doc: "host:port; required in the block"},
	}},
	{Path: "http.key", Label: "name", Doc: "Somebody who may use the door.", Attributes: []Attribute{
		{Name: "secret", Type: SecretType, Doc: "the key; required"},
		{Name: "role", Type: TextType, Default: "read", Choices: []string{"read", "write", "maintain", "admin"}, Doc: "what it may, as the permissions say of a user with that role: without any read sees and hastens passes, write also resumes, cancels and reverses, maintain also promotes, approves, overrides, retries and suspends"},
	}},
	{Path: "repository", Label: "name", Doc: "A repository that is followed.", Attributes: []Attribute{
		{Name: "url", Type: TextType, Doc: "https://…, ssh://… or user@host:path; required"},
		{Name: "branch", Type: TextType, Doc: "the branch to follow; without any of the four, the one that HEAD points at"},
		{Name: "tag", Type: TextType, Doc: "the tag to follow"},
		{Name: "semver", Type: TextType, Doc: "a range such as \">=1.2.0 <2.0.0\"; the highest tag in it is followed"},
		{Name: "commit", Type: TextType, Doc: "one commit, 40 hex digits"},
		{Name: "include", Type: TextsType, Doc: "patterns of watched paths; without it all below the stacks' folders"},
		{Name: "exclude", Type: TextsType, Doc: "patterns of paths that are not watched"},
		{Name: "store", Type: TextType, Default: "mirror", Choices: []string{string(Mirror), string(Shallow)}, Doc: "mirror keeps a bare mirror and knows history, shallow fetches depth 1 each time"},
		{Name: "interval", Type: SpanType, Default: "1m", Doc: "between two polls; at least 5s"},
		{Name: "deadline", Type: SpanType, Default: "2m", Doc: "of each part of a pass: reading Git, the forge, the stacks, the reports"},
		{Name: "approval", Type: TextType, Default: "merge", Choices: []string{string(ApproveByMerge), string(ApproveByDigest)}, Doc: "merge applies what is on the followed ref, digest waits until the plan's digest is approved"},
		{Name: "supersede", Type: TextType, Default: "latest", Choices: []string{string(Latest), string(Every)}, Doc: "of commits that come while an endpoint is busy: the latest, or every one in order"},
		{Name: "drift", Type: TextType, Default: "report", Choices: []string{string(ReportDrift), string(CorrectDrift)}, Doc: "report tells what Git has not made, correct also mends it where no rollout or lock owns it"},
	}},
	{Path: "repository.auth", Doc: "How the repository is reached. One way: username and password, token, SSH, or a GitHub App.", Attributes: []Attribute{
		{Name: "username", Type: TextType, Doc: "of basic authentication, with password"},
		{Name: "password", Type: SecretType, Doc: "of basic authentication"},
		{Name: "token", Type: SecretType, Doc: "a token of the forge"},
		{Name: "ssh_user", Type: TextType, Default: "git", Doc: "when the URL names none"},
		{Name: "ssh_key", Type: SecretType, Doc: "a private key"},
		{Name: "passphrase", Type: SecretType, Doc: "of the private key"},
		{Name: "ssh_agent", Type: BoolType, Default: "false", Doc: "ask the agent of the environment instead of a key"},
		{Name: "known_hosts", Type: FileType, Doc: "the pinned host keys; required for SSH, no host is trusted at first sight"},
	}},
	appBlock("repository.auth.github_app"),
	{Path: "repository.verify", Doc: "Whose signatures a commit needs before anything of it is read.", Attributes: []Attribute{
		{Name: "mode", Type: TextType, Choices: []string{string(VerifyHead), string(VerifyTag), string(VerifyBoth)}, Doc: "what must be signed; required"},
		{Name: "openpgp_keys", Type: FileType, Doc: "an armored key ring"},
		{Name: "allowed_signers", Type: FileType, Doc: "SSH allowed signers"},
	}},
	{Path: "repository.forge", Label: "github, gitlab or gitea", Doc: "Where the repository's pull requests live. Forgejo is gitea. Without the block there are no comments and statuses.", Attributes: []Attribute{
		{Name: "url", Type: TextType, Doc: "base address; without it the public one, which gitea has not"},
		{Name: "repository", Type: TextType, Doc: "owner/name; without it the path of the repository's url"},
		{Name: "token", Type: SecretType, Doc: "a token that may write comments and statuses"},
		{Name: "webhook_secret", Type: SecretType, Doc: "the key of webhook signatures; without it no webhook is taken"},
		{Name: "forks", Type: TextType, Default: "ask", Choices: []string{string(AskForForks), string(PlanForks)}, Doc: "pull requests from forks: ask plans one when somebody who may write says /sluice plan, since a plan tells values of variables and of the engine; plan plans all"},
		{Name: "interval", Type: SpanType, Doc: "between two looks at open pull requests; without it the repository's"},
	}},
	appBlock("repository.forge.github_app"),
	permissionsBlock("repository.forge.permissions", "Who may do what by a comment or at another door. A grant is \"role:write\" (and above), \"user:ana\" or \"team:acme/ml\"; an empty list is nobody. Roles are read, triage, write, maintain and admin."),
	permissionsBlock("repository.permissions", "Who may do what with a key of the HTTP door, in a repository without a forge block; with one its permissions hold for keys too. A grant is \"role:write\" (and above): a key is no user and in no team. An empty list is nobody."),
	{Path: "repository.stack", Label: "name", Doc: "A folder of HCL that is planned and applied together. A repository has at least one.", Attributes: []Attribute{
		{Name: "folder", Type: TextType, Default: ".", Doc: "from the repository's root"},
		{Name: "nested", Type: BoolType, Default: "false", Doc: "says that the folder is meant to lie within another stack's"},
		{Name: "var_files", Type: TextsType, Doc: "*.tfvars, from the folder"},
		{Name: "variables", Type: MapType, Doc: "values of variables, as text"},
		{Name: "depends_on", Type: TextsType, Doc: "stacks whose endpoints must be at rest and in step with Git first: \"stack\" of this repository or \"repository/stack\""},
	}},
	{Path: "repository.policy", Doc: "A folder of Rego rules that judge each plan. There may be several.", Attributes: []Attribute{
		{Name: "path", Type: FileType, Doc: "a folder on this machine"},
		{Name: "repository", Type: TextType, Doc: "or the name of a followed repository, from its followed ref and never from a pull request"},
		{Name: "folder", Type: TextType, Default: ".", Doc: "the folder in that repository"},
		{Name: "overriders", Type: GrantMapType, Doc: "who may lift a denial, by the names that the denial's override has"},
	}},
	{Path: "repository.prune", Doc: "Deletes what Git no longer declares. Without the block nothing is ever deleted.", Attributes: []Attribute{
		{Name: "most_shrink", Type: NumberType, Default: "30", Doc: "percent of a stack's things that one commit may take away, 1 to 100"},
	}},
	{Path: "notify", Label: "name", Doc: "A place that hears of events.", Attributes: []Attribute{
		{Name: "kind", Type: TextType, Choices: []string{string(Webhook), string(Slack), string(Stdout)}, Doc: "how the notification travels; required"},
		{Name: "url", Type: SecretType, Doc: "the address, of webhook and slack; required for them"},
		{Name: "sign", Type: SecretType, Doc: "the key of the webhook's HMAC-SHA256 signature"},
		{Name: "events", Type: TextsType, Doc: "kinds of events, of those [above](#notifications): such as \"rollout.parked\", or \"rollout.*\" for a family; without it all"},
		{Name: "remind", Type: SpanType, Default: "4h", Doc: "between two reminders of one park; 0s for none, else at least 1m"},
	}},
	{Path: "freeze", Label: "name", Doc: "A time in which nothing is started. What runs goes on. Once (from and until), or again and again (cron and for).", Attributes: []Attribute{
		{Name: "stacks", Type: TextsType, Doc: "\"repository\" or \"repository/stack\"; without it all"},
		{Name: "from", Type: InstantType, Doc: "the beginning, such as \"2026-12-24T00:00:00+01:00\""},
		{Name: "until", Type: InstantType, Doc: "the end"},
		{Name: "cron", Type: TextType, Doc: "when it begins: minute, hour, day of the month, month, day of the week"},
		{Name: "for", Type: SpanType, Doc: "how long each lasts; at most 744h"},
		{Name: "zone", Type: TextType, Default: "UTC", Doc: "the time zone of cron, such as \"Europe/Berlin\""},
		{Name: "reason", Type: TextType, Doc: "told to who waits"},
	}},
	{Path: "limits", Doc: "What happens at once.", Attributes: []Attribute{
		{Name: "rollouts", Type: NumberType, Default: "0", Doc: "rollouts under way over all stacks; 0 for no limit"},
		{Name: "fetches", Type: NumberType, Default: "4", Doc: "fetches from Git"},
		{Name: "per_host", Type: NumberType, Default: "5", Doc: "calls a second to one Git or forge host"},
		{Name: "file_bytes", Type: NumberType, Default: "1048576", Doc: "bytes of one watched file"},
		{Name: "files", Type: NumberType, Default: "1000", Doc: "watched files of one stack"},
	}},
}

// blockAt finds a kind of block in the reference; "" is the file itself.
func blockAt(path string) Block {
	i := slices.IndexFunc(Reference, func(b Block) bool { return b.Path == path })
	if i < 0 {
		return Block{}
	}
	return Reference[i]
}

// attribute finds one; asking for one that is not in the reference is a mistake in this
// package, which its first test finds.
func (b Block) attribute(name string) Attribute {
	i := slices.IndexFunc(b.Attributes, func(a Attribute) bool { return a.Name == name })
	if i < 0 {
		panic("the reference of the configuration has no " + b.Path + "." + name)
	}
	return b.Attributes[i]
}

// names are what may be written in the block.
func (b Block) names() []string {
	var out []string
	for _, a := range b.Attributes {
		if a.Type == SecretType {
			out = append(out, a.Name+"_file", a.Name+"_env")
		} else {
			out = append(out, a.Name)
		}
	}
	return out
}
