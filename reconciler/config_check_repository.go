package reconciler

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

func (d *decoder) checkRepository(c Config, r RepositoryConfig) {
	where := join("repository", r.Name)
	d.checkAddress(r)
	d.checkWanted(r)
	if r.Interval < shortestInterval {
		d.refuse(d.at(join(where, "interval")), fmt.Sprintf("interval of repository %q is too short", r.Name), fmt.Sprintf("It is %s.", r.Interval), "write at least 5s; a webhook hastens a poll where it must be faster")
	}
	if r.Deadline < shortestInterval {
		d.refuse(d.at(join(where, "deadline")), fmt.Sprintf("deadline of repository %q is too short", r.Name), fmt.Sprintf("It is %s.", r.Deadline), "write at least 5s")
	}
	d.checkAuth(r)
	d.checkVerify(r)
	d.checkForge(c, r)
	d.checkPermissions(r)
	d.checkStacks(r)
	if m := r.Prune.MostShrink; m < 1 || m > 100 {
		d.refuse(d.at(join(where, "prune", "0", "most_shrink")), "most_shrink of prune is a percentage from 1 to 100", fmt.Sprintf("It is %d.", m), "")
	}
	for i, p := range r.Policies {
		at := join("policy repository", p.Repository)
		if p.Repository != "" && !slices.ContainsFunc(c.Repositories, func(o RepositoryConfig) bool { return o.Name == p.Repository }) {
			var names []string
			for _, o := range c.Repositories {
				names = append(names, o.Name)
			}
			d.refuse(d.at(at), fmt.Sprintf("There is no repository %q for the policy of %q", p.Repository, r.Name), "", declaration.Nearest(p.Repository, names))
		}
		if _, err := inside(p.Folder); err != nil {
			d.refuse(d.at(at), fmt.Sprintf("The policy's folder %q cannot be", p.Folder), err.Error()+".", "")
		}
		d.present(p.Path, join(where, "policy", strconv.Itoa(i), "path"))
	}
}

func (d *decoder) checkAddress(r RepositoryConfig) {
	at := d.at(join("repository", r.Name, "url"))
	a, err := parseAddress(r.URL)
	switch {
	case r.URL == "":
		d.refuse(at, fmt.Sprintf("repository %q has no url", r.Name), "", `write url = "https://…", "ssh://…" or "git@host:path"`)
	case errors.Is(err, errSecretInURL):
		d.refuse(at, secretInFile, fmt.Sprintf("The url of repository %q holds a user or a password.", r.Name), "give them in auth { … } as password_file or token_env")
	case err != nil:
		d.refuse(at, fmt.Sprintf("The url of repository %q is no address", r.Name), err.Error()+".", "https://, ssh:// and user@host:path are")
	case a.Transport == local:
		d.refuse(at, fmt.Sprintf("The url of repository %q is a local path", r.Name), "A path has no access rules, no pull requests, and nobody else sees it.", "push it to a Git server; sluice apply PATH applies a working copy")
	case a.Scheme == "http" && !a.loopback():
		d.refuse(at, fmt.Sprintf("repository %q would travel in the clear", r.Name), "What is read there is applied, so that whoever is on the way could write it.", "use https://")
	}
}

func (d *decoder) checkWanted(r RepositoryConfig) {
	if err := r.Wanted.Check(); err != nil {
		where := join("repository", r.Name)
		for _, name := range []string{"branch", "tag", "semver", "commit"} {
			if at, ok := d.places[join(where, name)]; ok {
				d.refuse(at, fmt.Sprintf("repository %q cannot be followed so", r.Name), err.Error()+".", "")
				return
			}
		}
		d.refuse(d.at(where), fmt.Sprintf("repository %q cannot be followed so", r.Name), err.Error()+".", "")
	}
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"include", r.Include}, {"exclude", r.Exclude}} {
		for _, p := range list.patterns {
			if !doublestar.ValidatePattern(p) || p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "./") {
				d.refuse(d.at(join("repository", r.Name, list.name)), fmt.Sprintf("%s of repository %q cannot be read", list.name, r.Name), fmt.Sprintf("%q is no pattern of paths from the repository's root.", p), `write "prod/**/*.tf"`)
			}
		}
	}
}

