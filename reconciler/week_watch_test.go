package reconciler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// watch sees every call at the engine, every notification, and after each pass the forge
// and the journal. What must never be it keeps in seen.
type watch struct {
	w         *week
	seen      []string
	endpoints map[string]string     // id by name
	houses    map[string]*weekHouse // by the endpoint's id
	made      map[string][]string   // rollouts by the endpoint's id, oldest first
	sent      map[string]submission // newest of each endpoint and digest
	foreign   map[string]bool       // rollouts that somebody else has made
	mu        sync.Mutex
	notified  map[string]int // how often, by id; under mu, since places are served at once
	lost      map[string]int // answers of a forge that may have been lost
	deaths    int
	passes    int
	count     struct{ writes, rollouts, statuses, comments int }
}

// submission is a rollout that the reconciler has made.
type submission struct {
	words, backs int // of the house, when it was made
	at           time.Time
}

func newWatch(w *week) *watch {
	return &watch{
		w: w, endpoints: map[string]string{}, houses: map[string]*weekHouse{}, made: map[string][]string{}, sent: map[string]submission{},
		foreign: map[string]bool{}, notified: map[string]int{}, lost: map[string]int{},
	}
}

// carry lets a process's call through to the engine and judges what it asks for.
func (a *watch) carry(p *process, req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	writes := req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "preview")
	if writes {
		a.count.writes++
		a.mayWrite(p, req)
	}
	res, err := a.w.RoundTrip(req)
	if err != nil {
		return res, err
	}
	answer, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(answer))
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if a.w.wrong.unseen != nil && req.Method == http.MethodGet && parts[len(parts)-1] == "rollouts" {
		answer = without(answer, func(r api.Rollout) bool { return a.w.wrong.unseen(a.w, r) })
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
	}
	if writes {
		a.wrote(req.Method, parts, body, res.StatusCode, answer)
	}
	return res, nil
}

// mayWrite judges whether a process may write now: it holds the lease.
func (a *watch) mayWrite(p *process, req *http.Request) {
	l, err := a.w.journal.Holder(req.Context())
	if err != nil || l.Holder.ID != p.r.ledger.who.ID || !a.w.now.Before(l.Expires) {
		a.w.fail("process %d writes (%s %s) without the lease", p.n, req.Method, req.URL.Path)
	}
}

// wrote takes in a write and judges it.
func (a *watch) wrote(method string, parts []string, body []byte, status int, answer []byte) {
	last := parts[len(parts)-1]
	switch {
	case method == http.MethodPost && last == "endpoints" && status < 300:
		var ep api.Endpoint
		_ = json.Unmarshal(answer, &ep)
		a.meet(ep)
		return
	case method == http.MethodPost && last == "rollouts":
		a.submitted(parts[len(parts)-2], body, status, answer)
	case method == http.MethodPost && last == "start":
		if h := a.houses[parts[len(parts)-4]]; h != nil {
			a.mayApply(h, "start", parts[len(parts)-2])
		}
		return
	case method == http.MethodPost && slices.Contains([]string{"pause", "resume", "promote", "cancel"}, last):
		return // a person's word
	}
	for i, part := range parts {
		if part == "endpoints" && i+1 < len(parts) && (method != http.MethodPatch || !bytes.Contains(body, []byte("owner"))) && last != "rollouts" {
			if h := a.houses[parts[i+1]]; h != nil {
				a.mayApply(h, method, "")
			}
		}
	}
}

func (a *watch) meet(ep api.Endpoint) {
	for _, r := range a.w.repos {
		for _, h := range r.houses {
			if strings.HasSuffix(ep.Name, "/"+h.name) {
				a.endpoints[h.name], a.houses[ep.ID] = ep.ID, h
			}
		}
	}
}

// mayApply judges whether something of a stack may be applied now: it is neither frozen
// nor suspended. What a person has asked to take back may.
func (a *watch) mayApply(h *weekHouse, what, rollout string) {
	if rollout != "" && a.isBack(h, rollout) {
		return
	}
	k := StackKey{h.repo.name, h.stack}
	for _, z := range a.w.config.Freezes {
		if _, frozen := z.Frozen(a.w.now); frozen && z.Covers(k) {
			a.w.fail("%s is written to (%s) during the freeze %s", h.name, what, z.Name)
		}
	}
	s, err := read[stackRecord](a.w.t.Context(), a.w.journal, stackKey(k))
	if err == nil && s.Suspended != nil && !a.goesOn(k) {
		a.w.fail("%s is written to (%s) while %s is suspended", h.name, what, k)
	}
}

// goesOn reports whether somebody has asked to end a suspension, and the pass that does it
// has not been recorded yet.
func (a *watch) goesOn(k StackKey) bool {
	asks, err := readAll[askRecord](a.w.t.Context(), a.w.journal, journal.Key{Kind: kindAsk, Repository: k.Repository, Stack: k.Stack})
	return err == nil && slices.ContainsFunc(asks, func(x askRecord) bool { return x.Verb == Continue && x.Ended.IsZero() })
}

