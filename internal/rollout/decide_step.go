package rollout

import (
	"fmt"
	"time"
)

// check asks whether the step can be done at all, before anything is touched: at
// the first step for the whole journey, later for this step's scale-up.
func (d *decider) check() {
	rung := d.r.Rung()
	if !d.o.Split.Held {
		// From here on the pair's split is a share, not weights: a target that wakes
		// up with a weight left over must not be given traffic by it.
		if d.routingFails() {
			return
		}
		d.act(Effect{Kind: SetSplit, Percent: d.r.Percent})
		return
	}
	if d.r.Lifted && d.o.Target.Bounds.Max < rung.Need {
		d.park(PolicyInfeasible, fmt.Sprintf("the target's maximum is %d replicas and step %d needs %d; raise it and resume, or cancel and start again with a lower final count. The split stays at %d%%", d.o.Target.Bounds.Max, d.r.Step+1, rung.Need, d.r.Percent), nil)
		return
	}
	extra := rung.Target - d.o.Target.live()
	scope, standing := fmt.Sprintf("step %d", d.r.Step+1), fmt.Sprintf("the split stays at %d%%", d.r.Percent)
	if d.r.Step == 0 && !d.r.Lifted {
		extra = d.r.Journey.Extra(d.o.Capacity.Shared)
		scope, standing = "the journey's peak", "nothing was moved and the source is untouched"
	}
	if free := d.o.Capacity.Free; free >= 0 && extra > free && !d.mayAdvance(rung) {
		if d.makeRoom() {
			return
		}
		d.park(CapacityExhausted, fmt.Sprintf("%s needs %d more replica(s) of %s and %d fit; %s. Free capacity and resume, or cancel", scope, extra, d.o.Capacity.Hardware, free, standing), nil)
		return
	}
	if d.lapsed() {
		return
	}
	of := ""
	if n := d.o.fitting(rung.Target); n < rung.Target {
		of = fmt.Sprintf("%d of ", n)
	}
	d.tell(d.r.event(d.now, EventTargetScaled, "target scaling to %s%d replica(s) for %d%% of traffic", of, rung.Target, rung.Percent))
	d.enter(PhaseScaling)
}

// scale raises the target's floor and waits until enough of it answers. Only
// floors are raised, and a higher one that stands already is kept; the ceiling is
// lifted once, with the first floor.
func (d *decider) scale() {
	rung, b := d.r.Rung(), d.o.Target.Bounds
	if d.lapsed() {
		return
	}
	if !d.r.Lifted {
		if ceiling := d.r.Journey.LandingMax; b.Max < ceiling {
			d.act(Effect{Kind: SetBounds, Deployment: d.r.Spec.Target, Min: ptr(max(b.Min, rung.Target)), Max: ptr(ceiling), Lifts: true})
			return
		}
		d.r.Lifted, d.changed = true, true
		return
	}
	if b.Max < rung.Need {
		d.enter(PhaseChecking) // an operator's edit wins: check parks on it
		return
	}
	if d.keepWhole() {
		return
	}
	if floor := d.o.fitting(min(rung.Target, b.Max)); b.Min < floor {
		d.act(Effect{Kind: SetBounds, Deployment: d.r.Spec.Target, Min: ptr(floor)})
		return
	}
	// A split above the step's own, which somebody set by hand, is left as soon as
	// the step's share can be served.
	if d.r.Percent <= rung.Percent && d.underServedNow() {
		return
	}
	deadline := d.r.PhaseSince.Add(d.o.Target.ColdStart + d.r.Timings.ReadyDeadline)
	switch {
	case d.o.Target.serving() >= rung.Need:
		d.tell(d.r.event(d.now, EventTargetReady, "target ready: %d of %d replica(s) answer", d.o.Target.Ready, rung.Need))
		d.enter(PhaseShifting)
	case d.advance(rung):
	case !d.now.Before(deadline):
		d.notReady(rung)
	default:
		d.wake(deadline)
	}
}

