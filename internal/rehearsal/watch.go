package rehearsal

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Violation is something that must never be.
type Violation struct {
	Guarantee int // of the design, section 4
	At        string
	Text      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s guarantee %d: %s", v.At, v.Guarantee, v.Text)
}

// watch checks what must never be, from what the ports saw. It has its own arithmetic:
// of the core it takes the plan that was stored at the start, and checks that first.
type watch struct {
	w          *World
	violations []Violation

	plan     rollout.Journey // as stored when the rollout began
	spec     rollout.Spec
	total    int  // replicas that stood at the start
	sameSize bool // the total is to be kept, and nothing took replicas away
	lifts    int
	pinned   map[string]bool // deployments whose maximum an operator has edited
	touched  map[string]bool // deployments of which an operator has edited anything

	health   health                            // of the target, in the current step
	last     int                               // percent that the first router served last
	splitAt  time.Time                         // engine's clock: the first router took the split that it serves
	readings map[rollout.Query]rollout.Reading // of one instant
	readAt   time.Time
	fresh    bool // since the record was last written

	breaker    map[rollout.Query]rollout.Reading // of one instant
	breakerAt  time.Time
	armedSince time.Time // engine's clock: start, or the last resume
	armedAt    time.Time // engine's clock: the breaker has had to look since
	armedLook  time.Time // engine's clock: when that was checked last
	glassLate  bool      // weights that somebody set before the start have not reached the first router
	glassShare float64   // of the endpoint, on the pair, as somebody set it by breaking the glass

	events    []rollout.Event // of the rollout, as stored
	since     int             // events before somebody last did something
	frozen    []int           // percents at which a cancel may end
	lacked    bool            // the rest of the target did not fit when the step went to a share for now
	heldAt    time.Time       // engine's clock: what is to be held was stored
	parked    time.Time       // when the first of a row of recoverable parks came
	lastFault time.Time       // when a port last changed its mind
	awaits    time.Time       // engine's clock: until then a restarted engine takes missing replicas for returning ones
}

func newWatch(w *World) *watch {
	return &watch{w: w, pinned: map[string]bool{}, touched: map[string]bool{}, readings: map[rollout.Query]rollout.Reading{}}
}

const maxViolations = 20

func (v *watch) blame(guarantee int, format string, args ...any) {
	if len(v.violations) < maxViolations {
		v.violations = append(v.violations, Violation{guarantee, clock(v.w.now), fmt.Sprintf(format, args...)})
	}
}

// disturbed says that replicas went by somebody else's doing.
func (v *watch) disturbed() { v.sameSize = false }

// acted says that the script or a person did something: the same events may come again.
func (v *watch) acted() { v.since = len(v.events) }

// faulty says that a port began or ceased to fail.
func (v *watch) faulty() {
	v.lastFault = v.w.now
	v.acted()
}

// restarted says that the engine began anew: for as long as a start may take, it waits
// for replicas that served before.
func (v *watch) restarted() {
	v.w.billing.forget()
	budget := time.Duration(0)
	for _, s := range v.w.sides {
		budget = max(budget, s.budget)
	}
	v.awaits = v.w.engineNow().Add(budget + v.w.timings.ReadyDeadline + v.w.poll + 20*time.Second)
}

// edited says that an operator edits a side's bounds.
func (v *watch) edited(s *side, b rollout.Bounds) {
	v.disturbed()
	v.touched[s.id] = true
	if b.Max != v.w.deployments[s.id].Bounds.Max {
		v.pinned[s.id] = true
	}
}

// accepted checks that an accepted control is in the record.
func (v *watch) accepted(name string, r rollout.Rollout) {
	now := v.w.record
	if now.ID == r.ID && now.Version < r.Version {
		v.blame(8, "a %s was accepted as version %d, and the record is at %d", name, r.Version, now.Version)
	}
}

// calm reports whether no port has been failing for long enough that the engine has
// taken up everything it put off.
func (v *watch) calm() bool {
	w := v.w
	down := w.store.down || w.store.fails > 0 || w.store.loses > 0 || w.power.slow > 0 || w.fleets.down || w.fleets.deaf || w.routers.failing != ""
	return !down && w.retry.IsZero() && w.now.Sub(v.lastFault) > w.poll+20*time.Second
}