func (a *watch) isBack(h *weekHouse, rollout string) bool {
	live, err := a.w.boss.GetRollout(a.w.t.Context(), a.endpoints[h.name], rollout)
	return err == nil && live.Sluice != nil && strings.HasPrefix(live.Sluice.Origin, "reverse of")
}

// submitted judges a rollout that the reconciler makes: none beside another of its own,
// and the same spec again only on a word of Git or of a person.
func (a *watch) submitted(endpoint string, body []byte, status int, answer []byte) {
	h := a.houses[endpoint]
	var spec api.RolloutSpec
	_ = json.Unmarshal(body, &spec)
	if h == nil || spec.Sluice == nil {
		return
	}
	if status == http.StatusConflict {
		a.w.fail("%s: a rollout is submitted beside one that is under way: %s", h.name, answer)
		return
	}
	if status >= 300 {
		return
	}
	var live api.Rollout
	_ = json.Unmarshal(answer, &live)
	if slices.Contains(a.made[endpoint], live.ID) {
		return // the engine has answered with the one that an earlier try has made
	}
	a.count.rollouts++
	for _, id := range a.made[endpoint] {
		other, err := a.w.boss.GetRollout(a.w.t.Context(), endpoint, id)
		if err == nil && !engineclient.Terminal(other.State) {
			a.w.fail("%s: %s is made while %s is under way", h.name, live.ID, other.ID)
		}
	}
	a.made[endpoint] = append(a.made[endpoint], live.ID)
	back := strings.HasPrefix(spec.Sluice.Origin, "reverse of")
	if !back {
		a.mayApply(h, "a rollout", "")
	}
	key := fmt.Sprint(endpoint, " ", spec.Sluice.Digest, " ", back)
	if before, again := a.sent[key]; again && (back && before.backs == h.backs || !back && before.words == h.words) {
		a.w.fail("%s: spec %s is submitted a second time (%s, first at %s), and nobody has asked for it", h.name, spec.Sluice.Digest, spec.Sluice.Origin, before.at.Format(time.DateTime))
	}
	a.sent[key] = submission{words: h.words, backs: h.backs, at: a.w.now}
	a.w.log("%s: %s is submitted: %s", h.name, live.ID, spec.Sluice.Origin)
}

// underWay is the rollout of a house that is not over.
func (a *watch) underWay(h *weekHouse) (api.Rollout, bool) {
	id := a.endpoints[h.name]
	if id == "" {
		return api.Rollout{}, false
	}
	live, ok, err := a.w.boss.ActiveRollout(a.w.t.Context(), id)
	if ok && err == nil && !slices.Contains(a.made[id], live.ID) {
		a.foreign[live.ID] = true
	}
	return live, ok && err == nil
}

// Write takes in notifications: one JSON text a line. Each is told once to each place.
func (a *watch) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var e struct{ ID, Kind string }
	if err := json.Unmarshal(line, &e); err != nil {
		a.w.fail("a notification that cannot be read: %v", err)
	}
	a.notified[e.ID]++
	places := 1
	if strings.HasPrefix(e.Kind, "rollout.") {
		places = 2
	}
	if a.notified[e.ID] > places {
		a.w.fail("notification %s (%s) is sent %d times to %d places", e.ID, e.Kind, a.notified[e.ID], places)
	}
	return len(line), nil
}

// pass looks at the forges and the journal after a pass.
func (a *watch) pass() {
	a.passes++
	if a.passes%20 != 0 && !a.w.mending {
		return
	}
	a.forges()
	records, intents, entries := a.w.journal.Size()
	things := len(a.w.repos) * 4
	for _, kind := range []string{"notify", "notify_sent"} { // those of the outbox go with the events of a month
		sent, err := readAll[json.RawMessage](a.w.t.Context(), a.w.journal, journal.Key{Kind: kind})
		if records -= len(sent); err != nil || len(sent) > 2*len(a.notified)+200 {
			a.w.fail("the journal has %d records of the outbox for %d notifications: %v", len(sent), len(a.notified), err)
		}
	}
	if most := things * (keepRuns*2 + 60); records > most {
		a.w.fail("the journal has %d records, more than %d", records, most)
	}
	if most := things * 100; intents > most || entries > 4*most {
		a.w.fail("the journal has %d intents and %d lines of history", intents, entries)
	}
	open, err := a.w.journal.Open(a.w.t.Context())
	if err != nil || len(open) > things/2+20 {
		a.w.fail("%d intents are open: %v", len(open), err)
	}
}

// forges judges what was written at the forges: one sticky comment on each pull request,
// at most one answer to each command, and no status but for a change of state.
func (a *watch) forges() {
	a.count.statuses, a.count.comments = 0, 0
	for _, r := range a.w.repos {
		if r.forge == nil {
			continue
		}
		for _, p := range slices.Concat(r.open, r.merged) {
			sticky, answers := 0, 0
			for _, c := range r.forge.Comments(p.number) {
				switch {
				case c.Bot && strings.HasPrefix(c.Body, "<!-- sluice instance="):
					sticky++
				case c.Bot:
					answers++
				}
			}
			a.count.comments += sticky + answers
			if sticky > 1 || answers > p.said*len(r.stacks()) {
				for _, c := range r.forge.Comments(p.number) {
					a.w.log("%d %s %s %s: %s", c.ID, c.Author, c.At.Format(time.DateTime), c.UpdatedAt.Format(time.DateTime), clip(c.Body, 300))
				}
				a.w.fail("%s: pull request %d has %d comments and %d answers to %d commands", r.name, p.number, sticky, answers, p.said)
			}
		}
		a.statuses(r)
	}
}