func (d *decider) notReady(rung Rung) {
	t := d.o.Target
	if lack := max(t.Unplaced, rung.Target-d.o.fitting(rung.Target)); t.Unplaced > 0 || lack > 0 && t.answered() {
		d.park(CapacityExhausted, fmt.Sprintf("%d of the target's replicas cannot be placed on %s; the split stays at %d%%. Free capacity and resume, or cancel", lack, d.o.Capacity.Hardware, d.r.Percent), nil)
		return
	}
	d.park(TargetNotReady, fmt.Sprintf("%d of %d target replica(s) answer after %s (%s); the split stays at %d%%. Look at the target's logs, then resume or cancel", t.Ready, rung.Need, rounded(d.now.Sub(d.r.PhaseSince)), t.Message, d.r.Percent), nil)
}

// rounded is a stretch of time as a person reads it.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// shift moves the traffic. Decide records it once the routers serve it.
func (d *decider) shift() {
	rung := d.r.Goal()
	if d.o.Target.serving() < rung.Need {
		d.enter(PhaseScaling) // a replica died since the health gate
		return
	}
	if d.o.Split.Held && d.o.Split.Percent == rung.Percent && !d.o.Split.Pending {
		// Served already: a rolling batch too small to move a whole percent, or a
		// resume after the shift.
		d.r.Generation = d.o.Split.Generation
		d.enter(PhasePropagating)
		return
	}
	if d.routingFails() {
		return
	}
	d.act(Effect{Kind: SetSplit, Percent: rung.Percent})
}

// routingFails parks when the routers cannot be told a split.
func (d *decider) routingFails() bool {
	if d.o.Split.Failing == "" {
		return false
	}
	d.park(RoutingError, fmt.Sprintf("the routers cannot be told the split: %s. It stays at %d%%; wait and resume", d.o.Split.Failing, d.r.Percent), nil)
	return true
}

// propagate waits for routing to converge before any source capacity goes.
func (d *decider) propagate() {
	if d.underServedNow() {
		return
	}
	end := d.r.PhaseSince.Add(d.r.Timings.Propagation)
	if d.now.Before(end) {
		d.wake(end)
		return
	}
	if d.awaitRouters() {
		return
	}
	d.tell(d.r.event(d.now, EventPropagated, "routing converged at %d%%", d.r.Percent))
	if d.r.HoldsSource() {
		d.soakWhole()
		return
	}
	d.enter(PhaseDraining)
}

// drain lowers the source's floor to what its remaining share needs, and its
// ceiling with it, then waits until the replicas are gone.
func (d *decider) drain() {
	if d.underServedNow() {
		return
	}
	rung, b := d.drainsTo(), d.o.Source.Bounds
	e := Effect{Kind: SetBounds, Deployment: d.r.Spec.Source}
	if b.Min > rung.Source {
		e.Min = ptr(rung.Source)
	}
	if ceiling := d.r.sourceCeiling(rung); b.Max > ceiling {
		e.Max = ptr(ceiling)
	}
	if e.Min != nil || e.Max != nil {
		if d.awaitRouters() {
			return
		}
		d.act(e)
		return
	}
	end := d.r.PhaseSince.Add(d.r.Timings.DrainDeadline)
	switch {
	case d.o.Source.Draining == 0 && d.o.Source.Scheduled <= b.Max:
		d.tell(d.r.event(d.now, EventSourceDrained, "source drained to %d replica(s)", d.o.Source.Ready))
		if d.r.Limit != nil {
			d.enter(PhaseChecking) // for the rest: a share for now is neither soaked nor judged
			return
		}
		if d.r.Judged() {
			d.pass()
			return
		}
		d.happen(SoakBegan)
		d.r.SteadySince = d.now
		d.enter(PhaseSoaking)
	case !d.now.Before(end):
		d.park(SourceNotDrained, fmt.Sprintf("%d source replica(s) are still draining after %s; the split stays at %d%%. Wait or investigate, then resume", d.o.Source.Scheduled-b.Max, d.r.Timings.DrainDeadline, d.r.Percent), nil)
	default:
		d.wake(end)
	}
}

