package rehearsal

import "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"

// mostOccasions is how often a target that was whole may fail in one step.
const mostOccasions = 3

// occasions is the watch's own count of how often the target failed in a step after it had
// been whole. It is taken from a row of looks; of more looks it can only get larger.
type occasions struct {
	counting bool
	seen     int // failures at the last look
	whole    bool
	n        int
}

// look goes on with what a fleet told.
func (o *occasions) look(s rollout.FleetStatus) {
	if o.whole && s.Failures > o.seen {
		o.n, o.whole = o.n+1, false
	}
	o.whole = o.whole || s.Ready >= s.Desired
	o.seen = s.Failures
}

// health bounds what an engine may have counted in a step.
type health struct {
	most  occasions // from all that any engine was told of the target
	least occasions // from what stood whenever the world was at rest
}

func countFrom(s rollout.FleetStatus) occasions {
	return occasions{counting: true, seen: s.Failures, whole: s.Ready >= s.Desired}
}

// toldOf hears what a fleet tells the engine.
func (v *watch) toldOf(deployment string, s rollout.FleetStatus) {
	if v.w.target != nil && deployment == v.w.target.id && v.health.most.counting {
		v.health.most.look(s)
	}
}

// counts follows one write of the record: a step begins to count with its first shift, and
// anew when a person goes on.
func (v *watch) counts(old, r rollout.Rollout) {
	if r.State.Terminal() {
		return
	}
	again := v.w.byHand && working(r) && (!working(old) || v.lastEvent() == rollout.EventPromoted)
	if old.ID != r.ID || old.Step != r.Step || again {
		v.health = health{}
	}
	h := &v.health
	if !h.most.counting && settled(r.Phase) {
		h.most = countFrom(v.w.fleets.seen[v.w.target.id])
	}
	if n := occasionsOf(r); n > h.most.n && settled(r.Phase) {
		v.blame(5, "the record has %d failures of the target in step %d, and there were %d", n, r.Step+1, h.most.n)
	}
	if health := parkedOn(r) == rollout.HealthRegression; health && parkedOn(old) != rollout.HealthRegression && h.most.n < mostOccasions {
		v.blame(5, "parked after %d failures of the target in step %d", h.most.n, r.Step+1)
	}
}

func (v *watch) lastEvent() rollout.EventType {
	if len(v.events) == 0 {
		return ""
	}
	return v.events[len(v.events)-1].Type
}

// occasionsOf is what the record has of the current step.
func occasionsOf(r rollout.Rollout) int {
	if h := r.Steps[r.Step].Health; h != nil {
		return h.Occasions
	}
	return 0
}

// parkedOn is the category of a park by the engine.
func parkedOn(r rollout.Rollout) rollout.Category {
	if r.State != rollout.SystemPaused || r.Condition == nil {
		return ""
	}
	return r.Condition.Category
}

// restsHealthy checks that no step goes on with a target that keeps failing.
func (v *watch) restsHealthy(r rollout.Rollout) {
	h := &v.health.least
	if !v.calm() || v.w.hand == nil || !working(r) && r.State != rollout.SystemPaused || !settled(r.Phase) {
		return
	}
	s, err := v.w.fleet.Observe(v.w.ctx, v.w.target.id)
	v.w.must(err)
	if !h.counting {
		*h = countFrom(s)
		return
	}
	h.look(s)
	if working(r) && h.n >= mostOccasions {
		v.blame(5, "%s of step %d goes on after the target failed %d times", r.Phase, r.Step+1, h.n)
	}
	if parkedOn(r) != rollout.HealthRegression && occasionsOf(r) < min(h.n, mostOccasions) {
		v.blame(5, "the record has %d failures of the target in step %d, and %d were to be seen", occasionsOf(r), r.Step+1, h.n)
	}
}