func (d *decoder) checkAuth(r RepositoryConfig) {
	a, where := r.Auth, join("repository", r.Name, "auth", "0")
	address, err := parseAddress(r.URL)
	ssh := a.SSHKey.Given() || a.SSHAgent == UseAgent
	ways := 0
	for _, way := range []bool{a.Username != "" || a.Password.Given(), a.Token.Given(), ssh, a.App != nil} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		d.refuse(d.at(where), fmt.Sprintf("Two ways to reach repository %q", r.Name), "", "keep one of username and password, token, SSH, and github_app")
	case a.SSHKey.Given() && a.SSHAgent == UseAgent:
		d.refuse(d.at(where), fmt.Sprintf("Both a key and the agent for repository %q", r.Name), "", "keep ssh_key_file or ssh_agent")
	case (a.Username != "") != a.Password.Given():
		d.refuse(d.at(where), fmt.Sprintf("username and password of repository %q belong together", r.Name), "", "write both, or token_file for a token")
	case a.Passphrase.Given() && !a.SSHKey.Given():
		d.refuse(d.at(join(where, "passphrase")), "A passphrase without a private key", "", "write ssh_key_file too")
	case err != nil:
	case address.Transport == overSSH && !ssh:
		d.refuse(d.at(where), fmt.Sprintf("repository %q is reached by SSH, and there is no key", r.Name), "", "write auth { ssh_key_file = … known_hosts = … }, or ssh_agent = true")
	case address.Transport == overHTTP && (ssh || a.KnownHosts != ""):
		d.refuse(d.at(where), fmt.Sprintf("repository %q is reached by HTTP, and SSH is given", r.Name), "", "use the ssh:// address, or token_file")
	}
	if err == nil && address.Transport == overSSH && a.KnownHosts == "" {
		d.refuse(d.at(where), fmt.Sprintf("repository %q has no pinned host keys", r.Name), "No host is trusted at first sight: whoever answers first could be anybody.", "write known_hosts; ssh-keyscan HOST prints its lines, and the host's owner publishes them")
	}
	d.secret(a.Password, join(where, "password"))
	d.secret(a.Token, join(where, "token"))
	d.secret(a.SSHKey, join(where, "ssh_key"))
	d.secret(a.Passphrase, join(where, "passphrase"))
	d.present(a.KnownHosts, join(where, "known_hosts"))
	if a.App != nil {
		d.secret(a.App.Key, join(where, "github_app", "0", "key"))
	}
}

func (d *decoder) checkVerify(r RepositoryConfig) {
	v, where := r.Verify, join("repository", r.Name, "verify", "0")
	keys := v.OpenPGPKeys != "" || v.AllowedSigners != ""
	_, there := d.places[where]
	switch {
	case v.Mode == VerifyNone && (keys || there):
		d.refuse(d.at(where), fmt.Sprintf("verify of repository %q has no mode", r.Name), "", `write mode = "head", "tag" or "tag_and_head"`)
	case v.Mode != VerifyNone && !keys:
		d.refuse(d.at(where), fmt.Sprintf("verify of repository %q trusts nobody", r.Name), "", "write openpgp_keys or allowed_signers")
	case (v.Mode == VerifyTag || v.Mode == VerifyBoth) && r.Wanted.Tag == "" && r.Wanted.Semver == "":
		d.refuse(d.at(join(where, "mode")), fmt.Sprintf("repository %q follows no tag whose signature could be verified", r.Name), "", `follow a tag or a semver range, or write mode = "head"`)
	}
	d.present(v.OpenPGPKeys, join(where, "openpgp_keys"))
	d.present(v.AllowedSigners, join(where, "allowed_signers"))
}

func (d *decoder) checkForge(c Config, r RepositoryConfig) {
	f := r.Forge
	if f == nil {
		return
	}
	where := join("repository", r.Name, "forge")
	if f.Token.Given() == (f.App != nil) {
		d.refuse(d.at(where), fmt.Sprintf("The forge of repository %q needs a token or a GitHub App", r.Name), "", "write token_file, token_env or github_app { … }, one of them")
	}
	if f.App != nil && f.Kind != GitHub {
		d.refuse(d.at(where), fmt.Sprintf("github_app of repository %q needs the forge github", r.Name), "", "write token_file or token_env")
	}
	u, err := url.Parse(f.URL)
	if f.URL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil) {
		d.refuse(d.at(join(where, "url")), fmt.Sprintf("The forge's url of repository %q is no address", r.Name), "", `write "https://git.example.com"`)
	} else if f.URL != "" && u.Scheme == "http" && !(address{Host: u.Host}).loopback() {
		d.refuse(d.at(join(where, "url")), fmt.Sprintf("The forge's token of repository %q would travel in the clear", r.Name), "", "use https://")
	}
	if f.URL == "" && f.Kind == Gitea {
		d.refuse(d.at(where), fmt.Sprintf("The forge of repository %q has no url", r.Name), "There is no public one that gitea could mean.", `write url = "https://git.example.com"`)
	}
	if parts := strings.Split(f.Repository, "/"); len(parts) < 2 || slices.Contains(parts, "") || len(parts) > 2 && f.Kind != GitLab {
		d.refuse(d.at(join(where, "repository")), fmt.Sprintf("The forge of repository %q does not know which repository it is", r.Name), fmt.Sprintf("It would be %q.", f.Repository), `write repository = "owner/name"`)
	}
	if f.Interval < shortestInterval && f.Interval != r.Interval {
		d.refuse(d.at(join(where, "interval")), "interval of the forge is too short", fmt.Sprintf("It is %s.", f.Interval), "write at least 5s")
	}
	if f.WebhookSecret.Given() && c.HTTP.Listen == "" {
		d.warn(d.at(join(where, "webhook_secret")), fmt.Sprintf("Nothing listens for webhooks of repository %q", r.Name), "", `write http { listen = ":8090" }`)
	}
	d.secret(f.Token, join(where, "token"))
	d.secret(f.WebhookSecret, join(where, "webhook_secret"))
	if f.App != nil {
		d.secret(f.App.Key, join(where, "github_app", "0", "key"))
	}
}