// statuses judges the statuses of a repository's commits. A plan changes with its base,
// and a rollout has at most so many states.
func (a *watch) statuses(r *weekRepo) {
	const ofRollout = 30
	for commit := range r.specs {
		count := map[string]int{}
		for _, s := range r.forge.Statuses(commit) {
			count[s.Context]++
			a.count.statuses++
		}
		for name, n := range count {
			most := 6 + len(r.specs) + a.lost[r.name]
			for _, h := range r.houses {
				if strings.HasSuffix(name, h.name) {
					most += ofRollout * min(4, len(a.made[a.endpoints[h.name]]))
				}
			}
			if n > most || n > 300 {
				a.w.fail("%s: status %s of commit %s was set %d times, more than %d", r.name, name, short(commit), n, most)
			}
		}
	}
}

// eachStack goes over the status of all stacks.
func (a *watch) eachStack(do func(*weekRepo, StackStatus)) {
	s, err := a.w.process.r.Status(a.w.t.Context())
	if err != nil {
		a.w.fail("the status cannot be read: %v", err)
	}
	for i, r := range s.Repositories {
		for _, k := range r.Stacks {
			do(a.w.repos[i], k)
		}
	}
}

// restless are the stacks that are not at rest, with what they say of themselves.
func (a *watch) restless() []string {
	if a.w.process == nil {
		return []string{"no process works"}
	}
	var out []string
	a.eachStack(func(r *weekRepo, s StackStatus) {
		settled := s.Newest == r.head() && len(s.Queue) == 0 && s.Suspended == ""
		switch s.Phase {
		case InStep, Ahead, Invalid:
		default:
			settled = false
		}
		if !settled {
			out = append(out, fmt.Sprintf("%s/%s %s at %s, Git is at %s: %s %+v %+v", r.name, s.Name, s.Phase, short(s.Newest), short(r.head()), s.Error, s.Waits, s.Rollouts))
		}
	})
	for _, r := range a.w.repos {
		for _, h := range r.houses {
			if live, ok := a.underWay(h); ok {
				out = append(out, fmt.Sprintf("%s %s is %s", h.name, live.ID, live.State))
			}
		}
	}
	return out
}

// atTheEnd judges whether what stands is what is said of it.
func (a *watch) atTheEnd() {
	a.eachStack(func(r *weekRepo, s StackStatus) {
		broken := false
		for n, x := range r.now() {
			broken = broken || r.houses[n].stack == s.Name && x.broken
		}
		if broken != (s.Phase == Invalid) {
			a.w.fail("%s/%s is %s, and what Git says is broken: %t", r.name, s.Name, s.Phase, broken)
		}
		if s.Phase == Ahead && len(s.Waits) == 0 {
			a.w.fail("%s/%s is ahead of Git and does not say why", r.name, s.Name)
		}
		for n, x := range r.now() {
			h := r.houses[n]
			if h.stack != s.Name || s.Phase == Invalid {
				continue
			}
			if a.endpoints[h.name] == "" {
				a.w.fail("%s is not made, and its stack is %s", h.name, s.Phase)
				continue
			}
			a.asDeclared(h, x, s)
		}
	})
	a.forges()
}

// asDeclared judges one house of a stack in step: the rollout that Git declares has
// completed, or a person's word stands against it.
func (a *watch) asDeclared(h *weekHouse, x spec, s StackStatus) {
	if len(x.steps) == 0 {
		return
	}
	id := a.endpoints[h.name]
	for live, err := range a.w.boss.Rollouts(a.w.t.Context(), id, "") {
		if err == nil && live.State == engineclient.StateCompleted && len(live.Status.Steps) == len(x.steps) && live.Status.Steps[0].TargetTrafficPercent == x.steps[0] {
			return
		}
	}
	if s.Phase == Ahead && strings.Contains(fmt.Sprint(s.Waits), fmt.Sprintf("sluice_rollout.r%d", h.n)) {
		return
	}
	a.w.fail("%s: Git declares a rollout by %v that never completed, and its stack is %s %v", h.name, x.steps, s.Phase, s.Waits)
}

// summary is what a week had.
func (a *watch) summary() string {
	records, intents, entries := a.w.journal.Size()
	return fmt.Sprintf("%d passes, %d processes, %d deaths, %d calls, %d writes, %d rollouts; %d comments and %d statuses; journal %d records, %d intents, %d lines; %d notifications",
		a.passes, a.w.died, a.deaths, len(a.w.calls), a.count.writes, a.count.rollouts, a.count.comments, a.count.statuses, records, intents, entries, len(a.notified))
}
