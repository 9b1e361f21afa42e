package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// Headline is a sheet in one line: what matters most of it, as plain text. It has no
// clock in it, only instants.
func (s Sheet) Headline() string {
	switch s.Stage {
	case Superseded:
		return "– Superseded by " + Inert(shortCommit(s.Over.By))
	case Closed:
		why := "Closed without a merge"
		if s.Over.Why != "" {
			why = clip(Inert(s.Over.Why), longestName)
		}
		return "– " + why + ": nothing of it was applied"
	case Following:
		return s.runHeadline()
	case Planned:
	}
	return s.planHeadline()
}

// planHeadline is the verdict of a plan: what stands in its way, or what it does.
func (s Sheet) planHeadline() string {
	switch n := s.errors(); {
	case s.unmerged():
		return fmt.Sprintf("✗ Not planned: the branch cannot be merged into %s", clip(Inert(s.Revision.Base), longestName))
	case n > 0:
		return fmt.Sprintf("✗ Not planned: %s in the HCL", planning.Count(n, "error"))
	case s.problem() != "":
		return "✗ Not planned: " + clip(Inert(s.problem()), longestName)
	}
	what := s.counts()
	if what == "" {
		return "✓ Nothing to change"
	}
	plan := "Plan"
	if ps := s.Approval.Plans; len(ps) == 1 {
		plan += " " + Inert(planning.ShortDigest(ps[0].Digest))
	}
	if endpoints := s.endpoints(); len(endpoints) == 1 {
		plan += " for " + clip(Inert(endpoints[0]), longestName)
	}
	if n := s.denials(); n > 0 {
		return fmt.Sprintf("✗ %s is denied by policy (%s): %s", plan, planning.Count(n, "denial"), what)
	}
	glyph, fit := "▶", s.fit()
	if strings.HasPrefix(fit, "not") {
		glyph = "⚠"
	}
	if fit != "" {
		what += " · " + fit
	}
	return glyph + " " + plan + ": " + what
}

// errors counts what is wrong with the HCL of all stacks.
func (s Sheet) errors() int {
	n := 0
	for _, st := range s.Stacks {
		for _, d := range st.Diagnostics {
			if d.Severity == "error" {
				n++
			}
		}
	}
	return n
}

func (s Sheet) problem() string {
	for _, st := range s.Stacks {
		if st.Problem != "" {
			return st.Problem
		}
	}
	return ""
}

func (s Sheet) denials() int {
	n := 0
	for _, st := range s.Stacks {
		for _, r := range st.remaining().Remarks {
			if r.Severity == "deny" {
				n++
			}
		}
	}
	return n
}

// liftable reports whether somebody may lift each denial that stands.
func (s Sheet) liftable() bool {
	for _, st := range s.Stacks {
		for _, r := range st.remaining().Remarks {
			if r.Severity == "deny" && len(r.Override) == 0 {
				return false
			}
		}
	}
	return true
}

// blocked reports whether there is no plan that could be applied.
func (s Sheet) blocked() bool {
	return s.unmerged() || s.errors() > 0 || s.problem() != ""
}

// unmerged reports whether the branch cannot be merged.
func (s Sheet) unmerged() bool { return len(s.Conflicts) > 0 || s.Unmerged != "" }

// changes reports whether a plan does anything.
func (s Sheet) changes() bool { return s.counts() != "" }

// counts is what all stacks change, in the words of a plan; empty when nothing does.
func (s Sheet) counts() string {
	var n planning.Counts
	for _, st := range s.Stacks {
		n.Rollouts += len(st.Rollouts)
		for _, ch := range st.Changes {
			ch.count(&n)
		}
	}
	if n == (planning.Counts{}) {
		return ""
	}
	return n.Text()
}

func (ch Change) count(n *planning.Counts) {
	if ch.From != "" {
		n.Moved++
	}
	if ch.Held != "" {
		n.Blocked++
	}
	switch ch.Action {
	case planning.Create:
		n.Created++
	case planning.Update, planning.Start, planning.Steer:
		n.Updated++
	case planning.Replace:
		n.Replaced++
	case planning.Delete:
		n.Deleted++
	case planning.NoOp:
	}
}

// endpoints are those of all rollouts, each once.
func (s Sheet) endpoints() []string {
	var out []string
	for _, st := range s.Stacks {
		for _, r := range st.Rollouts {
			if !slices.Contains(out, r.Endpoint) {
				out = append(out, r.Endpoint)
			}
		}
	}
	return out
}

// fit is whether all rollouts have room: the one that has none says so first.
func (s Sheet) fit() string {
	var fits []string
	rollouts := 0
	for _, st := range s.Stacks {
		for _, r := range st.Rollouts {
			rollouts++
			switch r.Live.Fit {
			case Short:
				return clip(fitText(r.Live), longestText)
			case Fits:
				fits = append(fits, fitText(r.Live))
			case FitUnknown:
			}
		}
	}
	switch {
	case len(fits) == 0 || len(fits) < rollouts:
		return ""
	case len(fits) == 1:
		return fits[0]
	}
	return "each is feasible alone"
}

// runHeadline tells the rollout that needs a person first, then the one that runs.
func (s Sheet) runHeadline() string {
	runs := notTakenBack(s.runs())
	switch len(runs) {
	case 0:
		return s.beforeRuns()
	case 1:
		return runHeadline(runs[0])
	}
	n := map[string]int{}
	for _, r := range runs {
		n[r.condition()]++
	}
	parts := []string{}
	for _, c := range []string{"parked", "paused by hand", "under way", "pending", "canceled", "completed"} {
		if n[c] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[c], c))
		}
	}
	first := runs[0]
	for _, r := range runs {
		if rank(r) < rank(first) {
			first = r
		}
	}
	text := fmt.Sprintf("%s: %s", planning.Count(len(runs), "rollout"), strings.Join(parts, ", "))
	if rank(first) < 4 {
		return runHeadline(first) + " · " + text
	}
	return glyphOf(first) + " " + text
}

