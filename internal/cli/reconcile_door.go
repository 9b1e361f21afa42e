package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
)

// door is a running reconciler's HTTP door.
type door struct{ url, key string }

// mostAnswer bounds what is read of an answer.
const mostAnswer = 64 << 20

// reconcileDoorCommands are the verbs that talk to a running reconciler.
func (a *app) reconcileDoorCommands() []*cobra.Command {
	var d door
	with := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&d.url, "reconciler", "", "address of the reconciler (SLUICE_RECONCILER_URL)")
		c.Flags().StringVar(&d.key, "key", "", "key of its HTTP door (SLUICE_RECONCILER_KEY); better given by the environment")
		return c
	}
	proceed := with(a.reconcileAskCommand(&d, reconciler.Continue, "resume REPOSITORY/STACK", "End a suspension"))
	proceed.Aliases = []string{"continue"} // as comments call it, where resume is a rollout's
	return []*cobra.Command{
		with(a.reconcileHealthCommand(&d)),
		with(&cobra.Command{Use: "status", Short: "Where everything is, and what each stack waits for", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			var s reconciler.Status
			if err := a.ask(c.Context(), d, http.MethodGet, "/v1/status", nil, &s); err != nil {
				return err
			}
			return a.showStatus(s)
		}}),
		with(a.reconcileHistoryCommand(&d)),
		with(&cobra.Command{Use: "now REPOSITORY", Short: "Make a pass over a repository at once", Args: exactWords, RunE: func(c *cobra.Command, args []string) error {
			if err := a.ask(c.Context(), d, http.MethodPost, "/v1/repositories/"+url.PathEscape(args[0])+"/reconcile", nil, nil); err != nil {
				return err
			}
			a.printf("the next pass over %s comes at once\n", render.Inert(args[0]))
			return nil
		}}),
		with(a.reconcilePlanCommand(&d, "diff", "What the followed commit would change, as it was planned last")),
		with(a.reconcilePlanCommand(&d, "drift", "What stands at the engine and Git has not made")),
		with(a.reconcileAskCommand(&d, reconciler.Suspend, "suspend REPOSITORY/STACK", "Start nothing of a stack; what runs is watched on")),
		proceed,
		with(a.reconcileAskCommand(&d, reconciler.Approve, "approve REPOSITORY/STACK DIGEST", "Let the plan with this digest be applied")),
		with(a.reconcileAskCommand(&d, reconciler.Override, "override REPOSITORY/STACK RULE", "Lift a policy's denial of the plan that stands")),
		with(a.reconcileAskCommand(&d, reconciler.Retry, "retry REPOSITORY/STACK", "Allow again what a person has canceled or taken back")),
		with(a.reconcileAskCommand(&d, reconciler.Reverse, "reverse REPOSITORY/STACK", "Take a rollout back, step by step")),
	}
}

// reconcileHealthCommand asks what takes no key, so that it is a health check in a
// container that has nothing but this binary.
func (a *app) reconcileHealthCommand(d *door) *cobra.Command {
	c := &cobra.Command{Use: "health", Short: "Whether it answers (exit code 0 or 1); with --ready, whether its passes go well", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		path := "/healthz"
		if ready, err := c.Flags().GetBool("ready"); err != nil || ready {
			path = "/readyz"
		}
		text, err := a.reach(c.Context(), *d, http.MethodGet, path, nil)
		if err == nil {
			a.printf("%s\n", render.Inert(strings.TrimSpace(string(text))))
		}
		return err
	}}
	c.Flags().Bool("ready", false, "also whether it holds the lease and its passes go well; one that stands by is not ready")
	return c
}

func (a *app) reconcileHistoryCommand(d *door) *cobra.Command {
	var stack, endpoint string
	limit := 50
	c := &cobra.Command{Use: "history [REPOSITORY[/STACK]]", Short: "What happened, newest first", Args: cobra.MaximumNArgs(1), RunE: func(c *cobra.Command, args []string) error {
		q := url.Values{"limit": {fmt.Sprint(limit)}}
		if len(args) > 0 {
			repository, named, _ := strings.Cut(args[0], "/")
			q.Set("repository", repository)
			if stack == "" {
				stack = named
			}
		}
		if stack != "" {
			q.Set("stack", stack)
		}
		if endpoint != "" {
			q.Set("endpoint", endpoint)
		}
		var lines []reconciler.HistoryLine
		if err := a.ask(c.Context(), *d, http.MethodGet, "/v1/history?"+q.Encode(), nil, &lines); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(lines)
		}
		rows := [][]string{{"AT", "STACK", "COMMIT", "WHAT"}}
		for _, l := range lines {
			name := l.Repository
			if l.Stack != "" {
				name += "/" + l.Stack
			}
			rows = append(rows, []string{l.At.UTC().Format(time.RFC3339), name, l.Commit[:min(10, len(l.Commit))], l.Text})
		}
		return render.Table(a.Out, rows, a.options(time.Now()))
	}}
	c.Flags().StringVar(&stack, "stack", "", "of this stack only")
	c.Flags().StringVar(&endpoint, "endpoint", "", "of this endpoint only")
	c.Flags().IntVar(&limit, "limit", 50, "lines, 1 to 1000")
	return c
}

// doorWords are examples of what the verbs of sluice reconcile take.
var doorWords = map[string]string{"REPOSITORY": "models", "REPOSITORY/STACK": "models/prod", "DIGEST": "3f9c1a2b4d5e", "RULE": "no-weekend", "ENDPOINT": "chat"}

