package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

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
	case NeedsReason(v) && b.Reason == "":
		return fmt.Errorf("%s needs a reason: {\"reason\": \"why\"}", v)
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
	body, err := readBody(w, req)
	if err == nil {
		err = body.check(verb)
	}
	if err != nil {
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
		refuse(w, http.StatusServiceUnavailable, "this process is "+r.standingBy(req.Context())+"; ask that one")
		return
	}
	if body.ID == "" {
		body.ID = token()
	}
	a := askRecord{
		ID: askID(who, body.ID), Stack: c.Name, Verb: verb, Selector: body.Selector, Digest: body.Digest, Rule: body.Rule, Reason: body.Reason,
		Who: who.name, Via: viaHTTP, At: r.now(),
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
		if err := r.ledger.mayWrite(); err != nil {
			refuse(w, http.StatusServiceUnavailable, "this process is "+r.standingBy(req.Context())+"; ask that one")
			return
		}
		f.hasten()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("no repository is named %q; there are: %s", req.PathValue("repository"), joined(r.names())))
}
