package reconciler

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// decode makes a Config of a file's blocks. What lies between the blocks is checked
// after it, by check.
func (d *decoder) decode(top *scope) Config {
	c := Config{}
	if s := top.one("engine"); s != nil {
		c.Engine = EngineConfig{URL: s.text("url"), Project: s.text("project"), APIKey: s.secret("api_key")}
	}
	c.State = d.state(top.one("state"))
	if s := top.one("http"); s != nil {
		c.HTTP.Listen = s.text("listen")
		for _, k := range s.blocks("key") {
			roles := map[string]forge.Role{"read": forge.Read, "write": forge.Write, "maintain": forge.Maintain, "admin": forge.Admin}
			c.HTTP.Keys = append(c.HTTP.Keys, KeyConfig{Name: k.label, Secret: k.secret("secret"), Role: roles[choice[string](k, "role")]})
		}
	}
	for _, s := range top.blocks("repository") {
		c.Repositories = append(c.Repositories, d.repository(s))
	}
	slices.SortFunc(c.Repositories, func(a, b RepositoryConfig) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range top.blocks("notify") {
		c.Notify = append(c.Notify, NotifyConfig{
			Name: s.label, Kind: choice[NotifyKind](s, "kind"), URL: s.secret("url"), Sign: s.secret("sign"),
			Events: s.texts("events"), Remind: s.span("remind"),
		})
	}
	for _, s := range top.blocks("freeze") {
		c.Freezes = append(c.Freezes, Freeze{
			Name: s.label, Stacks: d.stackKeys(s, "stacks", ""), From: s.instant("from"), Until: s.instant("until"),
			Cron: s.text("cron"), For: s.span("for"), Zone: s.text("zone"), Reason: s.text("reason"),
		})
	}
	c.Limits = d.limits(top.one("limits"))
	return c
}

// absent is a block that is not there: it has the defaults.
func (d *decoder) absent(path string) *scope {
	return &scope{d: d, block: blockAt(path), where: path, body: emptyBody}
}

func (d *decoder) state(s *scope) StateConfig {
	if s == nil {
		s = d.absent("state")
	}
	out := StateConfig{Postgres: s.secret("postgres"), Mirrors: s.file("mirrors"), Keep: s.span("keep"), Instance: s.text("instance")}
	_, given := s.body.Attributes["path"]
	switch {
	case given && out.Postgres.Given():
		d.refuse(d.at(join(s.where, "path")), "Two places for the journal", "Both a file and a PostgreSQL database are given.", "keep one of path and postgres_file or postgres_env")
	case !out.Postgres.Given():
		out.Path = s.file("path")
	}
	return out
}

func (d *decoder) limits(s *scope) Limits {
	if s == nil {
		s = d.absent("limits")
	}
	return Limits{
		Rollouts: number[int](s, "rollouts"), Fetches: number[int](s, "fetches"), PerHost: number[float64](s, "per_host"),
		FileBytes: number[int64](s, "file_bytes"), Files: number[int](s, "files"),
	}
}

func (d *decoder) repository(s *scope) RepositoryConfig {
	out := RepositoryConfig{
		Name: s.label, URL: s.text("url"),
		Wanted:  gitsource.Wanted{Branch: s.text("branch"), Tag: s.text("tag"), Semver: s.text("semver"), Commit: s.text("commit")},
		Include: s.texts("include"), Exclude: s.texts("exclude"), Store: choice[StoreKind](s, "store"),
		Interval: s.span("interval"), Deadline: s.span("deadline"),
		Approval: choice[ApprovalMode](s, "approval"), Supersede: choice[SupersedeMode](s, "supersede"), Drift: choice[DriftMode](s, "drift"),
	}
	out.Auth = d.auth(s.one("auth"))
	if v := s.one("verify"); v != nil {
		out.Verify = VerifyConfig{Mode: choice[VerifyMode](v, "mode"), OpenPGPKeys: v.file("openpgp_keys"), AllowedSigners: v.file("allowed_signers")}
	}
	out.Forge = d.forge(s, out)
	if p := s.one("permissions"); p != nil {
		out.Permissions = d.permissions(p)
	}
	for _, k := range s.blocks("stack") {
		out.Stacks = append(out.Stacks, StackConfig{
			Name: k.label, Folder: k.text("folder"), VarFiles: k.texts("var_files"), Variables: k.mapping("variables"), DependsOn: d.stackKeys(k, "depends_on", s.label),
		})
		if k.yes("nested") {
			d.nested[StackKey{s.label, k.label}] = true
		}
	}
	for _, p := range s.blocks("policy") {
		out.Policies = append(out.Policies, d.policy(p))
	}
	if p := s.one("prune"); p != nil {
		out.Prune = PruneConfig{Mode: PruneOn, MostShrink: number[int](p, "most_shrink")}
	} else {
		out.Prune.MostShrink = number[int](d.absent("repository.prune"), "most_shrink")
	}
	return out
}

func (d *decoder) auth(s *scope) AuthConfig {
	if s == nil {
		s = d.absent("repository.auth")
	}
	out := AuthConfig{
		Username: s.text("username"), Password: s.secret("password"), Token: s.secret("token"),
		SSHUser: s.text("ssh_user"), SSHKey: s.secret("ssh_key"), Passphrase: s.secret("passphrase"),
		KnownHosts: s.file("known_hosts"), App: d.app(s.one("github_app")),
	}
	if s.yes("ssh_agent") {
		out.SSHAgent = UseAgent
	}
	return out
}

func (d *decoder) app(s *scope) *AppConfig {
	if s == nil {
		return nil
	}
	out := &AppConfig{ID: number[int64](s, "id"), Installation: number[int64](s, "installation"), Key: s.secret("key")}
	if out.ID <= 0 || out.Installation <= 0 || !out.Key.Given() {
		d.refuse(s.header, "A GitHub App needs id, installation and key", "", "write all three; the key as key_file or key_env")
	}
	return out
}

// forge reads a repository's forge block, of which there is one at most.
func (d *decoder) forge(of *scope, r RepositoryConfig) *ForgeConfig {
	all := of.blocks("forge")
	if len(all) == 0 {
		return nil
	}
	for _, more := range all[1:] {
		d.refuse(more.header, "A second forge of "+of.title(), "", "a repository's pull requests live at one forge")
	}
	s := all[0]
	kinds := []string{string(GitHub), string(GitLab), string(Gitea)}
	if !slices.Contains(kinds, s.label) {
		d.refuse(s.header, fmt.Sprintf("Unknown forge %q", s.label), "", declaration.Nearest(s.label, kinds))
	}
	out := &ForgeConfig{
		Kind: ForgeKind(s.label), URL: s.text("url"), Repository: cmp.Or(s.text("repository"), pathOf(r.URL)),
		Token: s.secret("token"), WebhookSecret: s.secret("webhook_secret"), Forks: choice[ForkMode](s, "forks"), App: d.app(s.one("github_app")),
		Interval: cmp.Or(s.span("interval"), r.Interval),
	}
	out.Permissions = d.permissions(s.one("permissions"))
	d.places[join("repository", of.label, "forge")] = s.header
	for name, at := range d.places {
		if rest, ok := strings.CutPrefix(name, s.where+"\x00"); ok {
			d.places[join("repository", of.label, "forge", rest)] = at
		}
	}
	return out
}

// pathOf is owner/name of a repository's address.
func pathOf(address string) string {
	path := ""
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		path = u.Path
	} else if _, after, ok := strings.Cut(address, ":"); ok {
		path = after
	}
	return strings.Trim(strings.TrimSuffix(strings.TrimSuffix(path, "/"), ".git"), "/")
}

