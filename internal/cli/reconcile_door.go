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
	return []*cobra.Command{
		with(&cobra.Command{Use: "status", Short: "Where everything is", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			var s reconciler.Status
			if err := a.ask(c.Context(), d, http.MethodGet, "/v1/status", nil, &s); err != nil {
				return err
			}
			return a.showStatus(s)
		}}),
		with(a.reconcileHistoryCommand(&d)),
		with(&cobra.Command{Use: "now REPOSITORY", Short: "Make a pass over a repository at once", Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			return a.ask(c.Context(), d, http.MethodPost, "/v1/repositories/"+url.PathEscape(args[0])+"/reconcile", nil, nil)
		}}),
		with(a.reconcilePlanCommand(&d, "diff", "What the followed commit would change, as it was planned last")),
		with(a.reconcilePlanCommand(&d, "drift", "What stands at the engine and Git has not made")),
		with(a.reconcileAskCommand(&d, reconciler.Suspend, "suspend REPOSITORY/STACK", "Start nothing of a stack; what runs is watched on")),
		with(a.reconcileAskCommand(&d, reconciler.Continue, "resume REPOSITORY/STACK", "End a suspension")),
		with(a.reconcileAskCommand(&d, reconciler.Approve, "approve REPOSITORY/STACK DIGEST", "Let the plan with this digest be applied")),
		with(a.reconcileAskCommand(&d, reconciler.Override, "override REPOSITORY/STACK RULE", "Lift a policy's denial of the plan that stands")),
		with(a.reconcileAskCommand(&d, reconciler.Retry, "retry REPOSITORY/STACK", "Allow again what a person has cancelled or taken back")),
		with(a.reconcileAskCommand(&d, reconciler.Reverse, "reverse REPOSITORY/STACK", "Take a rollout back, step by step")),
	}
}

func (a *app) reconcileHistoryCommand(d *door) *cobra.Command {
	var stack, endpoint string
	limit := 50
	c := &cobra.Command{Use: "history [REPOSITORY]", Short: "What happened, newest first", Args: cobra.MaximumNArgs(1), RunE: func(c *cobra.Command, args []string) error {
		q := url.Values{"limit": {fmt.Sprint(limit)}}
		if len(args) > 0 {
			q.Set("repository", args[0])
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

// stackPath is the path of a stack at the door.
func stackPath(name string) (string, error) {
	repository, stack, ok := strings.Cut(name, "/")
	if !ok || repository == "" || stack == "" {
		return "", usagef("%q: name a stack as REPOSITORY/STACK", name)
	}
	return "/v1/stacks/" + url.PathEscape(repository) + "/" + url.PathEscape(stack), nil
}

func (a *app) reconcilePlanCommand(d *door, verb, short string) *cobra.Command {
	return &cobra.Command{Use: verb + " REPOSITORY/STACK", Short: short, Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
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
			return nil
		}
		return reconciler.RenderDrift(a.Out, p.Drift, a.options(time.Now()))
	}}
}

// reconcileAskCommand asks for something that the next pass does, and waits for its answer.
func (a *app) reconcileAskCommand(d *door, verb reconciler.Verb, use, short string) *cobra.Command {
	var reason, selector string
	words := len(strings.Fields(use)) - 1
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(words), RunE: func(c *cobra.Command, args []string) error {
		path, err := stackPath(args[0])
		if err != nil {
			return err
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

// ask sends one request to the door.
func (a *app) ask(ctx context.Context, d door, method, path string, body, into any) error {
	address := strings.TrimRight(a.first(d.url, "SLUICE_RECONCILER_URL"), "/")
	key := a.first(d.key, "SLUICE_RECONCILER_KEY")
	if address == "" || key == "" {
		return usagef("say where the reconciler is and with which key: SLUICE_RECONCILER_URL and SLUICE_RECONCILER_KEY")
	}
	if err := checkAddress(address); err != nil {
		return err
	}
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address+path, send)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the reconciler: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("ask the reconciler: %w", err)
	}
	if resp.StatusCode >= 300 {
		var no struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(b, &no) != nil || no.Error == "" {
			no.Error = http.StatusText(resp.StatusCode)
		}
		return fmt.Errorf("the reconciler refused (%d): %s", resp.StatusCode, render.Inert(no.Error))
	}
	if into == nil || len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s does not answer as a reconciler does: %w", address, err)
	}
	return nil
}
