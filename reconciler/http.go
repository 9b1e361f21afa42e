package reconciler

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
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
	mux.HandleFunc("GET /v1/history", r.keyed(r.serveHistory))
	mux.HandleFunc("GET /v1/stacks/{repository}/{stack}/plan", r.keyed(r.servePlan))
	mux.HandleFunc("GET /v1/stacks/{repository}/{stack}/asks/{id}", r.keyed(r.serveAsk))
	mux.HandleFunc("POST /v1/stacks/{repository}/{stack}/{verb}", r.keyed(r.takeAsk))
	mux.HandleFunc("POST /v1/repositories/{repository}/reconcile", r.keyed(r.reconcileNow))
	mux.Handle("POST /hooks/{repository}", r.hooks())
	return mux
}

// ready tells whether this process writes and its passes go well.
func (r *Reconciler) ready(w http.ResponseWriter, req *http.Request) {
	if err := r.ledger.mayWrite(); err != nil {
		text := "standing by"
		if lease, err := r.ledger.Holder(req.Context()); err == nil && lease.Holder.ID != r.ledger.who.ID {
			text += ": " + (&journal.Held{By: lease}).Error()
		}
		http.Error(w, text, http.StatusServiceUnavailable)
		return
	}
	for _, f := range r.followers {
		if h := f.health(); h.LastGood.IsZero() || h.Failures >= 3 {
			http.Error(w, "repository "+f.config.Name+": "+orElse(h.Error, "not looked at yet"), http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = io.WriteString(w, "ok\n")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// caller is whose key a request has.
type caller struct {
	name string
	role forge.Role
}

// isVerb reports whether something can be asked for at this door.
func isVerb(v Verb) bool {
	_, ok := usageOf(v)
	return ok && v != Help
}

// askable are the verbs of this door.
func askable() []string {
	var out []string
	for _, u := range usages {
		if isVerb(u.verb) {
			out = append(out, string(u.verb))
		}
	}
	return out
}

// check refuses what a comment would be refused for.
func (b askBody) check(v Verb) error {
	u, _ := usageOf(v)
	switch {
	case u.reason == reasonNeeded && b.Reason == "":
		return fmt.Errorf("%s needs a reason", v)
	case u.takes == takesDigest && len(strings.TrimPrefix(b.Digest, "sha256:")) < shortestDigest:
		return fmt.Errorf("%s needs the digest of a plan, at least %d hex digits of it", v, shortestDigest)
	case u.takes == takesRule && b.Rule == "":
		return fmt.Errorf("%s needs the name of a rule", v)
	case strings.ContainsFunc(b.Reason+b.Selector+b.Rule+b.Digest+b.ID, unicode.IsControl):
		return errors.New("a text has a control character")
	case u.takes == takesDigest && strings.Trim(strings.TrimPrefix(b.Digest, "sha256:"), "0123456789abcdef") != "":
		return fmt.Errorf("%s needs the digest of a plan, which is hex digits in lower case", v)
	case len(b.Reason) > longestReason, len(b.Selector) > longestArgued, len(b.Rule) > longestArgued, len(b.Digest) > longestArgued, len(b.ID) > longestArgued:
		return fmt.Errorf("a text is too long: at most %d bytes for a reason and %d for a name", longestReason, longestArgued)
	}
	return nil
}

// keyed lets a request through that has a key. Every key may read; what more it may, the
// permission table says.
func (r *Reconciler) keyed(next func(http.ResponseWriter, *http.Request, caller)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		secret, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		if !ok || secret == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "a key is needed: Authorization: Bearer KEY")
			return
		}
		who, err := r.whose(secret)
		switch {
		case err != nil:
			r.log.Error("the keys of the HTTP door cannot be read", "error", err)
			refuse(w, http.StatusServiceUnavailable, "the keys cannot be read")
		case who.name == "":
			refuse(w, http.StatusUnauthorized, "the key is not known")
		case who.role < forge.Read:
			refuse(w, http.StatusForbidden, fmt.Sprintf("key %s has role %s, which sees nothing", who.name, who.role))
		default:
			next(w, req, who)
		}
	}
}

// whose finds the key of a secret, in constant time for each.
func (r *Reconciler) whose(secret string) (caller, error) {
	given := sha256.Sum256([]byte(secret))
	var found caller
	for _, k := range r.config.HTTP.Keys {
		want, err := k.Secret.Read(r.getenv)
		if err != nil {
			return caller{}, fmt.Errorf("key %s: %w", k.Name, err)
		}
		sum := sha256.Sum256([]byte(want))
		if want != "" && subtle.ConstantTimeCompare(given[:], sum[:]) == 1 {
			found = caller{k.Name, k.Role}
		}
	}
	return found, nil
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
	answerJSON(w, http.StatusOK, lines)
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
	var there []string
	for _, f := range r.followers {
		for _, c := range f.config.Stacks {
			there = append(there, f.key(c.Name).String())
		}
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("no stack is named %q; there are: %s", k, clip(joined(there), 1000)))
}

// names are those of the repositories that are followed.
func (r *Reconciler) names() []string {
	var out []string
	for _, f := range r.followers {
		out = append(out, f.config.Name)
	}
	return out
}

// askBody is the body of a request that asks for something.
type askBody struct {
	Reason   string `json:"reason"`
	Selector string `json:"selector"` // endpoint, address or rollout
	Digest   string `json:"digest"`
	Rule     string `json:"rule"`
	ID       string `json:"id"` // the caller's own, so that a retry is not a second ask
}

// takeAsk records what a key asks for. The answer is 202 with an id; the next pass does
// it, and GET …/asks/ID tells what became of it.
func (r *Reconciler) takeAsk(w http.ResponseWriter, req *http.Request, who caller) {
	f, c, ok := r.find(req)
	verb := Verb(req.PathValue("verb"))
	if ok && !isVerb(verb) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("%q cannot be asked for; there are: %s", verb, joined(askable())))
		return
	}
	if !ok {
		r.noStack(w, req)
		return
	}
	var body askBody
	dec := json.NewDecoder(http.MaxBytesReader(w, req.Body, mostBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, "the body is not what is asked for: "+err.Error())
		return
	}
	if err := body.check(verb); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	person := Person{Name: who.name, Door: ByKey}
	allowed, err := f.permissions().Allows(req.Context(), person, verb, KeyRank(who.role))
	if err == nil && allowed.OK && verb == Override {
		allowed, err = f.mayLift(req.Context(), f.stackJudged(f.key(c.Name)), body.Rule, person, KeyRank(who.role))
	}
	if err != nil || !allowed.OK {
		refuse(w, http.StatusForbidden, orElse(allowed.Why, "it cannot be found out what this key may"))
		return
	}
	if err := r.ledger.mayWrite(); err != nil {
		refuse(w, http.StatusServiceUnavailable, "this process stands by; ask the one that holds the lease")
		return
	}
	if body.ID == "" {
		body.ID = token()
	}
	a := askRecord{
		ID: askID(who, body.ID), Stack: c.Name, Verb: verb, Selector: body.Selector, Digest: body.Digest, Rule: body.Rule, Reason: body.Reason,
		Who: who.name, Via: "http", At: r.now(),
	}
	if err := r.recordAsk(req.Context(), f.key(c.Name), a); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	f.hasten()
	answerJSON(w, http.StatusAccepted, AskStatus{ID: body.ID, Verb: verb, At: a.At})
}

