package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// mostBody bounds what the HTTP door reads of a request.
const mostBody = 64 << 10

// Handler is the reconciler's HTTP door. What changes something takes a key, and is asked
// of the same permission table as a comment; it is done by the next pass and never by the
// request.
func (r *Reconciler) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", r.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.meters.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /v1/status", r.keyed(r.serveStatus))
	mux.HandleFunc("GET /v1/history", r.keyed(r.serveHistory, "repository", "stack", "endpoint", "kind", "before", "limit"))
	mux.HandleFunc("GET /v1/stacks/{repository}/{stack}/plan", r.keyed(r.servePlan))
	mux.HandleFunc("GET /v1/stacks/{repository}/{stack}/asks/{id}", r.keyed(r.serveAsk))
	mux.HandleFunc("POST /v1/stacks/{repository}/{stack}/{verb}", r.keyed(r.takeAsk))
	mux.HandleFunc("POST /v1/repositories/{repository}/reconcile", r.keyed(r.reconcileNow))
	mux.Handle("POST /hooks/{repository}", r.hooks())
	mux.Handle("/", astray(mux))
	return mux
}

// ready tells whether this process writes and its passes go well.
func (r *Reconciler) ready(w http.ResponseWriter, req *http.Request) {
	if err := r.ledger.mayWrite(); err != nil {
		refuse(w, http.StatusServiceUnavailable, r.standingBy(req.Context()))
		return
	}
	for _, f := range r.followers {
		if h := f.health(); h.LastGood.IsZero() || h.Failures >= 3 {
			refuse(w, http.StatusServiceUnavailable, "repository "+f.config.Name+": "+orElse(h.Error, "not looked at yet"))
			return
		}
	}
	_, _ = io.WriteString(w, "ok\n")
}

// standingBy says that this process does not write, and who does.
func (r *Reconciler) standingBy(ctx context.Context) string {
	text := "standing by"
	if lease, err := r.ledger.Holder(ctx); err == nil && lease.Holder.ID != r.ledger.who.ID {
		text += ": " + (&journal.Held{By: lease}).Error()
	}
	return text
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func refuse(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, struct {
		Error string `json:"error"`
	}{message})
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}

func (r *Reconciler) serveStatus(w http.ResponseWriter, req *http.Request, _ caller) {
	s, err := r.Status(req.Context())
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	answerJSON(w, http.StatusOK, s)
}

func (r *Reconciler) serveHistory(w http.ResponseWriter, req *http.Request, _ caller) {
	v := req.URL.Query()
	q := journal.Query{Repository: v.Get("repository"), Stack: v.Get("stack"), Endpoint: v.Get("endpoint"), Kind: v.Get("kind"), Most: 100}
	for name, into := range map[string]func(int64){"before": func(n int64) { q.Before = n }, "limit": func(n int64) { q.Most = int(min(n, 1000)) }} {
		if s := v.Get(name); s != "" {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < 1 {
				refuse(w, http.StatusBadRequest, fmt.Sprintf("%s=%q: want a whole number from 1", name, s))
				return
			}
			into(n)
		}
	}
	lines, err := r.History(req.Context(), q)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	if q.Repository != "" && len(lines) == 0 && !slices.Contains(r.names(), q.Repository) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("no repository is named %q, now or in the history; there are: %s", q.Repository, joined(r.names())))
		return
	}
	if q.Stack != "" && len(lines) == 0 && !r.hasStack(q.Repository, q.Stack) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("no stack is named %q, now or in the history; there are: %s", q.Stack, clip(joined(r.stacks()), 1000)))
		return
	}
	if q.Kind != "" && len(lines) == 0 && !slices.ContainsFunc(EventKinds, func(k EventKind) bool { return k.Kind == q.Kind }) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("no event has the kind %q, now or in the history; %s", clip(q.Kind, 100), kindHint(q.Kind)))
		return
	}
	answerJSON(w, http.StatusOK, lines)
}

// hasStack reports whether a repository, or any when it is empty, has a stack of a name.
func (r *Reconciler) hasStack(repository, stack string) bool {
	return slices.ContainsFunc(r.followers, func(f *follower) bool {
		return (repository == "" || f.config.Name == repository) && slices.ContainsFunc(f.config.Stacks, func(c StackConfig) bool { return c.Name == stack })
	})
}

// stacks are the names of all that are followed.
func (r *Reconciler) stacks() []string {
	var out []string
	for _, f := range r.followers {
		for _, c := range f.config.Stacks {
			out = append(out, f.key(c.Name).String())
		}
	}
	return out
}

// find is the follower and the stack that a path names.
func (r *Reconciler) find(req *http.Request) (*follower, StackConfig, bool) {
	for _, f := range r.followers {
		if f.config.Name != req.PathValue("repository") {
			continue
		}
		for _, c := range f.config.Stacks {
			if c.Name == req.PathValue("stack") {
				return f, c, true
			}
		}
	}
	return nil, StackConfig{}, false
}

// noStack tells which stacks there are.
func (r *Reconciler) noStack(w http.ResponseWriter, req *http.Request) {
	k := StackKey{req.PathValue("repository"), req.PathValue("stack")}
	refuse(w, http.StatusNotFound, fmt.Sprintf("no stack is named %q; there are: %s", k, clip(joined(r.stacks()), 1000)))
}

// names are those of the repositories that are followed.
func (r *Reconciler) names() []string {
	var out []string
	for _, f := range r.followers {
		out = append(out, f.config.Name)
	}
	return out
}

// PlanStatus is the newest plan of a stack.
type PlanStatus struct {
	At     time.Time       `json:"at"`
	Commit string          `json:"commit"`
	Digest string          `json:"digest"`
	Text   string          `json:"text"`           // as sluice plan prints it
	Drift  []driftLine     `json:"drift"`          // what Git has not made
	Plan   json.RawMessage `json:"plan,omitempty"` // as terraform show -json
}

func (r *Reconciler) servePlan(w http.ResponseWriter, req *http.Request, _ caller) {
	f, c, ok := r.find(req)
	if !ok {
		r.noStack(w, req)
		return
	}
	s, ok, err := f.planStatus(req.Context(), c)
	switch {
	case err != nil:
		refuse(w, http.StatusInternalServerError, err.Error())
	case !ok:
		refuse(w, http.StatusNotFound, "this process has not planned the stack yet")
	default:
		answerJSON(w, http.StatusOK, s)
	}
}