// rests checks what holds whenever nothing more happens at an instant.
func (v *watch) rests() {
	w := v.w
	r := w.record
	if r.ID == "" {
		return
	}
	v.restsBehind(r)
	v.restsHealthy(r)
	if n := w.ready(w.source) + w.ready(w.target); v.sameSize && !r.State.Terminal() && n < v.total {
		v.blame(1, "%d replicas are ready in a same-size swap of %d", n, v.total)
	}
	if !v.calm() || r.State.Terminal() || r.State == rollout.Pending {
		return
	}
	v.restsWayBack(r)
	switch r.State {
	case rollout.Cancelling:
		v.blame(7, "a cancel is not done at once")
	case rollout.Pausing:
		v.blame(7, "a pause is not done at once")
	case rollout.Running, rollout.Stabilizing:
		v.restsWorking(r)
	case rollout.SystemPaused:
		v.restsParked(r)
	default:
	}
	if r.State.Parked() && v.w.engineNow().After(v.awaits) {
		v.restsHeld(r)
	}
}

// restsWorking checks that a step that serves its split has the capacity for it.
func (v *watch) restsWorking(r rollout.Rollout) {
	switch r.Phase {
	case rollout.PhasePropagating, rollout.PhaseDraining, rollout.PhaseSoaking, rollout.PhaseGating, rollout.PhaseConfirming:
	default:
		return
	}
	v.restsForNow(r)
	percent := v.served()
	if percent <= v.plan.Seed || !v.w.engineNow().After(v.awaits) {
		return
	}
	if n, need := v.able(v.w.target), v.needTarget(percent); n < need {
		v.blame(3, "%s goes on at %d%% with %d target replica(s) ready of %d", r.Phase, percent, n, need)
	}
	if r.Phase == rollout.PhaseGating && v.w.engineNow().Sub(r.PhaseSince) > r.Timings.GateSettle+time.Minute {
		v.blame(5, "the gate has no verdict after %v", v.w.engineNow().Sub(r.PhaseSince))
	}
}

// restsParked checks the retries of a recoverable park.
func (v *watch) restsParked(r rollout.Rollout) {
	if r.Condition == nil {
		v.blame(5, "parked without a condition")
		return
	}
	if !recoverable(r.Condition.Category) || r.Edit != nil { // somebody's edit stops the retries
		return
	}
	waited := v.w.engineNow().Sub(r.Condition.At)
	if left := 3*time.Hour - v.w.engineNow().Sub(v.parked); waited > 16*time.Minute && left > 16*time.Minute && v.w.now.Sub(v.lastFault) > 16*time.Minute {
		v.blame(7, "%s was not retried for %v", r.Condition.Category, waited)
	}
}

// restsHeld checks that a parked rollout serves no more than the target can carry, if
// there is a lower split that both sides can.
func (v *watch) restsHeld(r rollout.Rollout) {
	percent := v.served()
	if r.Edit != nil || percent > v.plan.Rungs[r.Step].Percent {
		return // somebody's edit stands, or did until a pause came before the step's own split
	}
	if route, _ := v.w.routers.Serving(r.EndpointID); route.Pair == nil {
		return // it is released already
	}
	if percent <= v.plan.Seed || v.able(v.w.target) >= v.needTarget(percent) {
		return
	}
	for p := percent - 1; p >= v.plan.Seed; p-- {
		if v.strictlyServable(p) {
			v.blame(3, "%s serves %d%% on %d target replica(s), and %d%% could be served", r.State, percent, v.able(v.w.target), p)
			return
		}
	}
}

// working reports whether the engine works at a step.
func working(r rollout.Rollout) bool {
	return r.State == rollout.Running || r.State == rollout.Stabilizing
}

// served is what the first router serves of the pair.
func (v *watch) served() int { return v.w.routers.percent(v.w.routers.copies[0].route) }

// able counts the replicas of a side that answer and are meant to stay.
func (v *watch) able(s *side) int {
	return min(v.w.ready(s), v.w.deployments[s.id].Bounds.Max)
}

// needTarget is the least that a target must have ready for a share: the share rounded
// up, or fewer where a step at it or above asked for fewer.
func (v *watch) needTarget(percent int) int {
	n := 0
	for n*100 < v.plan.FinalTarget*percent {
		n++
	}
	for _, st := range v.spec.Steps {
		if st.Percent >= percent && st.Replicas != nil && st.Percent < 100 {
			n = min(n, *st.Replicas)
		}
	}
	return n
}

// strictlyServable reports whether both sides can carry a split without any allowance.
func (v *watch) strictlyServable(percent int) bool {
	left := 100 - v.plan.Seed
	return v.able(v.w.source)*left >= v.plan.Source*(100-percent) && v.able(v.w.target)*100 >= v.plan.FinalTarget*percent
}

// recoverable are the categories that the platform says it retries.
func recoverable(c rollout.Category) bool {
	switch c {
	case rollout.MetricsUnavailable, rollout.TargetNotReady, rollout.CapacityExhausted, rollout.RoutingError,
		rollout.DependencyOutage, rollout.UnderServed, rollout.EntitlementLapsed:
		return true
	default:
		return false
	}
}
