package rollout_test

import (
	"fmt"
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// watch checks what must never be, after every change of a world. Violations are
// gathered as text, so that a test can say which world they were found in.
type watch struct {
	w          *world
	violations []string

	journey   Journey
	total     int  // replicas of both sides at the start
	sameSize  bool // the journey keeps the total, and nothing took replicas away
	lifts     int  // writes of the target's ceiling
	lastQuery time.Time
	since     int // events before the script last did something

	breaker []lookAt // what the breaker read at the last instant
	drained bool     // the source of this rollout was given up by the engine

	most  occasions // of the target's failures in the current step, from every look
	least occasions // and from the looks at rest in settled phases

	seenInfeasible int // parks on an operator's limit that a patient operator met
}

func (v *watch) blame(format string, args ...any) {
	v.violations = append(v.violations, clock(v.w.now)+" "+fmt.Sprintf(format, args...))
}

// begin starts watching a new rollout.
func (v *watch) begin(j Journey) {
	v.journey, v.total, v.lifts, v.lastQuery = j, j.Source+j.Target, 0, time.Time{}
	v.sameSize = j.FinalTarget >= v.total && j.FinalSource == 0 && v.w.source.count(ready)+v.w.target.count(ready) >= v.total
	v.w.source.touched, v.w.target.touched, v.w.target.pinnedMax = false, false, false
	v.w.source.pinnedMax, v.drained, v.breaker = false, false, nil
	v.most, v.least = occasions{}, occasions{}
}

// disturbed says that replicas went by somebody else's doing.
func (v *watch) disturbed() { v.sameSize = false }

// looked checks the levels that hold at every instant.
func (v *watch) looked() {
	if n := v.w.source.count(ready) + v.w.target.count(ready); v.sameSize && n < v.total {
		v.blame("capacity: %d replicas are ready in a same-size swap of %d", n, v.total)
	}
	if r := v.w.record(); r.State == Pending && v.lifts > 0 {
		v.blame("start: bounds were written before the start")
	}
}

// splitting checks a split at the instant at which it is asked for.
func (v *watch) splitting(r Rollout, percent int) {
	if v.w.router.held && v.w.router.asked == percent {
		return // on its way already
	}
	v.splittingParked(r, percent)
	if r.State == Pending || r.State.Terminal() || r.State == Pausing || r.State == Cancelling {
		v.blame("split: asked for %d%% in %s", percent, r.State)
	}
	served := v.w.router.served
	source, target := v.w.source.count(ready), v.w.target.count(ready)
	switch {
	case percent > served:
		if r.State != Running && r.State != Stabilizing {
			v.blame("split: raised to %d%% in %s", percent, r.State)
		}
		if !v.forNow(r, percent) && (percent != r.Rung().Percent || target < r.Rung().Need) || target < enough(r, percent) {
			v.blame("split: %d%% on a target with %d ready, step %d needs %d", percent, target, r.Step+1, r.Rung().Need)
		}
	case percent < served && r.Trip == nil && (r.State == SystemPaused || r.State == Paused):
		if n := r.Journey.NeedAt(percent); source < n.Source {
			v.blame("split: held at %d%% with %d source replicas ready of %d", percent, source, n.Source)
		}
	}
}

// forNow reports whether a share is one to which a limited step may advance: below the
// step's own, while the rest of the target cannot be placed.
func (v *watch) forNow(r Rollout, percent int) bool {
	t, free := v.w.target, v.w.free()
	lack := r.Rung().Target - (len(t.replicas) - t.count(draining))
	return percent < r.Rung().Percent && r.Limit != nil && (t.unplaced > 0 || free >= 0 && lack > free)
}

// enough is what the target needs for a share, worked out apart from the core: the
// share rounded up, or what the step asked for instead. The share that stood at the start
// is served by what stood then, also where somebody moved the split away and it comes back.
func enough(r Rollout, percent int) int {
	n := (r.Journey.FinalTarget*percent + 99) / 100
	if percent <= r.Journey.Seed {
		n = min(n, r.Journey.Target)
	}
	for _, st := range r.Spec.Steps {
		if st.Percent >= percent && st.Replicas != nil && st.Percent < 100 {
			n = min(n, *st.Replicas)
		}
	}
	return n
}

// settled checks what holds whenever the runner has nothing more to do at once.
func (v *watch) settled(r Rollout) {
	target := v.w.target.count(ready)
	working := r.State == Running || r.State == Stabilizing
	switch r.Phase {
	case PhasePropagating, PhaseDraining, PhaseSoaking, PhaseGating, PhaseConfirming:
		if working && v.w.router.served == r.Percent && target < enough(r, r.Percent) {
			v.blame("capacity: %s at %d%% with %d target replicas ready, not %d", r.Phase, r.Percent, target, enough(r, r.Percent))
		}
	case PhaseChecking, PhaseScaling, PhaseShifting, PhaseReleasing:
	}
	if steady := r.Phase == PhaseSoaking || r.Phase == PhaseGating || r.Phase == PhaseConfirming; working && steady && r.Percent != r.Rung().Percent {
		v.blame("step: %s at %d%%, a part of the step's %d%%", r.Phase, r.Percent, r.Rung().Percent)
	}
	if b := v.w.router.behind; working && !b.IsZero() && r.Phase != PhaseChecking && r.Phase != PhaseScaling && r.Phase != PhaseShifting && r.Phase != PhaseReleasing && v.w.now.Sub(b) >= time.Minute {
		v.blame("routers: %s goes on while they are behind since %s", r.Phase, clock(b))
	}
	v.settledHealth(r)
	still := v.w.router.failing == "" && v.w.router.lands.IsZero()
	if h := r.Hold; h != nil && r.State.Parked() && still && v.w.router.served > *h {
		v.blame("hold: %d%% is served while %d%% shall be held", v.w.router.served, *h)
	}
	if r.State == Cancelling && still || r.State == Pausing {
		v.blame("control: still %s", r.State)
	}
}

func (v *watch) releasing(r Rollout, percent int) {
	if percent != v.w.router.served {
		v.blame("release: %d%% released while %d%% is served", percent, v.w.router.served)
	}
	if r.State != Cancelling && percent != 100 {
		v.blame("release: %d%% released in %s", percent, r.State)
	}
}

// bounding checks a write of one side's bounds.
func (v *watch) bounding(r Rollout, s *side, old, b Bounds) {
	if r.State != Running && r.State != Stabilizing {
		v.blame("bounds: written in %s", r.State)
	}
	if s == v.w.target {
		if b.Min > old.Min && v.w.lapse != "" {
			v.blame("billing: target scaled up from %v to %v while it says %s", old, b, v.w.lapse)
		}
		if b.Min < old.Min || b.Max < old.Max {
			v.blame("bounds: target lowered from %v to %v", old, b)
		}
		if b.Max != old.Max {
			if v.lifts++; v.lifts > 1 || s.pinnedMax && r.Lifted {
				v.blame("bounds: target ceiling lifted again, to %d", b.Max)
			}
		}
		return
	}
	if held(r) && v.boundingHeld(r, old, b) {
		return
	}
	if b.Min > old.Min || b.Max > old.Max {
		v.blame("bounds: source raised from %v to %v", old, b)
	}
	if n := r.Journey.NeedAt(v.w.router.served); b.Max < n.Source || b.Min < min(old.Min, n.Source) {
		v.blame("bounds: source drained to %v, its share at %d%% needs %d", b, v.w.router.served, n.Source)
	}
	if total := v.w.target.count(ready) + b.Min; r.Limit != nil && b.Min < min(old.Min, r.Journey.Source) && total < r.Journey.Source+r.Journey.Target {
		v.blame("bounds: source drained to %v at a part of the step's share: %d replicas are left of %d", b, total, r.Journey.Source+r.Journey.Target)
	}
	if b.Max < r.Spec.FinalSource {
		v.blame("bounds: source drained to %v, %d shall stay", b, r.Spec.FinalSource)
	}
	if !v.w.router.behind.IsZero() {
		v.blame("bounds: source drained while the routers are behind since %s", clock(v.w.router.behind))
	}
	if r.Phase != PhaseDraining {
		v.blame("bounds: source drained in %s", r.Phase)
	}
}

// queried checks that a gate looks only at complete data of its step's steady state.
func (v *watch) queried(r Rollout, q Query) {
	v.lastQuery = v.w.now
	v.w.meter.queries = append(v.w.meter.queries, asked{v.w.now, q})
	if q.To.After(v.w.now.Add(-r.Timings.IngestionLag)) {
		v.blame("gate: window ends %v before now, inside the ingestion lag", v.w.now.Sub(q.To))
	}
	if q.From.Before(r.SteadySince) || r.SteadySince.IsZero() || !q.From.Before(q.To) {
		v.blame("gate: window %s to %s reaches out of the steady state since %s", clock(q.From), clock(q.To), clock(r.SteadySince))
	}
	if h := v.w.router.history; v.w.router.served == r.Percent && h[len(h)-1].since.After(q.From) {
		v.blame("gate: window from %s reads the split before %s", clock(q.From), clock(h[len(h)-1].since))
	}
}

// committed checks one write of the record.
func (v *watch) committed(old, r Rollout, events []Event) {
	if old.State == "" {
		return
	}
	v.checkMove(old, r)
	v.checkWayBack(old, r)
	v.checkHealth(old, r, events)
	if r.State == Canceled || r.State == Completed {
		v.checkEnd(r)
	}
	for i := range r.Steps {
		if old.Steps[i].State != StepPassed && r.Steps[i].State == StepPassed {
			v.checkPassed(old, r, i)
		}
	}
	v.checkTold(len(events))
	if c := r.Condition; c != nil && old.Condition == nil && c.Category == RoutingError && old.Phase == PhaseSoaking {
		if b := v.w.router.behind; b.IsZero() || v.w.now.Sub(b) < time.Minute {
			v.blame("routers: parked in the soak, behind since %s", clock(b))
		}
	}
	if c := r.Condition; c != nil && old.Condition == nil && r.Trip == nil && c.Category == MetricRegression && v.lastQuery.Before(r.SoakEnds()) {
		v.blame("gate: judged at %s before the soak's end %s", clock(v.lastQuery), clock(r.SoakEnds()))
	}
	if r.Condition != nil && r.Condition.Category == Internal {
		v.blame("internal: %s", r.Condition.Message)
	}
}

// checkTold checks that none of the newest n events was told before, at the same
// instant and since the script last did something.
func (v *watch) checkTold(n int) {
	for i := len(v.w.events) - n; i < len(v.w.events); i++ {
		e := v.w.events[i]
		for j := i - 1; j >= v.since && v.w.events[j].At.Equal(e.At); j-- {
			if same(v.w.events[j], e) {
				v.blame("feed: %s is told twice: %s", e.Type, e.Message)
			}
		}
	}
}

func same(a, b Event) bool {
	step := a.Step == nil && b.Step == nil || a.Step != nil && b.Step != nil && *a.Step == *b.Step
	return step && a.At.Equal(b.At) && a.Type == b.Type && a.Message == b.Message && a.Subject == b.Subject
}

// checkMove checks that the state moved along the table, at most two edges in one
// write (a retry that goes on with a soak), and that a person's pause holds.
func (v *watch) checkMove(old, r Rollout) {
	if old.ID != r.ID || old.State == r.State {
		return
	}
	if !linked(old.State, r.State, 2) {
		v.blame("state: %s → %s is not in the table", old.State, r.State)
	}
}

func linked(from, to State, edges int) bool {
	for _, h := range happenings() {
		next, ok := Next(from, h)
		if ok && (next == to || edges > 1 && linked(next, to, edges-1)) {
			return true
		}
	}
	return false
}

func happenings() []Happening {
	return []Happening{AskedStart, AskedPause, AskedResume, AskedPromote, AskedCancel, SoakBegan, StepBegan, Halted, Tripped, RetryCame, SplitFrozen, LastPassed, DrainBegan, GlassBroken}
}

// checkEnd checks what a finished rollout leaves.
func (v *watch) checkEnd(r Rollout) {
	if v.w.router.held {
		v.blame("end: %s with the pair still held", r.State)
	}
	if r.Percent != v.w.router.served {
		v.blame("end: the record says %d%%, %d%% is served", r.Percent, v.w.router.served)
	}
	if r.CompletedAt.IsZero() {
		v.blame("end: no time of completion")
	}
	if r.State != Completed {
		return
	}
	if r.Percent != 100 || r.Steps[len(r.Steps)-1].State != StepPassed {
		v.blame("end: completed at %d%%, last step %s", r.Percent, r.Steps[len(r.Steps)-1].State)
	}
	for i, st := range r.Steps {
		if st.State != StepPassed && st.State != StepSkipped || st.CompletedAt.IsZero() {
			v.blame("end: completed with step %d %s", i+1, st.State)
		}
	}
	if b := v.w.source.bounds; !v.w.source.touched && b.Max != r.Spec.FinalSource {
		v.blame("end: the source's bounds are %v, %d replicas shall stay", b, r.Spec.FinalSource)
	}
	if b := v.w.target.bounds; !v.w.target.touched && (b.Min < r.Journey.LandingMin || b.Max < r.Journey.LandingMax) {
		v.blame("end: the target's bounds are %v, planned %d..%d", b, r.Journey.LandingMin, r.Journey.LandingMax)
	}
}

// checkPassed checks that a step which is recorded as passed went its whole way.
func (v *watch) checkPassed(old, r Rollout, i int) {
	if i != old.Step {
		v.blame("step %d passed while step %d is under way", i+1, old.Step+1)
	}
	if percent := r.Journey.Rungs[i].Percent; v.w.router.served != percent || r.Percent != percent {
		v.blame("step %d passed at %d%%, %d%% is served", i+1, percent, v.w.router.served)
	}
	if held := v.w.now.Sub(old.SteadySince); old.SteadySince.IsZero() || held < r.Journey.Soak {
		v.blame("step %d passed after a soak of %v, not %v", i+1, held, r.Journey.Soak)
	}
	for _, rule := range r.Spec.Rules {
		window := rule.Window
		if window == 0 {
			window = v.w.timings.DefaultWindow
		}
		if held := v.w.now.Sub(old.SteadySince); held < window+v.w.timings.IngestionLag {
			v.blame("step %d passed after %v, its window is %v", i+1, held, window)
		}
	}
	for _, row := range r.Steps[i].Rows {
		if row.Verdict == VerdictPass && row.TargetSamples < map[int]int{0: 1, 50: 2, 95: 20, 99: 100}[row.Rule.Percentile] {
			v.blame("step %d passed on %d samples", i+1, row.TargetSamples)
		}
		if row.Verdict != VerdictPass && row.Verdict != VerdictNone {
			v.blame("step %d passed with %s %s", i+1, row.Rule.Metric, row.Verdict)
		}
	}
	if len(r.Spec.Rules) > 0 && (len(r.Steps[i].Rows) != len(r.Spec.Rules) || !v.lastQuery.Equal(v.w.now) && !v.drained || v.lastQuery.Before(old.SoakEnds())) {
		v.blame("step %d passed without a judgement after its soak", i+1)
	}
	v.checkOrder(i)
}

// checkOrder checks the order of a step in the feed, from its last beginning:
// scaled, healthy, shifted, propagated for its full wait, drained, passed.
func (v *watch) checkOrder(i int) {
	at := map[EventType]time.Time{}
	order := map[EventType]int{}
	for n, e := range v.w.events {
		if e.Subject != v.w.record().ID || e.Step == nil || *e.Step != i {
			continue
		}
		if e.Type == EventTargetScaled {
			clear(order)
		}
		order[e.Type], at[e.Type] = n+1, e.At
	}
	last := 0
	for _, t := range v.stages(i) {
		if order[t] <= last {
			v.blame("order: step %d passed without %s in its place", i+1, t)
		}
		last = order[t]
	}
	if n := order[EventTrafficShifted]; n > order[EventPropagated] {
		v.blame("order: step %d shifted after it had propagated", i+1)
	}
	if waited := at[EventPropagated].Sub(v.w.router.history[len(v.w.router.history)-1].since); waited < v.w.timings.Propagation {
		v.blame("order: step %d drained %v after its shift", i+1, waited)
	}
}
