package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
)

// reconcileFlags are the words of "sluice reconcile".
type reconcileFlags struct {
	config, listen, level, format string
	once, check, wait             bool
	within                        time.Duration
	one                           reconciler.Flags
	tokenEnv, sshKey              string
}

func (a *app) reconcileCommand() *cobra.Command {
	var f reconcileFlags
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "Follow Git and make the engine what it says: plans on pull requests, rollouts after the merge",
		Long: `Follow Git repositories and make the engine what they declare, in the same HCL that
terraform apply takes. A pull request gets its plan as one comment; its merge starts the
rollout, which the comment then follows to its end. A parked rollout waits for a person.

Without --once it runs until SIGINT or SIGTERM; rollouts go on without it, and the next
start takes them up. With --once it makes one pass over every repository, for pipelines:
exit codes 0 nothing to do, or done; 1 an error, or a ref that is not there; 2 changes
wait or are under way; 3 a rollout is parked. A mistaken command line or configuration ends with 1 then.

The commands below ask a reconciler that runs with an http block, at SLUICE_RECONCILER_URL
with the key SLUICE_RECONCILER_KEY; release alone asks the engine. A rollout itself is
steered by sluice rollout, or by a comment on its pull request.

The last example makes this reconciler, by its journal, the owner of the endpoints that it
writes to: another one, and the same with another journal, is then refused.`,
		Example: `  sluice reconcile --config sluice.hcl --check
  sluice reconcile --config sluice.hcl
  sluice reconcile status
  sluice reconcile --once --repository https://git.example.com/acme/models.git --branch main --folder prod`,
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.fit(cmd.Flags().Changed)
			if err == nil {
				err = a.reconcile(cmd.Context(), f)
			}
			if f.once && err != nil {
				var ended *endedError
				if !errors.As(err, &ended) {
					a.printError(err)
					return &endedError{ExitFailed}
				}
			}
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "configuration file, HCL (docs/reconcile.md)")
	fl.BoolVar(&f.once, "once", false, "make one pass and end")
	fl.BoolVar(&f.wait, "wait", false, "with --once: make passes until nothing waits or runs, or a rollout is parked")
	fl.DurationVar(&f.within, "within", time.Hour, "with --wait: how long at most")
	fl.BoolVar(&f.check, "check", false, "read the configuration, say what is wrong with it, and end")
	fl.StringVar(&f.listen, "listen", "", "address of the HTTP door, over the configuration's; port 0 takes a free one")
	fl.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	fl.StringVar(&f.format, "log-format", "text", "text or json")
	fl.StringVar(&f.one.URL, "repository", "", "follow this one repository, without a file")
	fl.StringVar(&f.one.Wanted.Branch, "branch", "", "branch to follow (default the repository's own)")
	fl.StringVar(&f.one.Folder, "folder", ".", "folder of the declaration in it")
	fl.StringVar(&f.one.State, "state", "", "file of the journal (default sluice-reconciler.db)")
	fl.StringVar(&f.tokenEnv, "token-env", "", "environment variable with the token for HTTPS")
	fl.StringVar(&f.sshKey, "ssh-key", "", "private key for SSH, a file")
	fl.StringVar(&f.one.Auth.KnownHosts, "known-hosts", "", "file of the pinned host keys for SSH")
	c.AddCommand(a.reconcileDoorCommands()...)
	c.AddCommand(a.reconcileReleaseCommand())
	return c
}

// knownVerb takes no word: what stands there is a verb that there is not.
func knownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, sub := range c.Commands() {
		known = append(known, append([]string{sub.Name()}, sub.Aliases...)...)
	}
	return usagef("%q has no command %q; %s", c.CommandPath(), args[0], declaration.Nearest(args[0], known))
}

// withoutFile are the flags that say what a configuration file says otherwise.
var withoutFile = []string{"branch", "folder", "state", "token-env", "ssh-key", "known-hosts"}

// fit refuses flags that would be ignored.
func (f reconcileFlags) fit(given func(flag string) bool) error {
	var without []string
	for _, name := range withoutFile {
		if given(name) {
			without = append(without, "--"+name)
		}
	}
	switch {
	case given("config") && given("repository"):
		return usagef("--config and --repository are both given: the file names its repositories itself, so leave one away")
	case given("config") && len(without) > 0:
		return usagef("%s with --config would be ignored: write it into the file, or give --repository instead of the file", strings.Join(without, ", "))
	case f.wait && !f.once:
		return usagef("--wait goes with --once: without it the reconciler runs until it is ended")
	case given("within") && !f.wait:
		return usagef("--within goes with --wait: it bounds the waiting")
	}
	return nil
}

