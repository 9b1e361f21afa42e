package rollout

import (
	"fmt"
	"slices"
	"time"
)

// soak holds the split. In the last stretch the gate already looks, each time over
// the part of this step's steady state that is complete, so that a breach at the
// end can be told from a blip without making a healthy step longer.
func (d *decider) soak() {
	if d.underServedNow() {
		return
	}
	end := d.r.SoakEnds()
	if !d.now.Before(end) {
		d.enter(PhaseGating)
		return
	}
	d.wake(end)
	if len(d.r.Spec.Rules) == 0 {
		return
	}
	if d.r.peekDue(d.now) {
		g := judgeAll(d.r.Spec.Rules, d.o.Readings)
		peek := Peek{At: d.now}
		if v := g.Verdict(); v == VerdictPass || v == VerdictBreached {
			peek.Breached = g.Breached()
			d.r.Peeks = append(d.r.Peeks, peek)
			d.changed = true
		}
	}
	if at := d.r.nextPeek(d.now); at.Before(end) {
		d.wake(at)
	}
}

// gateAt is when the gate is judged: once the window's last slot is closed.
func (r Rollout) gateAt() time.Time { return r.PhaseSince.Add(r.Timings.GateSettle) }

// peekStart is when the looks begin: the confirmation time before the soak ends.
func (r Rollout) peekStart() time.Time { return r.SoakEnds().Add(-r.Timings.Confirmation) }

// lookEvery is the time between two looks; without a spacing there is only the one
// that decides.
func (r Rollout) lookEvery() time.Duration {
	if r.Timings.PeekEvery > 0 {
		return r.Timings.PeekEvery
	}
	return max(r.Timings.Confirmation, time.Nanosecond)
}

// peekDue reports whether this instant is one of the looks: they are spaced from
// the first, so that a late or doubled wake-up does not add one. A look at nothing
// complete yet is none.
func (r Rollout) peekDue(now time.Time) bool {
	if r.Timings.PeekEvery <= 0 || now.Before(r.peekStart()) || !now.Before(r.SoakEnds()) || !now.After(r.SteadySince.Add(r.Timings.IngestionLag)) {
		return false
	}
	if n := len(r.Peeks); n > 0 {
		return !now.Before(r.Peeks[n-1].At.Add(r.lookEvery()))
	}
	return true
}

// nextPeek returns when to look next, after now.
func (r Rollout) nextPeek(now time.Time) time.Time {
	if now.Before(r.peekStart()) {
		return r.peekStart()
	}
	if n := len(r.Peeks); n > 0 {
		if at := r.Peeks[n-1].At.Add(r.lookEvery()); at.After(now) {
			return at
		}
	}
	return now.Add(r.lookEvery())
}

// gate judges the window. It settles first, until the window's last slot is closed.
func (d *decider) gate() {
	if d.underServedNow() {
		return
	}
	if len(d.r.Spec.Rules) == 0 {
		d.pass()
		return
	}
	if at := d.r.gateAt(); d.now.Before(at) {
		d.wake(at)
		return
	}
	g := d.judge()
	d.r.Attempts++
	switch g.Verdict() {
	case VerdictNone:
		d.tell(d.r.event(d.now, EventGateSkipped, "step %d of %d: no traffic on either side, the gate was skipped", d.r.Step+1, len(d.r.Steps)))
		d.pass()
	case VerdictPass:
		d.pass()
	case VerdictUnavailable:
		if d.soakAgain() {
			return
		}
		d.park(MetricsUnavailable, firstReason(g.Rows, VerdictUnavailable), g.Rows)
	case VerdictBreached:
		if d.confirmedByPeeks(g.Breached()) {
			d.park(MetricRegression, firstReason(g.Rows, VerdictBreached), g.Rows)
			return
		}
		d.r.Peeks = append(d.r.Peeks, Peek{At: d.now, Breached: g.Breached()})
		d.enter(PhaseConfirming)
	}
}