// notTakenBack leaves out the rollouts that another one has taken back by now: that one
// tells where things stand.
func notTakenBack(runs []RolloutSheet) []RolloutSheet {
	return slices.DeleteFunc(slices.Clone(runs), func(r RolloutSheet) bool {
		return slices.ContainsFunc(runs, func(back RolloutSheet) bool {
			return back.Reverses != "" && back.Reverses == r.Run.Rollout.ID && back.condition() == "completed"
		})
	})
}

// beforeRuns is the headline while the engine has none of the rollouts: what is waited
// for is always named.
func (s Sheet) beforeRuns() string {
	what := s.counts()
	switch {
	case s.blocked() || s.denials() > 0:
		return s.planHeadline()
	case what == "" && len(s.Waiting) > 0:
		return "○ Waits: " + clip(Inert(s.Waiting[0]), 2*longestName)
	case what == "":
		return "✓ Applied: nothing was to change"
	case s.unproved():
		return "○ Waits for an approval: " + what
	case len(s.Waiting) > 0:
		return "○ Waits for " + clip(Inert(s.Waiting[0]), longestName) + ": " + what
	}
	return "● Being applied: " + what
}

// unproved reports whether a plan that the engine has nothing of yet needs an approval.
func (s Sheet) unproved() bool {
	return slices.ContainsFunc(s.Stacks, func(st StackSheet) bool {
		return s.Approval.unproved(st.Name) && len(Sheet{Stacks: []StackSheet{st}}.runs()) == 0
	})
}

// runs are the rollouts of all stacks that the engine has.
func (s Sheet) runs() []RolloutSheet {
	var out []RolloutSheet
	for _, st := range s.Stacks {
		for _, r := range st.Rollouts {
			if r.Run != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// state of a rollout without its prefix; empty while the engine has none.
func (r RolloutSheet) state() string {
	if r.Run == nil {
		return ""
	}
	return Inert(strings.TrimPrefix(r.Run.Rollout.State, api.PrefixRolloutState))
}

// condition is a state in the words of a headline.
func (r RolloutSheet) condition() string {
	switch r.state() {
	case "SYSTEM_PAUSED":
		return "parked"
	case "PAUSED", "PAUSING":
		return "paused by hand"
	case "COMPLETED":
		return "completed"
	case "CANCELED", "CANCELLING":
		return "canceled"
	case "PENDING":
		return "pending"
	}
	return "under way"
}

// rank orders rollouts by how soon a person should look.
func rank(r RolloutSheet) int {
	return slices.Index([]string{"parked", "paused by hand", "under way", "pending", "canceled", "completed"}, r.condition())
}

func glyphOf(r RolloutSheet) string {
	glyph, _ := stateGlyph(r.state())
	return glyph
}

// runHeadline is one rollout in a line.
func runHeadline(r RolloutSheet) string {
	of := clip(Inert(r.Endpoint), longestName)
	ro := r.Run.Rollout
	percent := percentOf(ro)
	lead := glyphOf(r) + " " + of
	if r.Reverses != "" {
		lead += ", on the way back"
	}
	switch r.condition() {
	case "parked":
		return fmt.Sprintf("%s is parked: %s at %d %%", lead, ParkOf(ro, Options{}).Category, percent)
	case "paused by hand":
		return fmt.Sprintf("%s is paused by hand at %d %%", lead, percent)
	case "completed":
		if r.Reverses != "" {
			return fmt.Sprintf("✓ %s: taken back%s%s", of, took(ro), answered(*r.Run))
		}
		return fmt.Sprintf("%s: completed%s%s", lead, took(ro), answered(*r.Run))
	case "canceled":
		return fmt.Sprintf("%s: canceled at %d/%d (source/target)%s", lead, 100-percent, percent, took(ro))
	case "pending":
		return lead + ": waits to be started"
	}
	return lead + ": " + stepText(ro)
}

// stepText is "step 2/3 · 50 %", with the phase where it is known.
func stepText(r api.Rollout) string {
	parts := []string{}
	if r.CurrentStep != nil {
		parts = append(parts, fmt.Sprintf("step %d/%d", *r.CurrentStep+1, r.Status.TotalSteps))
	}
	parts = append(parts, fmt.Sprintf("%d %%", percentOf(r)))
	if phase := phaseOf(r); phase != "" {
		parts = append(parts, phase)
	}
	return strings.Join(parts, " · ")
}

// phaseOf is where inside its step a rollout is, in a word.
func phaseOf(r api.Rollout) string {
	if r.Sluice == nil {
		return ""
	}
	return strings.ToLower(Inert(r.Sluice.Phase))
}

func took(r api.Rollout) string {
	if r.StartedAt == nil || r.CompletedAt == nil {
		return ""
	}
	return " in " + planning.Span(r.CompletedAt.Sub(r.StartedAt.Time).Round(time.Second))
}

// answered tells the requests of a rollout, where they are known.
func answered(run Run) string {
	if run.Requests == nil {
		return ""
	}
	text := fmt.Sprintf(", %d requests", *run.Requests)
	switch {
	case run.NonOK == nil:
		return text
	case *run.NonOK == 0:
		return text + ", all answered with 200"
	}
	return text + fmt.Sprintf(", %d of them not answered with 200", *run.NonOK)
}