func (d *decoder) permissions(s *scope) Permissions {
	if s == nil {
		s = d.absent("repository.forge.permissions")
	}
	out := Permissions{}
	for _, v := range verbs {
		out[v] = DefaultGrants(v)
		if _, given := s.body.Attributes[string(v)]; given {
			out[v] = d.grants(join(s.where, string(v)), s.texts(string(v)))
		}
	}
	return out
}

// grants reads "role:write", "user:ana" and "team:acme/ml".
func (d *decoder) grants(where string, words []string) []Grant {
	out := []Grant{}
	for _, w := range words {
		kind, name, _ := strings.Cut(w, ":")
		switch {
		case kind == "user" && name != "":
			out = append(out, Grant{User: name})
		case kind == "team" && name != "":
			out = append(out, Grant{Team: name})
		case kind == "role":
			roles := map[string]forge.Role{}
			for r := forge.Read; r <= forge.Admin; r++ {
				roles[r.String()] = r
			}
			if roles[name] == forge.None {
				d.refuse(d.at(where), fmt.Sprintf("No role %q", name), "", declaration.Nearest(name, []string{"read", "triage", "write", "maintain", "admin"}))
				continue
			}
			out = append(out, Grant{Role: roles[name]})
		default:
			d.refuse(d.at(where), fmt.Sprintf("%q is no grant", w), "", `write "role:write", "user:ana" or "team:acme/ml"`)
		}
	}
	return out
}

func (d *decoder) policy(s *scope) PolicyConfig {
	out := PolicyConfig{Path: s.file("path"), Repository: s.text("repository"), Overriders: map[string][]Grant{}}
	if out.Repository != "" {
		out.Folder = s.text("folder")
	}
	_, folder := s.body.Attributes["folder"]
	switch {
	case (out.Path == "") == (out.Repository == ""):
		d.refuse(s.header, "A policy is a path or a repository", "", `write path = "policies", or repository = "name" and folder = "policies"`)
	case folder && out.Repository == "":
		d.refuse(d.at(join(s.where, "folder")), "folder belongs to repository", "", "write the whole path in path")
	}
	if out.Repository != "" {
		d.places[join("policy repository", out.Repository)] = d.at(join(s.where, "repository"))
	}
	for name, v := range s.object("overriders") {
		out.Overriders[name] = d.grants(join(s.where, "overriders"), s.list("overriders", v))
	}
	return out
}

// stackKeys reads "stack" of a repository, "repository/stack", and, where no repository
// is meant, "repository" for all of it.
func (d *decoder) stackKeys(s *scope, name, of string) []StackKey {
	var out []StackKey
	for _, w := range s.texts(name) {
		repository, stack, both := strings.Cut(w, "/")
		k := StackKey{Repository: repository, Stack: stack}
		if !both && of != "" {
			k = StackKey{Repository: of, Stack: w}
		}
		out = append(out, k)
	}
	return out
}