// confirm looks again at a breach with which the earlier looks did not agree.
func (d *decider) confirm() {
	if d.underServedNow() {
		return
	}
	if !d.r.confirmDue(d.now) {
		d.wake(d.r.confirmAt())
		return
	}
	g := d.judge()
	d.r.Peeks = append(d.r.Peeks, Peek{At: d.now, Breached: g.Breached()})
	over := !d.now.Before(d.r.PhaseSince.Add(d.r.Timings.Confirmation))
	switch v := g.Verdict(); {
	case v == VerdictPass:
		d.pass()
	case !over:
		d.wake(d.r.confirmAt())
	case v == VerdictBreached:
		d.park(MetricRegression, firstReason(g.Rows, VerdictBreached), g.Rows)
	case v == VerdictUnavailable:
		if d.soakAgain() {
			return
		}
		d.park(MetricsUnavailable, firstReason(g.Rows, VerdictUnavailable), g.Rows)
	default:
		d.park(MetricsUnavailable, "a breach was seen, and the traffic ended before it could be confirmed", g.Rows)
	}
}

// soakAgain begins the soak anew after a restart of the engine has left a gap in this
// step's readings: they are whole from its start on. Each restart costs at most one.
func (d *decider) soakAgain() bool {
	gap := slices.ContainsFunc(d.o.Readings, func(r Reading) bool { return !r.Complete })
	if !gap || !d.o.Since.After(d.r.SteadySince) {
		return false
	}
	d.r.SteadySince, d.r.Peeks = d.o.Since, nil
	d.tell(d.r.event(d.now, EventSoakAgain, "step %d of %d soaks again: a restart left a gap in its readings", d.r.Step+1, len(d.r.Steps)))
	if d.r.State == Running {
		d.happen(SoakBegan)
	}
	d.enter(PhaseSoaking)
	return true
}

// confirmAt is when the confirmation looks next.
func (r Rollout) confirmAt() time.Time {
	at := r.PhaseSince.Add(r.Timings.Confirmation)
	if n := len(r.Peeks); n > 0 {
		if next := r.Peeks[n-1].At.Add(r.lookEvery()); next.Before(at) {
			return next
		}
	}
	return at
}

// confirmDue spaces the looks of the confirmation.
func (r Rollout) confirmDue(now time.Time) bool { return !now.Before(r.confirmAt()) }

// judge evaluates the gate and keeps its rows with the step.
func (d *decider) judge() Judgement {
	g := judgeAll(d.r.Spec.Rules, d.o.Readings)
	d.r.Steps[d.r.Step].Rows = g.Rows
	d.changed = true
	return g
}

// confirmedByPeeks reports whether every look saw one and the same breach.
func (d *decider) confirmedByPeeks(breached []int) bool {
	if len(d.r.Peeks) == 0 {
		return d.r.Timings.Confirmation <= 0
	}
	for _, rule := range breached {
		agree := true
		for _, p := range d.r.Peeks {
			agree = agree && slices.Contains(p.Breached, rule)
		}
		if agree {
			return true
		}
	}
	return false
}

// pass records the step and goes on to the next, or to the end. A source that was held
// whole until the last gate is drained first.
func (d *decider) pass() {
	if d.r.Last() && d.r.HoldsSource() {
		d.letGo()
		return
	}
	st := &d.r.Steps[d.r.Step]
	st.State, st.CompletedAt = StepPassed, d.now
	d.r.RetryUntil = time.Time{}
	d.tell(d.r.event(d.now, EventStepPassed, "step %d of %d passed at %d%%", d.r.Step+1, len(d.r.Steps), d.r.Percent))
	if d.r.Last() {
		d.enter(PhaseReleasing)
		return
	}
	d.happen(StepBegan)
	d.r.Step, d.r.Attempts = d.r.Step+1, 0
	d.r.beginStep(d.now)
}

// release makes the pair's split the standing one and lands both sides.
func (d *decider) release() {
	if d.o.Split.Held && d.routingFails() {
		return
	}
	if d.lapsed() {
		return
	}
	j := d.r.Journey
	if b := d.o.Target.Bounds; b.Min < min(j.LandingMin, b.Max) {
		d.act(Effect{Kind: SetBounds, Deployment: d.r.Spec.Target, Min: ptr(min(j.LandingMin, b.Max))})
	}
	if d.o.Split.Held {
		d.act(Effect{Kind: ReleaseSplit, Percent: 100})
	}
	if len(d.effects) > 0 {
		return
	}
	d.happen(LastPassed)
	d.r.CompletedAt = d.now
	d.tell(d.r.event(d.now, EventCompleted, "completed: 100%% of the pair's traffic on the target, source at %d replica(s)", d.o.Source.Scheduled))
}

func firstReason(rows []Row, v Verdict) string {
	for _, row := range rows {
		if row.Verdict == v && row.Reason != "" {
			return row.Reason
		}
	}
	return fmt.Sprintf("the gate is %s", v)
}
