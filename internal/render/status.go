package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// StatusState is what a commit status says; the words are those of forges.
type StatusState string

// The states. A rollout that runs is pending, one that is parked or canceled failed.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure"
	StatusError   StatusState = "error"
)

// StatusKey tells two statuses apart: one whose key was reported already is not
// reported again, whatever its text says. No clock is part of it.
type StatusKey struct {
	Commit   string
	Endpoint string
	State    string // of the plan or the rollout, with the category of a park
	Step     int    // 1-based; 0 for none
}

// Status is the commit status of one endpoint in a line of at most limit bytes. now is
// for the time that is left of a soak; zero leaves it out.
func Status(s Sheet, endpoint string, now time.Time, limit int) (StatusState, string) {
	state, text := statusOf(s, endpoint, now)
	return state, shortened(Inert(text), limit)
}

// KeyOf is the key of an endpoint's status.
func KeyOf(s Sheet, endpoint string) StatusKey {
	k := StatusKey{Commit: s.Revision.Commit, Endpoint: endpoint, State: string(s.planState(endpoint))}
	r, ok := s.rolloutOf(endpoint)
	if s.Stage != Following || !ok || r.Run == nil {
		return k
	}
	k.State = r.state()
	if park := ParkOf(r.Run.Rollout, Options{}); park.Category != "" && !park.ByHand() {
		k.State += " " + park.Category
	}
	if n := r.Run.Rollout.CurrentStep; n != nil {
		k.Step = *n + 1
	}
	if r.Reverses != "" {
		k.State += " reverse"
	}
	return k
}

// planState is where the plan of an endpoint is.
type planState string

const (
	stateOver      planState = "over"
	stateConflict  planState = "conflict"
	stateInvalid   planState = "invalid"
	stateNoPlan    planState = "no plan"
	stateDenied    planState = "denied"
	stateUnchanged planState = "unchanged"
	stateUnproved  planState = "not approved"
	stateShort     planState = "not feasible"
	statePlanned   planState = "planned"
	stateWaiting   planState = "waiting"
	stateApplying  planState = "applying"
)

func (s Sheet) planState(endpoint string) planState {
	st, r := s.stackOf(endpoint)
	switch {
	case s.Stage == Superseded || s.Stage == Closed:
		return stateOver
	case s.unmerged():
		return stateConflict
	case (Sheet{Stacks: []StackSheet{st}}).errors() > 0:
		return stateInvalid
	case st.Problem != "":
		return stateNoPlan
	case (Sheet{Stacks: []StackSheet{st}}).denials() > 0:
		return stateDenied
	case s.Stage == Following:
		return s.beforeRun(st, r)
	case r == nil && !s.changes():
		return stateUnchanged
	case s.Approval.unproved(st.Name):
		return stateUnproved
	case r != nil && r.Live.Fit == Short:
		return stateShort
	}
	return statePlanned
}

// beforeRun is what an endpoint whose change is to be applied waits for.
func (s Sheet) beforeRun(st StackSheet, r *RolloutSheet) planState {
	switch {
	case r != nil && r.Run != nil:
		return stateApplying
	case s.Approval.unproved(st.Name):
		return stateUnproved
	case len(s.Waiting) > 0:
		return stateWaiting
	}
	return stateApplying
}

// unproved reports whether a stack's plan still needs an approval.
func (a Approval) unproved(stack string) bool {
	if a.Mode != ByDigest {
		return false
	}
	for _, p := range a.Plans {
		if p.Stack == stack {
			return len(p.Granted) == 0
		}
	}
	return false
}

