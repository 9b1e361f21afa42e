package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/gitea"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/github"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/gitlab"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// OpenOptions are what a configuration does not say.
type OpenOptions struct {
	Logger  *slog.Logger
	Version string
	Getenv  func(string) string // default os.Getenv
	Out     io.Writer           // of notifications of kind stdout; default os.Stdout
	Local   gitsource.Local     // whether a path of this machine may be a repository: in tests
}

// Open makes a reconciler with everything that its configuration names. Nothing is read
// from Git, a forge or the engine yet.
func Open(ctx context.Context, c Config, o OpenOptions) (*Reconciler, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	traces, err := openTraces(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err := openWith(ctx, c, o, traces)
	if err != nil {
		return nil, errors.Join(err, endTraces(ctx, traces, flushWithin))
	}
	return r, nil
}

func openWith(ctx context.Context, c Config, o OpenOptions, traces *sdktrace.TracerProvider) (*Reconciler, error) {
	var transport http.RoundTripper
	if traces != nil {
		transport = engineclient.Traced{Next: http.DefaultTransport}
	}
	client, err := openEngine(c.Engine, o, transport)
	if err != nil {
		return nil, err
	}
	parts := Parts{Engine: client, Remotes: map[string]gitsource.Remote{}, Forges: map[string]forge.Forge{}, Hooks: map[string]forge.Hook{}, Logger: o.Logger, Version: o.Version, Getenv: o.Getenv, Out: o.Out, Traces: traces}
	hosts := gitsource.NewHosts(c.Limits.PerHost)
	for _, r := range c.Repositories {
		remote, err := openRemote(c, r, hosts, o)
		if err != nil {
			return nil, fmt.Errorf("repository %s: %w", r.Name, err)
		}
		parts.Remotes[r.Name] = remote
		if r.Forge == nil {
			continue
		}
		if parts.Forges[r.Name], parts.Hooks[r.Name], err = openForge(*r.Forge, o); err != nil {
			return nil, fmt.Errorf("repository %s: forge: %w", r.Name, err)
		}
	}
	if parts.Journal, err = openJournal(ctx, c.State, o); err != nil {
		return nil, err
	}
	r, err := New(c, parts)
	if err != nil {
		return nil, errors.Join(err, parts.Journal.Close())
	}
	return r, nil
}

// Close sends the spans that are left, within flushWithin, and closes the journal.
func (r *Reconciler) Close() error {
	if err := endTraces(context.Background(), r.traces, flushWithin); err != nil {
		lostTraces(r.log, err)
	}
	return r.ledger.Close()
}

// openEngine makes the client; a nil transport is the default one.
func openEngine(c EngineConfig, o OpenOptions, transport http.RoundTripper) (*engineclient.Client, error) {
	read := func() (string, error) { return c.APIKey.Read(o.Getenv) }
	if !c.APIKey.Given() {
		read = func() (string, error) {
			return cmp.Or(o.Getenv("SLUICE_API_KEY"), o.Getenv("TOGETHER_API_KEY")), nil
		}
	}
	key, err := read()
	if err != nil {
		return nil, fmt.Errorf("the engine's API key: %w", err)
	}
	if key == "" {
		return nil, errors.New("no API key for the engine: set SLUICE_API_KEY, or engine { api_key_file } in the configuration")
	}
	return engineclient.New(engineclient.Config{BaseURL: c.URL, APIKey: key, RenewKey: read, Project: c.Project, UserAgent: "sluice-reconciler/" + o.Version, Transport: transport})
}

func openJournal(ctx context.Context, c StateConfig, o OpenOptions) (journal.Journal, error) {
	if c.Postgres.Given() {
		address, err := c.Postgres.Read(o.Getenv)
		if err != nil {
			return nil, fmt.Errorf("the address of the journal's database: %w", err)
		}
		return journal.OpenPostgres(ctx, address)
	}
	return journal.OpenSQLite(c.Path) //nolint:contextcheck // a file is opened at once
}

// openRemote makes the remote of a repository. What is watched is what its stacks and its
// policies need, unless the configuration says otherwise.
func openRemote(c Config, r RepositoryConfig, hosts *gitsource.Hosts, o OpenOptions) (gitsource.Remote, error) {
	folder, err := filepath.Abs(cmp.Or(c.State.Mirrors, filepath.Join(filepath.Dir(c.State.Path), "sluice-mirrors")))
	if err != nil {
		return nil, err
	}
	auth, err := openAuth(r, o)
	if err != nil {
		return nil, err
	}
	verify := gitsource.Verify{Mode: gitsource.VerifyMode(r.Verify.Mode)}
	for file, into := range map[string]*[]byte{r.Verify.OpenPGPKeys: &verify.OpenPGPKeys, r.Verify.AllowedSigners: &verify.AllowedSigners} {
		if file == "" {
			continue
		}
		if *into, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
	}
	return gitsource.Open(gitsource.Options{
		URL: r.URL, Auth: auth, Store: gitsource.Store{Kind: gitsource.StoreKind(r.Store), Folder: folder},
		Include: watched(c, r), Exclude: r.Exclude, Limits: gitsource.Limits{FileBytes: c.Limits.FileBytes, Files: c.Limits.Files * max(1, len(r.Stacks))},
		Verify: verify, Hosts: hosts, Local: o.Local,
	})
}

// watched are the patterns of the paths that a repository is read for: the configured
// ones, or the files of its stacks, and the policies that others take from it.
func watched(c Config, r RepositoryConfig) []string {
	out := slices.Clone(r.Include)
	if len(out) == 0 {
		for _, s := range r.Stacks {
			out = append(out, strings.TrimPrefix(path.Join(s.Folder, "*.{tf,tf.json,tfvars,tfvars.json,approvals}"), "./"))
		}
	}
	for _, s := range r.Stacks {
		for _, v := range s.VarFiles {
			out = append(out, path.Join(s.Folder, v))
		}
	}
	for _, other := range c.Repositories {
		for _, p := range other.Policies {
			if p.Repository == r.Name {
				out = append(out, strings.TrimPrefix(path.Join(p.Folder, "**"), "./"))
			}
		}
	}
	return out
}

// secret yields a secret whenever it is asked for, so that a rotated one is taken.
func secret(s Secret, o OpenOptions) gitsource.Secret {
	if !s.Given() {
		return nil
	}
	return func(context.Context) (string, error) { return s.Read(o.Getenv) }
}

func openAuth(r RepositoryConfig, o OpenOptions) (gitsource.Auth, error) {
	a := r.Auth
	switch {
	case a.App != nil:
		app, err := openApp(a.App, r.Forge, o)
		if err != nil {
			return gitsource.Auth{}, err
		}
		return gitsource.Auth{App: app.Token}, nil
	case a.Token.Given():
		return gitsource.Auth{Basic: &gitsource.Basic{User: cmp.Or(a.Username, "x-access-token"), Password: secret(a.Token, o)}}, nil
	case a.Password.Given():
		return gitsource.Auth{Basic: &gitsource.Basic{User: a.Username, Password: secret(a.Password, o)}}, nil
	case a.SSHKey.Given(), a.SSHAgent == UseAgent:
		hosts, err := os.ReadFile(a.KnownHosts)
		if err != nil {
			return gitsource.Auth{}, fmt.Errorf("known_hosts: %w", err)
		}
		return gitsource.Auth{SSH: &gitsource.SSH{User: a.SSHUser, Key: secret(a.SSHKey, o), Passphrase: secret(a.Passphrase, o), Agent: gitsource.Agent(a.SSHAgent), KnownHosts: hosts}}, nil
	}
	return gitsource.Auth{}, nil
}

func openApp(c *AppConfig, at *ForgeConfig, o OpenOptions) (*github.App, error) {
	address := ""
	if at != nil {
		address = at.URL
	}
	key := func(context.Context) ([]byte, error) {
		s, err := c.Key.Read(o.Getenv)
		return []byte(s), err
	}
	return github.NewApp(github.AppOptions{URL: address, ID: c.ID, Installation: c.Installation, Key: key})
}

// openForge makes the adaptor of a forge and the reader of its webhooks.
func openForge(c ForgeConfig, o OpenOptions) (forge.Forge, forge.Hook, error) {
	key := func() ([]byte, error) {
		s, err := c.WebhookSecret.Read(o.Getenv)
		return []byte(s), err
	}
	token := secret(c.Token, o)
	switch c.Kind {
	case GitHub:
		var app *github.App
		if c.App != nil {
			var err error
			if app, err = openApp(c.App, &c, o); err != nil {
				return nil, nil, err
			}
		}
		f, err := github.New(github.Options{URL: c.URL, Repository: c.Repository, Token: token, App: app})
		return f, github.Hook(key), err
	case GitLab:
		f, err := gitlab.New(gitlab.Options{URL: c.URL, Repository: c.Repository, Token: token})
		return f, gitlab.Hook(key), err
	case Gitea:
		f, err := gitea.New(gitea.Options{URL: c.URL, Repository: c.Repository, Token: token})
		return f, gitea.Hook(key), err
	}
	return nil, nil, fmt.Errorf("there is no forge %q", c.Kind)
}
