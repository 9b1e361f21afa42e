package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// perStack is how many endpoints one stack declares.
const perStack = 10

// followed is an engine, a repository that declares its endpoints, and what a reconciler
// of both is told. The calls to both are counted, and the newest write is told.
type followed struct {
	engine    *engine
	repo      *gitRepo
	config    reconciler.Config
	hooks     map[string]forge.Hook
	endpoints int

	toGit, toEngine, writes atomic.Int64
	wrote                   chan time.Time // when the engine had answered a write; keeps one
}

// follow starts an engine and a repository of so many endpoints; stop ends both.
func (b *bench) follow(ctx context.Context, name string, endpoints int) (w *followed, stop func(), err error) {
	w = &followed{endpoints: endpoints, wrote: make(chan time.Time, 1)}
	if w.engine, err = b.startEngine(ctx, name, simulatedConfig); err != nil {
		return nil, nil, err
	}
	if w.repo, err = initRepo(ctx, filepath.Join(b.dir, name, "git")); err != nil {
		w.engine.stop()
		return nil, nil, err
	}
	closeGit, err := w.repo.serve(ctx, w.countGit)
	stop = func() { closeGit(); w.engine.stop() }
	if err != nil {
		w.engine.stop()
		return nil, nil, err
	}
	if err := errors.Join(w.commit(ctx, w.stacks()...), w.configure(filepath.Join(b.dir, name))); err != nil {
		stop()
		return nil, nil, err
	}
	return w, stop, nil
}

func (w *followed) countGit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.toGit.Add(1)
		next.ServeHTTP(rw, r)
	})
}

// RoundTrip counts a call to the engine and tells a write that was answered.
func (w *followed) RoundTrip(req *http.Request) (*http.Response, error) {
	w.toEngine.Add(1)
	answer, err := http.DefaultTransport.RoundTrip(req)
	if req.Method != http.MethodGet && err == nil {
		w.writes.Add(1)
		select {
		case w.wrote <- time.Now():
		default:
		}
	}
	return answer, err
}

// configure has the defaults of a configuration file, but a deadline that lets the first
// pass make all endpoints.
func (w *followed) configure(dir string) error {
	c, found := reconciler.FromFlags(reconciler.Flags{EngineURL: w.engine.api, URL: "https://git.example.com/infra.git", State: filepath.Join(dir, "reconciler.db"), Folder: stackName(0)})
	if found.HasErrors() {
		return fmt.Errorf("the reconciler's configuration: %v", found)
	}
	r := &c.Repositories[0]
	r.URL, r.Deadline, r.Stacks = w.repo.url, 10*time.Minute, nil
	for _, s := range w.stacks() {
		r.Stacks = append(r.Stacks, reconciler.StackConfig{Name: stackName(s), Folder: stackName(s)})
	}
	w.config = c
	return nil
}

// open makes a reconciler as a new process has it: nothing in memory, the same journal
// and mirror.
func (w *followed) open() (*reconciler.Reconciler, error) {
	rc := w.config.Repositories[0]
	client, err := engineclient.New(engineclient.Config{BaseURL: w.engine.api, APIKey: w.engine.key, Transport: w})
	if err != nil {
		return nil, err
	}
	remote, err := gitsource.Open(gitsource.Options{
		URL: w.repo.url, Include: []string{"stack-*/*.tf"}, Hosts: gitsource.NewHosts(w.config.Limits.PerHost),
		Store:  gitsource.Store{Kind: gitsource.StoreKind(rc.Store), Folder: filepath.Join(filepath.Dir(w.config.State.Path), "mirrors")},
		Limits: gitsource.Limits{FileBytes: w.config.Limits.FileBytes, Files: w.config.Limits.Files * len(rc.Stacks)},
	})
	if err != nil {
		return nil, err
	}
	j, err := journal.OpenSQLite(w.config.State.Path)
	if err != nil {
		return nil, err
	}
	r, err := reconciler.New(w.config, reconciler.Parts{Engine: client, Journal: j, Remotes: map[string]gitsource.Remote{rc.Name: remote}, Hooks: w.hooks})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return r, nil
}

