package rollout_test

import (
	"slices"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// occasions counts how often a side failed after it had been whole, from a row of looks.
// Of more looks it can only get larger.
type occasions struct {
	counting bool
	seen     int // failures at the last look
	whole    bool
	n        int
}

func (o *occasions) look(s *side) {
	whole := s.count(ready) >= s.desired()
	switch {
	case !o.counting:
		*o = occasions{counting: true, whole: whole}
	case o.whole && s.failures > o.seen:
		o.n, o.whole = o.n+1, whole
	default:
		o.whole = o.whole || whole
	}
	o.seen = s.failures
}

// served reports whether a step's own split is served and its target is watched.
func served(p Phase) bool {
	switch p {
	case PhasePropagating, PhaseDraining, PhaseSoaking, PhaseGating, PhaseConfirming:
		return true
	case PhaseChecking, PhaseScaling, PhaseShifting, PhaseReleasing:
		return false
	}
	return false
}

// checkHealth checks the record's count against what the runner was shown: it begins with
// the first shift of a step, and anew when a person goes on.
func (v *watch) checkHealth(old, r Rollout, events []Event) {
	if r.State.Terminal() {
		return
	}
	again := slices.ContainsFunc(events, func(e Event) bool { return e.Type == EventResumed || e.Type == EventPromoted })
	if old.Step != r.Step || again {
		v.most, v.least = occasions{}, occasions{}
	}
	if !v.most.counting && served(r.Phase) {
		v.most.look(v.w.target)
	}
	if h := r.Steps[r.Step].Health; h != nil && served(r.Phase) && h.Occasions > v.most.n {
		v.blame("health: %d failures of the target in the record, %d were to be seen", h.Occasions, v.most.n)
	}
	unhealthy := func(r Rollout) bool {
		return r.State == SystemPaused && r.Condition.Category == HealthRegression
	}
	if unhealthy(r) && !unhealthy(old) && v.most.n < 3 {
		v.blame("health: parked after %d failures", v.most.n)
	}
	if unhealthy(old) && slices.ContainsFunc(events, func(e Event) bool { return e.Type == EventRetried }) {
		v.blame("health: a target that keeps failing was retried")
	}
}

// settledHealth checks that no step goes on with a target that keeps failing.
func (v *watch) settledHealth(r Rollout) {
	if working := r.State == Running || r.State == Stabilizing; !served(r.Phase) || !working && r.State != SystemPaused {
		return
	}
	if v.least.look(v.w.target); v.least.n >= 3 && r.State != SystemPaused {
		v.blame("health: %s goes on after the target failed %d times", r.Phase, v.least.n)
	}
	if h := r.Steps[r.Step].Health; h == nil || h.Occasions < min(v.least.n, 3) {
		v.blame("health: the record has %v, and the target failed %d times", h, v.least.n)
	}
}