// sourceCeiling is the source's maximum after the drain: it shrinks with its
// share, rounding up, and ends at what stays.
func (r Rollout) sourceCeiling(rung Rung) int {
	j := r.Journey
	if rung.Percent == 100 {
		return j.FinalSource
	}
	if r.Spec.Strategy == Rolling && j.Source > 0 {
		// A batch takes a whole replica, also where its share was rounded down.
		whole := int64(max(j.Source, j.SourceMax)) * int64(rung.Source)
		return int((whole + int64(j.Source) - 1) / int64(j.Source))
	}
	return max(rung.Source, SourceAfter(max(j.Source, j.SourceMax), j.FinalSource, j.Seed, rung.Percent))
}

// need is what each side must have ready now. The source counts as whole when it
// has what its autoscaler wants: fewer by its own choice is not a death.
func (d *decider) need() Need {
	n := d.r.Journey.NeedAt(d.r.Percent)
	n.Source = min(n.Source, d.o.Source.Desired)
	return n
}

// underServedNow parks when a side's ready capacity is below its share, holding
// the largest split that can be served.
func (d *decider) underServedNow() bool {
	if d.r.Percent <= d.r.Journey.Seed && !d.r.Phase.settled() {
		// Before the first shift the split is the one that stood: its capacity is
		// the autoscaler's affair, and the target's health gate still lies ahead.
		return false
	}
	if d.forbidden() {
		return true
	}
	need, source, target := d.need(), d.o.Source.serving(), d.o.Target.serving()
	if source >= need.Source && target >= need.Target {
		return false
	}
	if d.returning() {
		d.awaitReturn()
		return true
	}
	hold := d.r.Journey.Servable(d.r.Percent, source, target)
	if hold != d.r.Percent {
		d.r.Hold = ptr(hold)
	}
	d.park(UnderServed, fmt.Sprintf("at %d%% the pair needs %d source and %d target replica(s) ready, and %d and %d are; holding %d%%. Restore capacity and resume, or cancel", d.r.Percent, need.Source, need.Target, source, target, hold), nil)
	return true
}

// returning reports whether what is missing may be on its way back: an engine that
// was stopped in order has ended its replicas, and its next start is no replica's
// death.
func (d *decider) returning() bool { return d.o.Source.Returning || d.o.Target.Returning }

// awaitReturn does the step again from its first check, since nothing that was
// measured over the stop tells of a steady state.
func (d *decider) awaitReturn() {
	if d.r.Phase.settled() {
		d.r.SteadySince, d.r.Peeks = time.Time{}, nil
		d.happen(StepBegan)
		d.enter(PhaseChecking)
	}
}

// forbidden parks when an operator's edit keeps a side below what its share needs:
// the edit wins, and the split is held at what remains.
func (d *decider) forbidden() bool {
	need := d.r.Journey.NeedAt(d.r.Percent)
	side, limit, needs := "source", d.o.Source.Bounds.Max, need.Source
	if limit >= needs {
		side, limit, needs = "target", d.o.Target.Bounds.Max, need.Target
	}
	if limit >= needs {
		return false
	}
	hold := d.r.Journey.Servable(d.r.Percent, d.o.Source.serving(), d.o.Target.serving())
	if hold != d.r.Percent {
		d.r.Hold = ptr(hold)
	}
	d.park(PolicyInfeasible, fmt.Sprintf("the %s's maximum is %d replica(s) and its share at %d%% needs %d; holding %d%%. Raise it and resume, or cancel", side, limit, d.r.Percent, needs, hold), nil)
	return true
}