// readReconcile is the configuration that the flags name, and what was found in it.
func (a *app) readReconcile(f reconcileFlags) (reconciler.Config, configCheck, error) {
	if (f.config == "") == (f.one.URL == "") {
		return reconciler.Config{}, configCheck{}, usagef("say what to follow: --config FILE, or --repository URL")
	}
	load := func() (reconciler.Config, declaration.Diagnostics) { return reconciler.LoadConfig(f.config) }
	if f.config == "" {
		f.one.Auth.Token, f.one.Auth.SSHKey = reconciler.Secret{Env: f.tokenEnv}, reconciler.Secret{File: f.sshKey}
		f.one.EngineURL = a.first(a.url, "SLUICE_ENGINE_URL", "TOGETHER_BASE_URL")
		f.one.Project = a.first(a.project, "SLUICE_PROJECT", "TOGETHER_PROJECT_ID")
		load = func() (reconciler.Config, declaration.Diagnostics) { return reconciler.FromFlags(f.one) }
	}
	c, diags := load()
	found := checkOf(f, c, diags)
	if a.json && (f.check || !found.Taken) {
		diags = nil // they stand in the JSON
	}
	if err := diags.Render(a.Err); err != nil {
		return c, found, err
	}
	if !found.Taken {
		if a.json {
			return c, found, cmp.Or(a.printJSON(found), error(&endedError{ExitFailed}))
		}
		return c, found, errors.New("the configuration is not taken")
	}
	if f.listen != "" {
		c.HTTP.Listen = f.listen
	}
	return c, found, nil
}

func (a *app) reconcile(ctx context.Context, f reconcileFlags) error {
	c, found, err := a.readReconcile(f)
	if err != nil {
		return err
	}
	if f.check {
		return a.showChecked(found)
	}
	log, err := a.logger(f.level, f.format)
	if err != nil {
		return err
	}
	r, err := reconciler.Open(ctx, c, reconciler.OpenOptions{Logger: log, Version: a.Version, Getenv: a.Getenv, Out: a.Out})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() //nolint:contextcheck // the last spans have a bound of their own
	if f.once {
		return a.once(ctx, r, f)
	}
	stop, err := a.listen(ctx, c.HTTP.Listen, r.Handler())
	if err != nil {
		return err
	}
	defer stop()
	return r.Run(ctx)
}

func orFlags(config string) string {
	if config == "" {
		return "the flags"
	}
	return config
}

func count1(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func stacksOf(c reconciler.Config) int {
	n := 0
	for _, r := range c.Repositories {
		n += len(r.Stacks)
	}
	return n
}

func (a *app) logger(level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %q: use debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		o.ReplaceAttr = withoutEmpty
		return slog.New(slog.NewTextHandler(a.Err, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Err, o)), nil
	}
	return nil, usagef("--log-format %q: use text or json", format)
}

// withoutEmpty leaves away what a line for people has no value for. JSON keeps it: its
// readers want the same names on each line.
func withoutEmpty(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
		return slog.Attr{}
	}
	return a
}

// once makes passes until there is nothing to wait for, or just one.
func (a *app) once(ctx context.Context, r *reconciler.Reconciler, f reconcileFlags) error {
	if err := r.Begin(ctx); err != nil {
		return err
	}
	defer func() { _ = r.End(context.WithoutCancel(ctx)) }()
	until := time.Now().Add(f.within)
	for {
		failed := r.Once(ctx)
		s, err := r.Status(ctx)
		if err = errors.Join(failed, err); err != nil && (!f.wait || ctx.Err() != nil || time.Now().After(until)) {
			return err
		}
		code := s.ExitCode()
		if err == nil && (!f.wait || code != reconciler.ExitPending || time.Now().After(until)) {
			if err := a.showStatus(s); err != nil || code == ExitOK {
				return err
			}
			return &endedError{code}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// listen serves the HTTP door; stop ends it in order.
func (a *app) listen(ctx context.Context, address string, h http.Handler) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_, _ = fmt.Fprintln(a.Err, "the HTTP door ended:", err)
		}
	}()
	_, _ = fmt.Fprintf(a.Err, "sluice %s\nreconciler: http://%s\n", a.Version, l.Addr()) // stdout may be for notifications
	return func() {
		ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if s.Shutdown(ended) != nil {
			_ = s.Close()
		}
		<-served
	}, nil
}

// showStatus prints where everything is.
func (a *app) showStatus(s reconciler.Status) error {
	if a.json {
		return a.printJSON(s)
	}
	return s.Render(a.Out, a.options(time.Now()))
}
