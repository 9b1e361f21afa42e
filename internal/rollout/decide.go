package rollout

import (
	"fmt"
	"time"
)

// Wants returns the readings that Decide needs at this instant. Most of the time
// there are none.
func Wants(r Rollout, now time.Time) []Query {
	if len(r.Spec.Rules) == 0 {
		return nil
	}
	switch r.Phase {
	case PhaseSoaking:
		if r.State == Stabilizing && r.peekDue(now) {
			return r.queries(now)
		}
	case PhaseGating:
		if (r.State == Running || r.State == Stabilizing) && !now.Before(r.gateAt()) {
			return r.queries(now)
		}
	case PhaseConfirming:
		if (r.State == Running || r.State == Stabilizing) && r.confirmDue(now) {
			return r.queries(now)
		}
	case PhaseChecking, PhaseScaling, PhaseShifting, PhasePropagating, PhaseDraining, PhaseReleasing:
	}
	return nil
}

// Decide says what follows from a rollout and what was observed at an instant:
// same input, same output. It makes at most one move; call it again with what is
// then observed until it changes nothing and asks for no effect.
func Decide(r Rollout, o Observed, now time.Time) Decision {
	d := &decider{r: r.clone(), o: o, now: now}
	d.recordSplit()
	if !d.changed {
		d.watchBreaker()
	}
	if !d.changed {
		d.decide()
	}
	if d.changed {
		d.r.UpdatedAt = now
	}
	return Decision{Rollout: d.r, Effects: d.effects, Events: d.events, Due: d.due, Changed: d.changed}
}

// decider carries one decision while it is made.
type decider struct {
	r       Rollout
	o       Observed
	now     time.Time
	effects []Effect
	events  []Event
	due     time.Time
	changed bool
}

func (d *decider) decide() {
	switch d.r.State {
	case Running, Stabilizing, SystemPaused:
		if d.unhealthy() {
			return
		}
	case Pending, Pausing, Paused, Cancelling, Canceled, Completed:
	}
	switch d.r.State {
	case Running, Stabilizing:
		d.work()
	case Pausing:
		d.halt()
	case SystemPaused:
		d.retry()
	case Cancelling:
		d.freeze()
	case Paused:
		// A person's pause keeps the engine from going on, not from serving: when
		// replicas die meanwhile, the split is held at what the others can carry. One
		// that a person set above the step's own is theirs.
		if d.r.Hold == nil && d.r.Percent > d.r.Rung().Percent {
			return
		}
		if d.reviseHold(); !d.changed {
			d.hold()
		}
	case Pending, Canceled, Completed:
		// Nothing to do: a person or nobody moves these.
	default:
		d.park(Internal, fmt.Sprintf("unknown state %q; report this with the rollout's id", d.r.State), nil)
	}
}

// recordSplit makes the record follow what the routers serve, in any state: a
// crash or a control may have come between the shift and its record.
func (d *decider) recordSplit() {
	s := d.o.Split
	if !s.Held || d.r.State.Terminal() || d.r.State == Pending {
		return
	}
	if s.Percent == d.r.Percent {
		return
	}
	e := d.r.event(d.now, EventTrafficShifted, "target traffic: %d%% → %d%%", d.r.Percent, s.Percent)
	e.OldPercent, e.NewPercent = ptr(d.r.Percent), ptr(s.Percent)
	d.tell(e)
	d.r.Percent, d.r.Generation = s.Percent, s.Generation
	switch on := s.Percent == d.r.Goal().Percent; {
	case on && d.r.Phase == PhaseShifting:
		d.enter(PhasePropagating)
	case !on && d.r.Phase.settled():
		d.displaced(*e.OldPercent)
	}
}

// displaced follows a split that left the step's own after it was served. The step
// is done again once the rollout goes on. A working rollout did not ask for it, so
// somebody else did: their split stays until a person says how to go on.
func (d *decider) displaced(from int) {
	d.r.SteadySince, d.r.Limit = time.Time{}, nil
	d.enter(PhaseChecking)
	if d.r.State == Running || d.r.State == Stabilizing {
		d.park(AbortedByOperator, fmt.Sprintf("the split was moved from %d%% to %d%% outside the rollout; it stays there. Resume to do step %d again at %d%%, or cancel to keep it", from, d.r.Percent, d.r.Step+1, d.r.Rung().Percent), nil)
	}
}

