package rollout

import (
	"fmt"
	"time"
)

// Limit is a step whose target cannot have all of its replicas yet. The step advances
// for now to what those that answer can carry, and is neither soaked, gated nor recorded
// there: on hardware that both sides share, what the source then gives back makes room
// for the rest.
type Limit struct {
	Goal   Rung      `json:"goal"`             // the share for now; Target counts the replicas that answered
	Moving bool      `json:"moving,omitempty"` // from the shift to it until the source has drained for it
	At     time.Time `json:"at"`
}

// Limited is the type of the condition that tells a Limit.
const Limited = "CapacityLimited"

// Goal is the rung that the current phase works for: the step's own, or the share to
// which the step advances for now.
func (r Rollout) Goal() Rung {
	if r.Limit != nil && r.Limit.Moving {
		return r.Limit.Goal
	}
	return r.Rung()
}

// Conditions tells what limits a rollout without parking it.
func (r Rollout) Conditions() []Condition {
	l := r.Limit
	if l == nil {
		return nil
	}
	return []Condition{{Type: Limited, Category: CapacityExhausted, Message: r.limited(), AtStep: r.Step, At: l.At}}
}

// limited says how far a limited step gets for now.
func (r Rollout) limited() string {
	return fmt.Sprintf("advances to %d%% of %d%% for now: %d of %d target replica(s) fit", r.Limit.Goal.Percent, r.Rung().Percent, r.Limit.Goal.Target, r.Rung().Need)
}

// stop ends the way to a share for now; the share itself stays as it is served.
func (r *Rollout) stop() {
	if r.Limit != nil && r.Limit.Moving {
		l := *r.Limit
		l.Moving = false
		r.Limit = &l
	}
}

// PartialRung is a share between two steps, on a target of which so many replicas
// answer. The source keeps what its share needs, and as many as the target lacks of
// those that stood at the start.
func (j Journey) PartialRung(percent, ready int) Rung {
	rung := Rung{Percent: percent, Need: j.NeedAt(percent).Target, Target: ready}
	rung.Source = SourceAfter(j.Source, j.FinalSource, j.Seed, percent)
	rung.Source = j.kept(rung)
	return rung
}

// reach returns the largest share above from and below to that so many target replicas
// serve; from when there is none.
func (j Journey) reach(from, to, replicas int) int {
	for p := to - 1; p > from; p-- {
		if j.NeedAt(p).Target <= replicas {
			return p
		}
	}
	return from
}

// live counts the replicas that have a place and are meant to stay.
func (s Side) live() int { return s.Scheduled - s.Draining }

// answered reports whether the autoscaler's wish is placed as far as it can be, and all
// that is placed answers.
func (s Side) answered() bool { return s.Ready >= s.live() && s.Ready+s.Unplaced >= s.Desired }

// fitting is how much of a floor of the target can be placed now.
func (o Observed) fitting(floor int) int {
	if o.Capacity.Free < 0 {
		return floor
	}
	return min(floor, o.Target.live()+o.Capacity.Free)
}

// mayAdvance reports whether a step whose scale-up does not fit can at least go on to a
// part of its share. Before anything is touched the whole journey has to fit.
func (d *decider) mayAdvance(rung Rung) bool {
	touched := d.r.Step > 0 || d.r.Lifted
	replicas := min(d.o.fitting(rung.Target), d.o.Target.Bounds.Max)
	return touched && d.r.Journey.reach(d.r.Percent, rung.Percent, replicas) > d.r.Percent
}

// advance goes on to what the ready part of the target can carry, once the rest of it
// cannot be placed.
func (d *decider) advance(rung Rung) bool {
	t := d.o.Target
	short := t.Unplaced > 0 || d.o.fitting(rung.Target) < rung.Target
	if !short || !t.answered() || d.returning() {
		return false
	}
	percent := d.r.Journey.reach(d.r.Percent, rung.Percent, t.serving())
	if percent <= d.r.Percent {
		return false
	}
	d.limit(percent)
	d.enter(PhaseShifting)
	return true
}

// makeRoom drains the source for the share that is served already, where that gives the
// target a place: a promote, or a park in between, may have come before the drain.
func (d *decider) makeRoom() bool {
	percent, t := d.r.Percent, d.o.Target
	if d.r.HoldsSource() {
		return false // it gives nothing back before the last gate
	}
	if d.o.Capacity.Shared != SharedHardware || percent <= d.r.Journey.Seed || percent >= d.r.Rung().Percent || t.serving() < d.need().Target {
		return false
	}
	if d.o.Source.Bounds.Min <= d.r.Journey.PartialRung(percent, t.serving()).Source {
		return false
	}
	d.limit(percent)
	d.enter(PhasePropagating)
	return true
}

// limit makes a share the goal for now, and says so.
func (d *decider) limit(percent int) {
	ready := d.o.Target.serving()
	d.r.Limit = &Limit{Goal: d.r.Journey.PartialRung(percent, ready), Moving: true, At: d.now}
	e := d.r.event(d.now, EventCapacityLimited, "step %d of %d %s", d.r.Step+1, len(d.r.Steps), d.r.limited())
	e.Level, e.Status = LevelWarn, string(CapacityExhausted)
	d.tell(e)
}

// drainsTo is the rung that the source drains for. A target replica that died since the
// step went on to a share for now counts no more.
func (d *decider) drainsTo() Rung {
	goal := d.r.Goal()
	if d.r.Limit == nil {
		return goal
	}
	return d.r.Journey.PartialRung(goal.Percent, min(goal.Target, d.o.Target.serving()))
}