// exactWords refuses more or fewer words than a command's use names, with an example.
func exactWords(c *cobra.Command, args []string) error {
	want := strings.Fields(c.Use)[1:]
	if len(args) == len(want) {
		return nil
	}
	example := c.CommandPath()
	for _, w := range want {
		example += " " + doorWords[w]
	}
	return usagef("%s takes %s, and %s: for example %s", c.CommandPath(), strings.Join(want, " "), count1(len(args), "word is given", "words are given"), example)
}

// stackPath is the path of a stack at the door.
func stackPath(name string) (string, error) {
	repository, stack, ok := strings.Cut(name, "/")
	if !ok || repository == "" || stack == "" {
		return "", usagef("%q: name a stack as REPOSITORY/STACK, for example models/prod; sluice reconcile status lists them", name)
	}
	return "/v1/stacks/" + url.PathEscape(repository) + "/" + url.PathEscape(stack), nil
}

func (a *app) reconcilePlanCommand(d *door, verb, short string) *cobra.Command {
	return &cobra.Command{Use: verb + " REPOSITORY/STACK", Short: short, Args: exactWords, RunE: func(c *cobra.Command, args []string) error {
		path, err := stackPath(args[0])
		if err != nil {
			return err
		}
		var p reconciler.PlanStatus
		if err := a.ask(c.Context(), *d, http.MethodGet, path+"/plan", nil, &p); err != nil {
			return err
		}
		switch {
		case a.json && verb == "diff":
			return a.printJSON(p)
		case a.json:
			return a.printJSON(p.Drift)
		case verb == "diff":
			a.printf("%s", p.Text)
			if p.Digest == "" {
				return &endedError{ExitFailed} // there is no plan: the text says why
			}
			return nil
		}
		return reconciler.RenderDrift(a.Out, p.Drift, a.options(time.Now()))
	}}
}

// reconcileAskCommand asks for something that the next pass does, and waits for its answer.
func (a *app) reconcileAskCommand(d *door, verb reconciler.Verb, use, short string) *cobra.Command {
	var reason, selector string
	c := &cobra.Command{Use: use, Short: short, Args: exactWords, RunE: func(c *cobra.Command, args []string) error {
		path, err := stackPath(args[0])
		if err != nil {
			return err
		}
		if strings.TrimSpace(reason) == "" && reconciler.NeedsReason(verb) {
			return usagef("say why: %s takes --reason \"why\", which is told to everybody", c.CommandPath())
		}
		body := map[string]string{"reason": reason, "selector": selector}
		switch verb {
		case reconciler.Approve:
			body["digest"] = args[1]
		case reconciler.Override:
			body["rule"] = args[1]
		default:
		}
		return a.askFor(c.Context(), *d, path, verb, body)
	}}
	c.Flags().StringVar(&reason, "reason", "", "why; told to everybody")
	c.Flags().StringVar(&selector, "endpoint", "", "endpoint, address or rollout, where a stack has several")
	return c
}

func (a *app) askFor(ctx context.Context, d door, path string, verb reconciler.Verb, body map[string]string) error {
	var s reconciler.AskStatus
	if err := a.ask(ctx, d, http.MethodPost, path+"/"+string(verb), body, &s); err != nil {
		return err
	}
	for s.Ended == nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it was asked for, as %s, and is not done yet", s.ID)
		case <-time.After(300 * time.Millisecond):
		}
		if err := a.ask(ctx, d, http.MethodGet, path+"/asks/"+url.PathEscape(s.ID), nil, &s); err != nil {
			return err
		}
	}
	if a.json {
		if err := a.printJSON(s); err != nil {
			return err
		}
	}
	if s.Refused != "" {
		return errors.New(s.Refused)
	}
	if !a.json {
		a.printf("%s\n", render.Inert(s.Answer))
	}
	return nil
}

// ask sends one request to the door, and reads its answer as JSON.
func (a *app) ask(ctx context.Context, d door, method, path string, body, into any) error {
	if a.first(d.key, "SLUICE_RECONCILER_KEY") == "" {
		return usagef("no key for the reconciler's door: set SLUICE_RECONCILER_KEY (a key block in http { … } names who may use it)")
	}
	b, err := a.reach(ctx, d, method, path, body)
	if err != nil || into == nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s does not answer as a reconciler does: %w", a.first(d.url, "SLUICE_RECONCILER_URL"), err)
	}
	return nil
}

// reach sends one request to the door, with the key when there is one.
func (a *app) reach(ctx context.Context, d door, method, path string, body any) ([]byte, error) {
	address := strings.TrimRight(a.first(d.url, "SLUICE_RECONCILER_URL"), "/")
	if address == "" {
		return nil, usagef("say where the reconciler is: set SLUICE_RECONCILER_URL, or give --reconciler (listen in http { … } is its address)")
	}
	if err := checkAddress("reconciler", address); err != nil {
		return nil, err
	}
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address+path, send)
	if err != nil {
		return nil, err
	}
	if key := a.first(d.key, "SLUICE_RECONCILER_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no reconciler answers at %s: %w", address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return nil, fmt.Errorf("read what the reconciler at %s answers: %w", address, err)
	}
	if resp.StatusCode < 300 {
		return b, nil
	}
	var no struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(b, &no) != nil || no.Error == "" {
		no.Error = strings.TrimSpace(string(b[:min(len(b), 300)]))
	}
	if no.Error == "" {
		no.Error = http.StatusText(resp.StatusCode)
	}
	return nil, fmt.Errorf("the reconciler refused (%d): %s", resp.StatusCode, render.Inert(no.Error))
}
