package rehearsal

import (
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// committed checks one write before the world takes it up.
func (v *watch) committed(c rollout.Change) {
	v.told(c.Events)
	glass := v.glassBroken(c)
	for _, e := range c.Endpoints {
		if e.ID == v.w.endpoint.ID && v.w.record.ID != "" && !glass {
			v.splitting(v.w.endpoint, e)
		}
	}
	for _, d := range c.Deployments {
		if old, ok := v.w.deployments[d.ID]; ok && old.Bounds != d.Bounds && !v.w.byHand {
			v.bounding(old, d)
		}
	}
	for _, r := range c.Rollouts {
		v.recorded(v.w.record, r, c)
		v.fresh = false
	}
}

// recorded checks one write of a rollout's record.
func (v *watch) recorded(old, r rollout.Rollout, c rollout.Change) {
	if old.ID != r.ID {
		v.events, v.since = slices.Clone(c.Events), 0
		return
	}
	if old.State == rollout.Pending && r.State != rollout.Pending {
		v.begins(r)
	}
	if old.Version != r.Version {
		v.blame(8, "the record was at version %d and is written from %d", old.Version, r.Version)
	}
	v.checkMove(old, r)
	v.counts(old, r)
	v.limits(old, r)
	if r.Hold != nil && (old.Hold == nil || *old.Hold != *r.Hold) {
		v.heldAt = v.w.engineNow()
	}
	v.wayBack(old, r)
	v.feasible(old, r)
	if old.State != rollout.Cancelling && r.State == rollout.Cancelling {
		v.frozen = []int{v.served(), old.Percent}
		if p := v.w.endpoint.Pair; p != nil {
			v.frozen = append(v.frozen, p.Percent)
		}
	}
	for i := range r.Steps {
		if i < len(old.Steps) && old.Steps[i].State != rollout.StepPassed && r.Steps[i].State == rollout.StepPassed {
			v.passed(old, r, i)
		}
	}
	if old.State != rollout.SystemPaused && r.State == rollout.SystemPaused {
		v.parks(old, r)
	}
	if r.State.Terminal() && !old.State.Terminal() {
		v.ends(r, c)
	}
	if old.State != rollout.Pending && r.Percent != old.Percent && r.Percent != v.served() && !r.State.Terminal() {
		v.blame(8, "the record says %d%%, %d%% is served", r.Percent, v.served())
	}
}

// told keeps a rollout's events and checks that none is told twice at one instant
// without a reason.
func (v *watch) told(events []rollout.Event) {
	for _, e := range events {
		if e.Subject == "" || v.w.record.ID != "" && e.Subject != v.w.record.ID {
			continue
		}
		for _, was := range v.events[min(v.since, len(v.events)):] {
			if same(was, e) && !v.mayComeAgain(e) {
				v.blame(8, "%s is told twice: %s", e.Type, e.Message)
			}
		}
		v.events = append(v.events, e)
		if e.Actor != "" {
			v.acted()
		}
	}
}

// mayComeAgain reports whether a step may be begun twice at one instant: a restarted
// engine does it again for replicas that it takes for returning ones.
func (v *watch) mayComeAgain(e rollout.Event) bool {
	return !v.w.engineNow().After(v.awaits) && (e.Type == rollout.EventTargetScaled || e.Type == rollout.EventTargetReady)
}

func same(a, b rollout.Event) bool {
	step := a.Step == nil && b.Step == nil || a.Step != nil && b.Step != nil && *a.Step == *b.Step
	return step && a.At.Equal(b.At) && a.Type == b.Type && a.Message == b.Message && a.Subject == b.Subject
}

// moves are the edges of the state machine as the contract has them, section B.2.
var moves = map[rollout.State][]rollout.State{
	rollout.Pending:      {rollout.Running},
	rollout.Running:      {rollout.Pausing, rollout.Cancelling, rollout.Stabilizing, rollout.SystemPaused, rollout.Completed},
	rollout.Stabilizing:  {rollout.Pausing, rollout.Cancelling, rollout.Running, rollout.SystemPaused, rollout.Completed},
	rollout.Pausing:      {rollout.SystemPaused, rollout.Paused, rollout.Running, rollout.Stabilizing, rollout.Cancelling},
	rollout.Paused:       {rollout.Running, rollout.Stabilizing, rollout.Cancelling},
	rollout.SystemPaused: {rollout.Running, rollout.Stabilizing, rollout.Paused, rollout.Cancelling},
	rollout.Cancelling:   {rollout.Canceled},
}

// checkMove checks that the state moved along an edge, that only a person ends a
// person's pause, and that only what may be retried is.
func (v *watch) checkMove(old, r rollout.Rollout) {
	if old.State != r.State && !slices.Contains(moves[old.State], r.State) {
		v.blame(7, "%s → %s is no move of the state machine", old.State, r.State)
	}
	going := r.State == rollout.Running || r.State == rollout.Stabilizing
	if old.State == rollout.Paused && going && !v.w.byHand {
		v.blame(7, "a person's pause was ended by nobody")
	}
	if old.State == rollout.SystemPaused && going && !v.w.byHand {
		v.retried(old, r)
	}
	if v.w.byHand && going && old.State != r.State {
		v.parked = v.w.engineNow() // a person's retries are not counted
	}
	if old.Step != r.Step && r.Step != old.Step+1 && !v.w.byHand {
		v.blame(2, "step %d follows step %d", r.Step+1, old.Step+1)
	}
	if old.Step != r.Step && old.Steps[old.Step].State != rollout.StepPassed && r.Steps[old.Step].State != rollout.StepPassed && r.Steps[old.Step].State != rollout.StepSkipped {
		v.blame(2, "step %d was left in %s", old.Step+1, r.Steps[old.Step].State)
	}
}

func (v *watch) retried(old, r rollout.Rollout) {
	if r.Step != old.Step {
		v.blame(2, "a retry went from step %d to step %d", old.Step+1, r.Step+1)
	}
	if old.Condition == nil || !recoverable(old.Condition.Category) || old.Trip != nil || old.Edit != nil {
		v.blame(7, "a park that waits for a person was retried")
	}
	if since := v.w.engineNow().Sub(v.parked); since > 3*time.Hour+16*time.Minute && v.w.skew == 0 {
		v.blame(7, "a park was still retried after %v", since)
	}
}

// parks checks the reason of a park against what the meter said.
func (v *watch) parks(old, r rollout.Rollout) {
	v.w.stats.Parks++
	c := r.Condition
	if c == nil {
		v.blame(5, "parked without a condition")
		return
	}
	if c.Category == rollout.Internal {
		v.blame(7, "an internal error: %s", c.Message)
	}
	if c.Message == "" || r.Pause == nil || r.Pause.Reason == "" {
		v.blame(5, "%s says nothing", c.Category)
	}
	switch c.Category {
	case rollout.RoutingError:
		v.parksOnRouters(old)
	case rollout.EntitlementLapsed:
		v.parksOnBilling()
	case rollout.MetricRegression:
		if r.Trip != nil {
			break // the circuit breaker's readings are another matter
		}
		if got := v.verdict(r); got == breached || got == undecided {
			break
		}
		v.blame(5, "parked on a regression that the readings do not show")
	case rollout.MetricsUnavailable:
		if got := v.verdict(r); got == passes {
			v.blame(5, "parked without readings, and they were good")
		}
	default:
	}
	if old.State == rollout.Running || old.State == rollout.Stabilizing {
		if v.parked.IsZero() || !recoverable(c.Category) || v.lastTold(rollout.EventStepPassed, rollout.EventResumed, rollout.EventPromoted, rollout.EventStarted) {
			v.parked = v.w.engineNow()
		}
	}
}

// lastTold reports whether one of these is the newest event but the park's own and
// those that no retry resets.
func (v *watch) lastTold(types ...rollout.EventType) bool {
	for i := len(v.events) - 1; i >= 0; i-- {
		switch t := v.events[i].Type; {
		case slices.Contains(types, t):
			return true
		case t == rollout.EventRetried:
			return false
		}
	}
	return true
}

// ends checks what a finished rollout leaves.
func (v *watch) ends(r rollout.Rollout, c rollout.Change) {
	w := v.w
	if route, _ := w.routers.Serving(r.EndpointID); route.Pair != nil {
		v.blame(7, "%s with the pair still held", r.State)
	}
	if w.endpoint.Pair != nil {
		v.blame(7, "%s with the pair still in the record", r.State)
	}
	freed := false
	for _, e := range c.Endpoints {
		freed = freed || e.ActiveRollout == ""
	}
	if !freed {
		v.blame(7, "%s and the endpoint's slot is still taken", r.State)
	}
	if r.CompletedAt.IsZero() {
		v.blame(7, "%s without a time of completion", r.State)
	}
	if r.State == rollout.Canceled && len(v.frozen) > 0 && !slices.Contains(v.frozen, r.Percent) {
		v.blame(7, "a cancel at %v%% froze %d%%", v.frozen, r.Percent)
	}
	if r.State == rollout.Completed {
		v.completed(r)
	}
}

// completed checks that everything is on the target, and both sides are as planned.
func (v *watch) completed(r rollout.Rollout) {
	w := v.w
	route, _ := w.routers.Serving(r.EndpointID)
	if got := v.served(); r.Percent != 100 || got != 100 && v.readyIn(route, w.target.id) > 0 {
		v.blame(7, "completed at %d%%, %d%% is served", r.Percent, got)
	}
	for i, st := range r.Steps {
		if st.State != rollout.StepPassed && st.State != rollout.StepSkipped || st.CompletedAt.IsZero() {
			v.blame(2, "completed with step %d %s", i+1, st.State)
		}
	}
	if st := r.Steps[len(r.Steps)-1].State; st != rollout.StepPassed {
		v.blame(2, "completed with its last step %s", st)
	}
	if b := w.deployments[w.source.id].Bounds; !v.touched[w.source.id] && b.Max != v.spec.FinalSource {
		v.blame(4, "the source is left with bounds %d..%d, %d replicas shall stay", b.Min, b.Max, v.spec.FinalSource)
	}
	if b := w.deployments[w.target.id].Bounds; !v.touched[w.target.id] && (b.Min < v.plan.LandingMin || b.Max < v.plan.LandingMax) {
		v.blame(4, "the target is left with bounds %d..%d, planned %d..%d", b.Min, b.Max, v.plan.LandingMin, v.plan.LandingMax)
	}
}

// bounding checks a write of one side's bounds by the runner.
func (v *watch) bounding(was, is rollout.Deployment) {
	r, old, b := v.w.record, was.Bounds, is.Bounds
	if r.State != rollout.Running && r.State != rollout.Stabilizing {
		v.blame(7, "bounds of %s are written in %s", is.ID, r.State)
		return
	}
	if is.ID == r.Spec.Target {
		v.boundsBilled(old, b)
		v.boundsTarget(r, old, b)
		return
	}
	v.boundsSource(r, old, b)
}

func (v *watch) boundsTarget(r rollout.Rollout, old, b rollout.Bounds) {
	if b.Min < old.Min || b.Max < old.Max {
		v.blame(4, "the target is lowered from %d..%d to %d..%d", old.Min, old.Max, b.Min, b.Max)
	}
	if b.Max != old.Max {
		if v.lifts++; v.lifts > 1 || v.pinned[r.Spec.Target] && r.Lifted {
			v.blame(4, "the target's ceiling is lifted again, to %d", b.Max)
		}
	}
	if most := v.mostTarget(); b.Min > max(old.Min, most) {
		v.blame(4, "the target's floor goes to %d, the plan's most is %d", b.Min, most)
	}
}

// mostTarget is the highest floor that the plan gives the target.
func (v *watch) mostTarget() int {
	most := v.plan.LandingMin
	for _, rung := range v.plan.Rungs {
		most = max(most, rung.Target)
	}
	return most
}

// feasible checks, as the capacity check lets the first step go on, that the whole
// journey fits into what the engine was told last.
func (v *watch) feasible(old, r rollout.Rollout) {
	free, known := v.w.fleets.free[v.w.hardwareOf(v.w.target)]
	checked := old.Phase == rollout.PhaseChecking && r.Phase == rollout.PhaseScaling && r.Step == 0 && !old.Lifted
	if !checked || !known || free < 0 || v.w.shared {
		return
	}
	peak := 0
	for _, rung := range v.plan.Rungs {
		peak = max(peak, rung.Target)
	}
	if more := peak - v.plan.Target; more > free {
		v.blame(1, "the target is scaled, and %d more replicas do not fit into %d", more, free)
	}
}

func (v *watch) boundsSource(r rollout.Rollout, old, b rollout.Bounds) {
	if v.keeps(r, old, b) {
		return
	}
	w, percent := v.w, v.served()
	if b.Min > old.Min || b.Max > old.Max {
		v.blame(4, "the source is raised from %d..%d to %d..%d", old.Min, old.Max, b.Min, b.Max)
	}
	rung, ok := v.rungAt(percent)
	switch {
	case len(r.Conditions()) > 0 && percent > v.plan.Seed && percent < v.plan.Rungs[r.Step].Percent:
		v.keptForNow(r, old, b)
	case !ok:
		v.blame(3, "the source is drained to %d..%d at %d%%, before any step is served", b.Min, b.Max, percent)
		return
	case b.Min < min(old.Min, rung.Source) || b.Max < min(old.Max, rung.Source):
		v.blame(3, "the source is drained to %d..%d at %d%%, its share needs %d", b.Min, b.Max, percent, rung.Source)
	case rung.Percent < 100 && v.spec.Strategy != rollout.Rolling && b.Max < old.Max && b.Max*(100-v.plan.Seed) < v.plan.SourceMax*(100-percent):
		v.blame(4, "the source's ceiling shrinks to %d at %d%%, it was %d", b.Max, percent, v.plan.SourceMax)
	}
	if waited := w.engineNow().Sub(v.splitAt); waited < w.timings.Propagation && w.skew == 0 {
		v.blame(2, "the source is drained %v after the shift", waited)
	}
	if !w.routers.behind.IsZero() {
		v.blame(2, "the source is drained while the routers refuse the latest route")
	}
	if !w.routers.converged() && w.skew == 0 {
		v.blame(2, "the source is drained while routers still serve the split before")
	}
	if seen := min(w.fleets.seen[r.Spec.Target].Ready, w.deployments[r.Spec.Target].Bounds.Max); seen < v.needTarget(percent) {
		v.blame(3, "the source is drained at %d%% with %d target replica(s) ready of %d", percent, seen, v.needTarget(percent))
	}
}