// work does the current phase of a running step.
func (d *decider) work() {
	if !d.o.Split.Held && d.r.Phase.settled() && d.r.Phase != PhaseReleasing {
		d.awaitReturn() // routers that began anew and refuse every route serve no step
		return
	}
	if d.routersFail() {
		return
	}
	switch d.r.Phase {
	case PhaseChecking:
		d.check()
	case PhaseScaling:
		d.scale()
	case PhaseShifting:
		d.shift()
	case PhasePropagating:
		d.propagate()
	case PhaseDraining:
		d.drain()
	case PhaseSoaking:
		d.soak()
	case PhaseGating:
		d.gate()
	case PhaseConfirming:
		d.confirm()
	case PhaseReleasing:
		d.release()
	default:
		d.park(Internal, fmt.Sprintf("unknown phase %q; report this with the rollout's id", d.r.Phase), nil)
	}
}

// halt ends a pause request: wherever the step is, its phase can be taken up
// again, so the executor parks at once.
func (d *decider) halt() {
	d.happen(Halted)
	if st := &d.r.Steps[d.r.Step]; st.State == StepRunning {
		st.State = StepPaused
	}
	reason := ""
	if d.r.Pause != nil {
		reason = d.r.Pause.Reason
	}
	d.tell(d.r.event(d.now, EventPaused, "paused at step %d of %d with %d%% on the target%s", d.r.Step+1, len(d.r.Steps), d.r.Percent, because(reason)))
}

// retry takes a recoverable park up again when its time has come. Until then the
// split is held at what the ready replicas can carry, whatever the park was for.
func (d *decider) retry() {
	if !d.r.RetryAt.IsZero() && d.now.Before(d.r.RetryAt) {
		d.wake(d.r.RetryAt)
	}
	if d.reviseHold(); d.changed {
		return
	}
	if d.hold(); len(d.effects) > 0 {
		return
	}
	if d.r.RetryAt.IsZero() || d.now.Before(d.r.RetryAt) {
		return
	}
	if d.now.After(d.r.RetryUntil) && d.now.After(d.r.RetryAt.Add(d.r.Timings.RetryInterval)) {
		d.r.RetryAt, d.changed = time.Time{}, true // missed for so long that it is a person's by now
		return
	}
	until := d.r.RetryUntil
	category := ""
	if c := d.r.Condition; c != nil {
		category = string(c.Category)
	}
	d.happen(RetryCame)
	d.r.goOn(d.now)
	d.r.RetryUntil = until
	d.changed = true
	d.tell(d.r.event(d.now, EventRetried, "retrying step %d of %d after %s", d.r.Step+1, len(d.r.Steps), category))
}

// hold brings the split down to what the record says the pair can carry. A split
// that somebody set lower still is left alone, and so is one that was set by breaking
// the glass.
func (d *decider) hold() {
	if h := d.r.Hold; h != nil && d.r.Edit == nil && d.o.Split.Held && d.o.Split.Percent > *h {
		d.act(Effect{Kind: SetSplit, Percent: *h})
	}
}

// reviseHold follows what the ready replicas can carry while the rollout is parked:
// more may die, and what was to be held may no longer be what can be served, or no
// longer be needed, by the time that the routers can be told.
func (d *decider) reviseHold() {
	if d.r.Trip != nil || d.r.Edit != nil {
		return // neither a tripped breaker nor a person's edit is revised
	}
	if !d.o.Split.Held || d.r.Percent <= d.r.Journey.Seed || d.returning() {
		return
	}
	source, target, hold := d.o.Source.serving(), d.o.Target.serving(), d.servable()
	pending := d.r.Hold != nil && *d.r.Hold < d.r.Percent
	switch {
	case hold == d.r.Percent && pending:
		d.r.Hold, d.changed = nil, true
	case hold < d.r.Percent && (!pending || *d.r.Hold != hold):
		d.r.Hold = ptr(hold)
		e := d.r.event(d.now, EventHeld, "holding %d%% on the target: %d source and %d target replica(s) are ready", hold, source, target)
		e.Level = LevelWarn
		d.tell(e)
	}
}

