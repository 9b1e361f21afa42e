package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitParked   = 3
	ExitCanceled = 4
)

// Env is what a command runs in.
type Env struct {
	Args    []string
	Out     io.Writer
	Err     io.Writer
	Getenv  func(string) string
	Version string
	Self    string // path of this binary
	Color   render.Palette
	Width   int // columns of the terminal; 0 for no limit
	// Ask puts a question to the person at the terminal; nil when there is none.
	Ask func(question string) (string, error)
}

// Run executes a command line and returns its exit code. A panic is a failure like another:
// the exit code that Go gives it says something else here, as in reconcile --once.
func Run(ctx context.Context, env Env) (code int) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(env.Err, "error: a fault of sluice %s, please report it: panic: %v\n%s", env.Version, p, debug.Stack())
			code = ExitFailed
		}
	}()
	a := &app{Env: env}
	root := a.root() //nolint:contextcheck // commands take theirs from cobra
	root.SetArgs(env.Args)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	began := false
	noteBegin(root, &began)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if a.connected != nil {
		err = a.explained(ctx, err)
	}
	if !began { // words, numbers of words, flags that are missing: cobra's own refusals
		err = &usageError{err}
	}
	var ended *endedError
	if errors.As(err, &ended) {
		return ended.code
	}
	a.printError(err)
	var usage *usageError
	if errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFailed
}

// noteBegin notes when a command's own work begins.
func noteBegin(c *cobra.Command, began *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return run(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		noteBegin(sub, began)
	}
}

// app holds the flags that all commands share.
type app struct {
	Env
	url, key, project string
	json              bool

	connected *engineclient.Client // once a command has asked for it
	defaulted bool                 // its address is the default one
}

// usageError is a command line that cannot be meant.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// endedError carries the exit code of a wait that said all it had to say.
type endedError struct{ code int }

func (e *endedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Move live model traffic between two deployments of an endpoint, gated and never in limbo",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       a.Version,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.url, "engine", "", "address of the engine (SLUICE_ENGINE_URL, then TOGETHER_BASE_URL, then "+defaultEngine+")")
	f.StringVar(&a.key, "api-key", "", "API key (SLUICE_API_KEY, then TOGETHER_API_KEY); better given by the environment")
	f.StringVar(&a.project, "project", "", "project id (SLUICE_PROJECT, then TOGETHER_PROJECT_ID; default the key's own)")
	f.BoolVar(&a.json, "json", false, "print JSON")
	root.SetUsageFunc(withoutSwitchValues(root.UsageFunc()))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"declared", "From files and from Git:", []*cobra.Command{a.planCommand(), a.applyCommand(), a.reconcileCommand(), a.rehearseCommand(), a.policyCommand()}},
		{"live", "At an engine:", []*cobra.Command{a.deployCommand(), a.lsCommand(), a.getCommand(), a.rolloutCommand(), a.watchCommand(), a.eventsCommand(), a.updateCommand(), a.rmCommand()}},
		{"run", "To run an engine, and to try it:", []*cobra.Command{a.serveCommand(), a.keysCommand(), a.hardwareCommand(), a.configsCommand(), a.probeCommand(), a.modelserverCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	return root
}

// first returns the first environment variable that is set.
func (a *app) first(flag string, names ...string) string {
	if flag != "" {
		return flag
	}
	for _, n := range names {
		if v := strings.TrimSpace(a.Getenv(n)); v != "" {
			return v
		}
	}
	return ""
}

// client connects to the engine that flags or environment name.
func (a *app) client() (*engineclient.Client, error) {
	url := a.first(a.url, "SLUICE_ENGINE_URL", "TOGETHER_BASE_URL")
	if url == "" {
		url, a.defaulted = defaultEngine, true
	}
	if err := checkAddress("engine", url); err != nil {
		return nil, err
	}
	key := a.first(a.key, "SLUICE_API_KEY", "TOGETHER_API_KEY")
	if key == "" {
		return nil, usagef("no API key: set SLUICE_API_KEY (a new engine keeps its first one in DIR/first-key)")
	}
	c, err := engineclient.New(engineclient.Config{
		BaseURL: url, APIKey: key, Project: a.first(a.project, "SLUICE_PROJECT", "TOGETHER_PROJECT_ID"), UserAgent: "sluice/" + a.Version,
	})
	a.connected = c
	return c, err
}

func (a *app) printError(err error) {
	var e *api.Error
	if a.json {
		body := api.ErrorBody{Message: err.Error(), Error: api.ErrorDetail{Message: err.Error(), Type: "client_error"}}
		if errors.As(err, &e) {
			body.Error.Type, body.Error.Code = e.Type, &e.Code
		}
		_ = a.printJSON(body)
		return
	}
	var file *serve.FileError
	if errors.As(err, &file) { // a mistake a line
		for _, problem := range file.Problems {
			_ = render.Line(a.Err, "error: "+render.Inert(problem), a.options(time.Time{}))
		}
		return
	}
	_ = render.Line(a.Err, "error: "+render.Inert(err.Error()), a.options(time.Time{}))
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.Out, format, args...) }

func (a *app) options(now time.Time) render.Options {
	return render.Options{Now: now, Color: a.Color, Width: a.Width}
}