// begin opens a reconciler that holds the lease.
func (w *followed) begin(ctx context.Context) (*reconciler.Reconciler, error) {
	r, err := w.open() //nolint:contextcheck // a file is opened at once
	if err != nil {
		return nil, err
	}
	if err := r.Begin(ctx); err != nil {
		return nil, errors.Join(err, r.Close()) //nolint:contextcheck // what is left of spans has a bound of its own
	}
	return r, nil
}

// end gives the lease back, as a process does that is told to stop.
func end(ctx context.Context, r *reconciler.Reconciler) error {
	return errors.Join(r.End(context.WithoutCancel(ctx)), r.Close()) //nolint:contextcheck // what is left of spans has a bound of its own
}

// settle makes passes until the engine is as Git says and one more that finds nothing.
func (w *followed) settle(ctx context.Context, r *reconciler.Reconciler) error {
	for range 100 {
		before := w.writes.Load()
		if err := r.Once(ctx); err != nil {
			return err
		}
		s, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if s.ExitCode() == 0 && w.writes.Load() == before {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	s, err := r.Status(ctx)
	said, _ := json.Marshal(s)
	return errors.Join(err, fmt.Errorf("the engine has not become what Git says in 100 passes: %s", said[:min(len(said), 2000)]))
}

// stacks are the numbers of all stacks.
func (w *followed) stacks() []int {
	out := make([]int, (w.endpoints+perStack-1)/perStack)
	for i := range out {
		out[i] = i
	}
	return out
}

func stackName(s int) string { return fmt.Sprintf("stack-%03d", s) }

// commit pushes the files of stacks. With each commit the first endpoint of each has
// another upper bound, and one replica once it was changed: 0 goes with 0 alone.
func (w *followed) commit(ctx context.Context, stacks ...int) error {
	i := w.repo.commits
	w.repo.commits++
	return w.repo.importing(ctx, func(to io.Writer) {
		commit(to, i)
		if i > 0 {
			_, _ = fmt.Fprintln(to, "from refs/heads/main^0")
		}
		for _, s := range stacks {
			text := w.declaration(s, i)
			_, _ = fmt.Fprintf(to, "M 100644 inline %s/main.tf\ndata %d\n%s\n", stackName(s), len(text), text)
		}
	})
}

// declaration is a stack's file: its endpoints with a deployment each, of no replica but
// for the first when it is bounded.
func (w *followed) declaration(stack, bound int) string {
	var text strings.Builder
	for i := range min(perStack, w.endpoints-stack*perStack) {
		low, high := 0, 0
		if i == 0 && bound > 0 {
			low, high = 1, 1+bound
		}
		fmt.Fprintf(&text, `resource "sluice_endpoint" "chat_%[1]d" {
  name = "chat-%[1]d"
}
resource "sluice_deployment" "stable_%[1]d" {
  endpoint_id = sluice_endpoint.chat_%[1]d.id
  name        = "stable"
  model       = "bench/stable"
  config      = "cr_stable"
  autoscaling = { min_replicas = %[2]d, max_replicas = %[3]d }
}
`, stack*perStack+i, low, high)
	}
	return text.String()
}

// useHook lets a webhook hasten the passes, and no forge is asked. It returns the key.
func (w *followed) useHook(kind reconciler.ForgeKind, hook func(func() ([]byte, error)) forge.Hook) ([]byte, error) {
	key := []byte("a secret between two machines")
	file := filepath.Join(filepath.Dir(w.config.State.Path), "hook")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		return nil, err
	}
	r := &w.config.Repositories[0]
	secret := reconciler.Secret{File: file}
	r.Forge = &reconciler.ForgeConfig{Kind: kind, WebhookSecret: secret, Interval: cmp.Or(r.Interval, time.Minute)}
	w.hooks = map[string]forge.Hook{r.Name: hook(func() ([]byte, error) {
		text, err := secret.Read(os.Getenv)
		return []byte(text), err
	})}
	return key, nil
}