// askID is an ask's name: the id that a caller gives is the caller's own.
func askID(who caller, id string) string { return "http " + who.name + " " + id }

// recordAsk records an ask once, whatever became of an earlier try.
func (r *Reconciler) recordAsk(ctx context.Context, k StackKey, a askRecord) error {
	was, err := read[askRecord](ctx, r.ledger, askKey(k, a.ID))
	if err != nil || was.ID != "" {
		return err
	}
	return r.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(askKey(k, a.ID), a)}})
}

// AskStatus is what became of an ask.
type AskStatus struct {
	ID      string     `json:"id"`
	Verb    Verb       `json:"verb"`
	At      time.Time  `json:"at"`
	Ended   *time.Time `json:"ended,omitempty"` // absent while it is not done
	Answer  string     `json:"answer,omitempty"`
	Refused string     `json:"refused,omitempty"` // why it was not done
}

func (r *Reconciler) serveAsk(w http.ResponseWriter, req *http.Request, who caller) {
	f, c, ok := r.find(req)
	if !ok {
		r.noStack(w, req)
		return
	}
	a, err := read[askRecord](req.Context(), r.ledger, askKey(f.key(c.Name), askID(who, req.PathValue("id"))))
	if err != nil || a.ID == "" {
		refuse(w, http.StatusNotFound, "there is no such ask")
		return
	}
	answerJSON(w, http.StatusOK, AskStatus{ID: req.PathValue("id"), Verb: a.Verb, At: a.At, Ended: instant(a.Ended), Answer: a.Answer, Refused: a.Refused})
}

// reconcileNow makes the next pass of a repository come at once.
func (r *Reconciler) reconcileNow(w http.ResponseWriter, req *http.Request, who caller) {
	for _, f := range r.followers {
		if f.config.Name != req.PathValue("repository") {
			continue
		}
		allowed, err := f.permissions().Allows(req.Context(), Person{Name: who.name, Door: ByKey}, Replan, KeyRank(who.role))
		if err != nil || !allowed.OK {
			refuse(w, http.StatusForbidden, orElse(allowed.Why, "it cannot be found out what this key may"))
			return
		}
		f.hasten()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("no repository is named %q; there are: %s", req.PathValue("repository"), joined(r.names())))
}

// permissions are the repository's table, or the defaults.
func (f *follower) permissions() Permissions {
	if f.config.Forge == nil {
		return nil
	}
	return f.config.Forge.Permissions
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