// checkPermissions looks at a table that stands outside of a forge: it is asked for keys,
// which have a role and are nobody's user.
func (d *decoder) checkPermissions(r RepositoryConfig) {
	where := join("repository", r.Name, "permissions", "0")
	if r.Permissions != nil && r.Forge != nil {
		d.refuse(d.at(where), fmt.Sprintf("Permissions of repository %q outside of its forge", r.Name), "The forge's hold at every door, for keys too.", "put them into forge { permissions { … } }")
		return
	}
	for _, v := range verbs {
		for _, g := range r.Permissions[v] {
			if g.Role == forge.None {
				d.refuse(d.at(join(where, string(v))), fmt.Sprintf("%s of repository %q is granted to nobody that there is", v, r.Name), fmt.Sprintf("It names %s, and without a forge there are keys only.", Grantees([]Grant{g})), `write "role:write", and give the key that role in http { key … }`)
			}
		}
	}
}

// inside is a folder of a repository, clean.
func inside(folder string) (string, error) {
	clean := cleanFolder(folder)
	switch {
	case path.IsAbs(clean) || strings.Contains(folder, "\\"):
		return "", errors.New("a folder is written from the repository's root, with slashes between its parts")
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "", errOutside
	}
	return clean, nil
}

func cleanFolder(folder string) string { return path.Clean(cmp.Or(folder, ".")) }

func (d *decoder) checkStacks(r RepositoryConfig) {
	if len(r.Stacks) == 0 {
		d.refuse(d.at(join("repository", r.Name)), fmt.Sprintf("repository %q has no stack", r.Name), "Nothing in it would be planned.", `write stack "name" { folder = "…" }`)
	}
	folders := map[string]string{}
	for _, s := range r.Stacks {
		where := join("repository", r.Name, "stack", s.Name)
		clean, err := inside(s.Folder)
		switch first, taken := folders[clean]; {
		case err != nil:
			d.refuse(d.at(join(where, "folder")), fmt.Sprintf("folder of stack %q cannot be", s.Name), fmt.Sprintf("%q: %s.", s.Folder, err), "")
			continue
		case taken:
			d.refuse(d.at(join(where, "folder")), fmt.Sprintf("Stacks %q and %q have the same folder", first, s.Name), "Both would apply the same things.", "give each a folder of its own")
		default:
			folders[clean] = s.Name
		}
		for _, f := range s.VarFiles {
			if joined, err := inside(path.Join(clean, f)); err != nil || path.IsAbs(f) {
				d.refuse(d.at(join(where, "var_files")), fmt.Sprintf("var_files of stack %q: %q cannot be", s.Name, f), "It leads out of the repository.", "")
			} else if !strings.HasSuffix(joined, ".tfvars") && !strings.HasSuffix(joined, ".tfvars.json") {
				d.refuse(d.at(join(where, "var_files")), fmt.Sprintf("var_files of stack %q: %q is no file of variables", s.Name, f), "Its name ends in .tfvars or .tfvars.json.", "")
			}
		}
	}
	for folder, name := range folders {
		k := StackKey{r.Name, name}
		for up := folder; up != "." && !d.nested[k]; {
			up = path.Dir(up)
			if outer, there := folders[up]; there {
				d.refuse(d.at(join("repository", r.Name, "stack", name, "folder")), fmt.Sprintf("The folder of stack %q lies within that of %q", name, outer), fmt.Sprintf("%s is below %s.", folder, up), "if that is meant, write nested = true in the inner one")
				break
			}
		}
	}
}