// freeze ends a cancel: what is being served becomes the standing split.
func (d *decider) freeze() {
	if d.o.Split.Held {
		d.act(Effect{Kind: ReleaseSplit, Percent: d.o.Split.Percent})
		return
	}
	d.happen(SplitFrozen)
	for i := d.r.Step; i < len(d.r.Steps); i++ {
		st := &d.r.Steps[i]
		switch {
		case st.State == StepPassed:
			continue // canceled between the last step and the end
		case i == d.r.Step:
			st.State = StepCanceled
		default:
			st.State = StepSkipped
		}
		st.CompletedAt = d.now
	}
	d.r.CompletedAt = d.now
	d.r.Pause, d.r.Limit = nil, nil
	d.tell(d.r.event(d.now, EventCanceledComplete, "canceled: traffic frozen at %d%%/%d%% (source/target)", 100-d.r.Percent, d.r.Percent))
}

// park stops the engine's own work and leaves the split as it is served.
func (d *decider) park(c Category, message string, rows []Row) {
	d.happen(Tripped)
	d.parked(c, message, rows)
}

// parked fills in why a rollout that has just been parked is, and tells it.
func (d *decider) parked(c Category, message string, rows []Row) {
	if d.r.Condition == nil || d.r.Condition.Category != Internal {
		d.r.Condition = &Condition{Category: c, Message: message, AtStep: d.r.Step, At: d.now, Rows: rows}
	}
	if st := &d.r.Steps[d.r.Step]; st.State == StepRunning {
		st.State = StepPaused
	}
	d.r.Pause = &PauseInfo{At: d.now, Reason: pauseReason(c, message)}
	d.r.RetryAt = time.Time{}
	if c.Recoverable() {
		if d.r.RetryUntil.IsZero() {
			d.r.RetryUntil = d.now.Add(d.r.Timings.RetryFor)
		}
		if at := d.now.Add(d.r.Timings.RetryInterval); !at.After(d.r.RetryUntil) {
			d.r.RetryAt = at
			d.wake(at)
		}
	}
	again := ""
	if (c == MetricRegression || c == MetricsUnavailable) && d.r.Attempts > 1 {
		again = fmt.Sprintf(" (attempt %d)", d.r.Attempts)
	}
	e := d.r.event(d.now, EventSystemPaused, "paused automatically at step %d of %d: %s%s", d.r.Step+1, len(d.r.Steps), headline(c), again)
	e.Level, e.Reason, e.Status = LevelWarn, d.r.Pause.Reason, string(c)
	d.tell(e)
}

// pauseReason gives the prefix that the platform's texts start with.
func pauseReason(c Category, message string) string {
	switch c {
	case MetricRegression:
		return "metrics-regression: " + message
	case MetricsUnavailable:
		return "metrics-unavailable: " + message
	case TargetNotReady, SourceNotDrained, HealthRegression, CapacityExhausted, RoutingError, DependencyOutage,
		AbortedByOperator, Internal, PolicyInfeasible, UnderServed, EntitlementLapsed:
	}
	return message
}

// headline is a park in a few words, for the feed.
func headline(c Category) string {
	switch c {
	case MetricRegression:
		return "a metric check failed"
	case MetricsUnavailable:
		return "metrics are unavailable"
	case TargetNotReady:
		return "the target did not become ready in time"
	case SourceNotDrained:
		return "the source did not drain in time"
	case HealthRegression:
		return "the target's health check failed"
	case CapacityExhausted:
		return "no capacity for the target"
	case RoutingError:
		return "the routers could not be told"
	case DependencyOutage:
		return "a dependency is unreachable"
	case AbortedByOperator:
		return "the split was changed by hand"
	case Internal:
		return "internal error"
	case PolicyInfeasible:
		return "an autoscaling limit is below what the step needs"
	case UnderServed:
		return "ready capacity is below a side's share"
	case EntitlementLapsed:
		return "the billing check failed"
	}
	return string(c)
}

// act asks for an effect, and says on which bounds it was decided.
func (d *decider) act(e Effect) {
	if e.Kind != ReleaseSplit {
		e.Seen = &Seen{Source: d.o.Source.Bounds, Target: d.o.Target.Bounds}
	}
	d.effects = append(d.effects, e)
}

func (d *decider) tell(e Event) { d.events, d.changed = append(d.events, e), true }
func (d *decider) enter(p Phase) {
	if d.r.enter(p, d.now); p == PhasePropagating {
		d.beginHealth()
	}
	d.changed = true
}
func (d *decider) happen(h Happening) {
	d.r.UpdatedAt = d.now
	d.r.happen(h)
	d.changed = true
}

// wake asks for another decision at an instant, at the latest.
func (d *decider) wake(at time.Time) {
	if d.due.IsZero() || at.Before(d.due) {
		d.due = at
	}
}
