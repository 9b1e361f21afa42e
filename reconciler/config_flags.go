package reconciler

import (
	"cmp"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// Flags are one repository with one stack, without a configuration file. What is not
// given has the default of the file.
type Flags struct {
	EngineURL string
	Project   string
	APIKey    Secret
	State     string // path of the journal
	Listen    string

	URL       string
	Wanted    gitsource.Wanted
	Folder    string
	VarFiles  []string
	Variables map[string]string
	Auth      AuthConfig
	Interval  time.Duration
	Approval  ApprovalMode
	Drift     DriftMode
	Prune     PruneMode
	Forge     *ForgeConfig // without permissions it has the defaults; without a repository that of URL
}

// FromFlags makes a configuration of one repository, named repository, with one stack,
// named stack. Its diagnostics have no places.
func FromFlags(f Flags) (Config, declaration.Diagnostics) {
	d := newDecoder(".")
	c := d.decode(&scope{d: d, body: emptyBody})
	r := d.repository(d.absent("repository"))
	r.Name, r.URL, r.Wanted = "repository", f.URL, f.Wanted
	r.Interval = cmp.Or(f.Interval, r.Interval)
	r.Approval, r.Drift, r.Prune.Mode = cmp.Or(f.Approval, r.Approval), cmp.Or(f.Drift, r.Drift), f.Prune
	f.Auth.SSHUser = cmp.Or(f.Auth.SSHUser, r.Auth.SSHUser)
	r.Auth = f.Auth
	if f.Forge != nil {
		forge := *f.Forge
		forge.Repository = cmp.Or(forge.Repository, pathOf(f.URL))
		forge.Interval = cmp.Or(forge.Interval, r.Interval)
		forge.Forks = cmp.Or(forge.Forks, AskForForks)
		if forge.Permissions == nil {
			forge.Permissions = d.permissions(nil)
		}
		r.Forge = &forge
	}
	r.Stacks = []StackConfig{{Name: "stack", Folder: cmp.Or(f.Folder, "."), VarFiles: f.VarFiles, Variables: f.Variables}}
	c.Repositories = []RepositoryConfig{r}
	c.Engine = EngineConfig{URL: f.EngineURL, Project: f.Project, APIKey: f.APIKey}
	c.State.Path = cmp.Or(f.State, c.State.Path)
	c.HTTP.Listen = f.Listen
	d.places = nil
	d.check(c)
	return c, d.found.Placed(nil)
}
