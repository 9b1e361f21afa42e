package rollout_test

import (
	"math"
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// lookAt is one reading of the breaker with the instant of the look.
type lookAt struct {
	at  time.Time
	q   Query
	got Reading
}

// held reports whether the source of a rollout is to be kept whole, worked out apart
// from the core.
func held(r Rollout) bool { return r.Spec.HoldSource || r.Spec.Breaker != nil }

// breakerRead checks one look of the breaker, and keeps it.
func (v *watch) breakerRead(q Query, got Reading) {
	r := v.w.record()
	if len(v.breaker) > 0 && !v.breaker[0].at.Equal(v.w.now) {
		v.breaker = nil
	}
	v.breaker = append(v.breaker, lookAt{v.w.now, q, got})
	if q.Deployment != v.w.target.id {
		v.blame("breaker: it looks at %s", q.Deployment)
	}
	if q.To.After(v.w.now.Add(-r.Timings.IngestionLag)) {
		v.blame("breaker: window ends %v before now", v.w.now.Sub(q.To))
	}
	if q.From.Before(r.StartedAt) {
		v.blame("breaker: window from %s reaches before the start", clock(q.From))
	}
}

// checkWayBack checks what a trip and an edit need and leave.
func (v *watch) checkWayBack(old, r Rollout) {
	if old.Trip == nil && r.Trip != nil {
		v.tripped(old, r)
	}
	going := r.State == Running || r.State == Stabilizing
	if going && (r.Trip != nil || r.Edit != nil) {
		v.blame("way back: %s with a tripped breaker or broken glass", r.State)
	}
	if (r.Trip != nil || r.Edit != nil) && !r.RetryAt.IsZero() {
		v.blame("way back: a retry is set for %s", clock(r.RetryAt))
	}
	if r.SourceReleased && !old.SourceReleased {
		v.drained = true
	}
}

// tripped checks that two whole windows, one look apart, breach one rule.
func (v *watch) tripped(old, r Rollout) {
	if old.Percent <= r.Journey.Seed {
		v.blame("breaker: tripped at %d%%, the target had %d%%", old.Percent, r.Journey.Seed)
	}
	rule := r.Spec.Breaker.Rules[r.Trip.Rule]
	window := rule.Window
	if window == 0 {
		window = v.w.timings.DefaultWindow
	}
	ends := map[time.Time]bool{}
	for _, l := range v.breaker {
		bad := l.got.Complete && l.got.Samples >= v.needed(rule) && !math.IsNaN(l.got.Value) && l.got.Value >= rule.Threshold.Value
		if l.at.Equal(v.w.now) && l.q.Metric == rule.Metric && l.q.Percentile == rule.Percentile && l.q.To.Sub(l.q.From) == window && bad {
			ends[l.q.To] = true
		}
	}
	if len(ends) != 2 {
		v.blame("breaker: tripped on %d windows that breach", len(ends))
	}
}

func (v *watch) needed(r Rule) int {
	if n, ok := map[int]int{50: 2, 95: 20, 99: 100}[r.Percentile]; ok && r.Stat == StatPercentile {
		return n
	}
	return 20
}

// splittingParked checks that after a trip nothing goes above what stood at the start,
// and that the engine leaves a split alone that a person broke the glass for.
func (v *watch) splittingParked(r Rollout, percent int) {
	if r.Trip != nil && r.Edit == nil && percent > r.Journey.Seed {
		v.blame("breaker: the split goes to %d%% after a trip to %d%%", percent, r.Journey.Seed)
	}
	if r.Edit != nil {
		v.blame("break glass: the engine sets the split to %d%%, %s set it to %d%%", percent, r.Edit.By, r.Edit.To)
	}
}

// boundingHeld checks a write of the bounds of a source that is to be kept whole. It
// reports whether the write was one of keeping it.
func (v *watch) boundingHeld(r Rollout, old, b Bounds) bool {
	if b.Min > old.Min && b.Max == old.Max {
		if b.Min > r.Journey.Source || r.Phase != PhaseScaling {
			v.blame("held: the source's floor goes to %d in %s, it had %d", b.Min, r.Phase, r.Journey.Source)
		}
		return true
	}
	last := len(r.Steps) - 1
	if r.Step != last || v.w.router.served != 100 {
		v.blame("held: the source is drained to %v at step %d of %d, %d%%", b, r.Step+1, last+1, v.w.router.served)
	}
	began := time.Time{}
	for _, e := range v.w.events {
		if e.Subject == r.ID && e.Step != nil && *e.Step == last && e.Type == EventSourceHeld {
			began = e.At
		}
	}
	if began.IsZero() || v.w.now.Sub(began) < r.Journey.Soak {
		v.blame("held: the source is drained before its last soak is over")
	}
	if len(r.Spec.Rules) > 0 && v.lastQuery.Before(began.Add(r.Journey.Soak)) {
		v.blame("held: the source is drained before its last gate")
	}
	return false
}

// stages are the events that a step must have had, in order.
func (v *watch) stages(i int) []EventType {
	r := v.w.record()
	out := []EventType{EventTargetScaled, EventTargetReady, EventPropagated}
	if !held(r) {
		return append(out, EventSourceDrained)
	}
	again := false // the last step was done again after its drain had begun
	for _, e := range v.w.events {
		if e.Subject == r.ID && e.Step != nil && *e.Step == i && e.Type == EventTargetScaled {
			again = false
		}
		again = again || e.Type == EventSourceHeld && e.Subject == r.ID && e.Step != nil && *e.Step == i
	}
	if again || i < len(r.Steps)-1 {
		out = append(out, EventSourceHeld)
	}
	if i == len(r.Steps)-1 {
		out = append(out, EventSourceDrained)
	}
	return out
}