func statusOf(s Sheet, endpoint string, now time.Time) (StatusState, string) {
	st, r := s.stackOf(endpoint)
	switch s.planState(endpoint) {
	case stateOver:
		return StatusSuccess, strings.TrimPrefix(s.Headline(), "– ")
	case stateConflict, stateInvalid:
		return StatusFailure, plainHeadline(s)
	case stateNoPlan:
		return StatusError, "no plan: " + st.Problem
	case stateDenied:
		for _, remaining := range st.remaining().Remarks {
			if remaining.Severity == "deny" {
				return StatusFailure, "denied: " + remark(remaining)
			}
		}
	case stateUnchanged:
		return StatusSuccess, "plan ok: nothing to change"
	case stateUnproved:
		return StatusPending, "plan waits for approval: " + s.planned(st, r)
	case stateShort, statePlanned:
		return StatusSuccess, "plan ok: " + s.planned(st, r)
	case stateWaiting:
		return StatusPending, "waits for " + s.Waiting[0]
	case stateApplying:
	}
	if r == nil || r.Run == nil {
		return StatusPending, "being applied"
	}
	return runStatus(*r, now)
}

// plainHeadline is a headline without its glyph.
func plainHeadline(s Sheet) string {
	_, text, _ := strings.Cut(s.Headline(), " ")
	return strings.ToLower(text[:1]) + text[1:]
}

// planned says what a plan does and whether there is room.
func (s Sheet) planned(st StackSheet, r *RolloutSheet) string {
	parts := strings.Split((Sheet{Stacks: []StackSheet{st}}).counts(), ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, "0 ") && !strings.Contains(p, "·") })
	text := strings.Join(parts, ", ") // what is not done has no place in one line
	if r == nil {
		return text
	}
	switch r.Live.Fit {
	case Fits:
		return text + " · feasible"
	case Short:
		return text + " · " + fitText(r.Live)
	case FitUnknown:
	}
	return text
}

// runStatus is a rollout in a line: step, split and phase, or why it stands.
func runStatus(r RolloutSheet, now time.Time) (StatusState, string) {
	ro := r.Run.Rollout
	back := ""
	if r.Reverses != "" {
		back = "way back: "
	}
	park := ParkOf(ro, Options{})
	switch r.condition() {
	case "parked":
		return StatusFailure, strings.TrimSpace(back + "parked: " + park.Category + " at " + stepText(ro) + " · " + park.Message)
	case "paused by hand":
		return StatusPending, back + "paused by hand: " + stepText(ro)
	case "completed":
		return StatusSuccess, back + "completed" + took(ro) + answered(*r.Run)
	case "canceled":
		percent := percentOf(ro)
		return StatusFailure, fmt.Sprintf("%scanceled at %d/%d (source/target)", back, 100-percent, percent)
	}
	return StatusPending, back + stepText(ro) + left(r, now)
}

// left is what is left of a soak, to the second.
func left(r RolloutSheet, now time.Time) string {
	x := r.Run.Rollout.Sluice
	if x == nil || x.Phase != "SOAKING" || x.Soak == nil || x.PhaseSince == nil || now.IsZero() {
		return ""
	}
	soak := time.Duration(*x.Soak)
	rest := max(0, soak-now.Sub(x.PhaseSince.Time)).Round(time.Second)
	return fmt.Sprintf(", %s left of %s", planning.Span(rest), planning.Span(soak))
}

// stackOf is the stack of an endpoint and its newest rollout; nil when it has none.
func (s Sheet) stackOf(endpoint string) (StackSheet, *RolloutSheet) {
	var stack StackSheet
	var found *RolloutSheet
	for _, st := range s.Stacks {
		for i := range st.Rollouts {
			if st.Rollouts[i].Endpoint == endpoint {
				stack, found = st, &st.Rollouts[i]
			}
		}
	}
	if found != nil {
		return stack, found
	}
	for _, st := range s.Stacks {
		if len(s.Stacks) == 1 || st.Name == endpoint || slices.Contains(st.Endpoints, endpoint) {
			return st, nil
		}
	}
	return stack, nil
}

func (s Sheet) rolloutOf(endpoint string) (RolloutSheet, bool) {
	_, r := s.stackOf(endpoint)
	if r == nil {
		return RolloutSheet{}, false
	}
	return *r, true
}

// shortened cuts a text to so many bytes, at a whole character.
func shortened(s string, limit int) string {
	if limit <= 0 || len(s) <= limit {
		return s
	}
	const more = "…"
	end := max(0, limit-len(more))
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	if limit < len(more) {
		return ""
	}
	return strings.TrimRight(s[:end], " ·,:") + more
}
