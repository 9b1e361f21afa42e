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
	d.wake(d.r.nextPeek(d.now))
}

// peekStart is when the looks begin: the confirmation time before the soak ends.
func (r Rollout) peekStart() time.Time { return r.SoakEnds().Add(-r.Timings.Confirmation) }

// peekDue reports whether this instant is one of the looks: they are spaced from
// the first, so that a late or doubled wake-up does not add one.
func (r Rollout) peekDue(now time.Time) bool {
	if r.Timings.PeekEvery <= 0 || now.Before(r.peekStart()) || now.Before(r.SteadySince.Add(r.Timings.IngestionLag)) {
		return false
	}
	if n := len(r.Peeks); n > 0 {
		return !now.Before(r.Peeks[n-1].At.Add(r.Timings.PeekEvery))
	}
	return true
}

func (r Rollout) nextPeek(now time.Time) time.Time {
	if now.Before(r.peekStart()) {
		return r.peekStart()
	}
	return now.Add(r.Timings.PeekEvery)
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
	if at := d.r.PhaseSince.Add(d.r.Timings.GateSettle); d.now.Before(at) {
		d.wake(at)
		return
	}
	g := d.judge()
	switch g.Verdict() {
	case VerdictNone:
		d.tell(d.r.event(d.now, EventGateSkipped, "step %d of %d: no traffic on either side, the gate was skipped", d.r.Step+1, len(d.r.Steps)))
		d.pass()
	case VerdictPass:
		d.pass()
	case VerdictUnavailable:
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
		d.wake(d.r.Peeks[len(d.r.Peeks)-1].At.Add(d.r.Timings.PeekEvery))
		return
	}
	g := d.judge()
	d.r.Peeks = append(d.r.Peeks, Peek{At: d.now, Breached: g.Breached()})
	over := !d.now.Before(d.r.PhaseSince.Add(d.r.Timings.Confirmation))
	switch v := g.Verdict(); {
	case v == VerdictPass || v == VerdictNone:
		d.pass()
	case !over:
		d.wake(d.now.Add(d.r.Timings.PeekEvery))
	case v == VerdictUnavailable:
		d.park(MetricsUnavailable, firstReason(g.Rows, VerdictUnavailable), g.Rows)
	default:
		d.park(MetricRegression, firstReason(g.Rows, VerdictBreached), g.Rows)
	}
}

// confirmDue spaces the looks of the confirmation.
func (r Rollout) confirmDue(now time.Time) bool {
	n := len(r.Peeks)
	return n == 0 || !now.Before(r.Peeks[n-1].At.Add(r.Timings.PeekEvery))
}

// judge evaluates the gate and keeps its rows with the step.
func (d *decider) judge() Judgement {
	g := judgeAll(d.r.Spec.Rules, d.o.Readings)
	d.r.Steps[d.r.Step].Rows = g.Rows
	d.r.Attempts++
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

// pass records the step and goes on to the next, or to the end.
func (d *decider) pass() {
	st := &d.r.Steps[d.r.Step]
	st.State, st.CompletedAt = StepPassed, d.now
	d.r.RetryUntil = time.Time{}
	d.tell(d.r.event(d.now, EventStepPassed, "step %d of %d passed at %d%%", d.r.Step+1, len(d.r.Steps), d.r.Percent))
	if d.r.Last() {
		d.enter(PhaseReleasing)
		return
	}
	d.happen(StepBegan)
	d.r.Step++
	d.r.beginStep(d.now)
}

// release makes the pair's split the standing one and lands both sides.
func (d *decider) release() {
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
