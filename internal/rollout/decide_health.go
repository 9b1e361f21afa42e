package rollout

import "fmt"

// Health is what became of the target's replicas in one step: from its first shift until
// it is recorded, across the engine's own retries. It counts occasions and not replicas:
// five that die in one instant are one piece of bad luck.
type Health struct {
	Seen      int    `json:"seen"`                // failures that the fleet had counted at the last look
	Whole     bool   `json:"whole,omitempty"`     // all of the target answered since the last occasion, or at the shift
	Occasions int    `json:"occasions,omitempty"` // on which a target that was whole failed
	Last      string `json:"last,omitempty"`      // why its last replica failed
}

// UnhealthyAfter is on how many occasions the target may fail in one step before it parks
// for a person: a target that was whole again twice and fails a third time will go on so.
const UnhealthyAfter = 3

// whole reports whether all that the side's autoscaler wants answer.
func (s Side) whole() bool { return s.Ready >= s.Desired }

// next is the health after another look. A count that is smaller than before is that of a
// fleet which began anew: it is where the counting goes on from, and nothing is guessed.
func (h Health) next(target Side) Health {
	if target.Failures > h.Seen && h.Whole {
		h.Occasions, h.Last, h.Whole = h.Occasions+1, target.LastFailure, false
	}
	h.Seen, h.Whole = target.Failures, h.Whole || target.whole()
	return h
}

// unhealthy looks at the target of a step whose split is served, and parks the step when
// the target keeps failing, also one with replicas to spare: each failure has cut off
// requests, and a retry would cut off more. A park that the engine would retry becomes one
// that it does not.
func (d *decider) unhealthy() bool {
	st := &d.r.Steps[d.r.Step]
	if !d.r.Phase.settled() || st.State == StepPassed {
		return false
	}
	if st.Health == nil {
		d.beginHealth()
		return false
	}
	was := *st.Health
	is := was.next(d.o.Target)
	if is == was || was.Occasions >= UnhealthyAfter {
		return false
	}
	st.Health, d.changed = &is, true
	if is.Occasions < UnhealthyAfter {
		return false
	}
	switch c := d.r.Condition; {
	case d.r.State == Running || d.r.State == Stabilizing:
		d.happen(Tripped)
	case c == nil || !c.Category.Recoverable():
		return false // it waits for a person already
	}
	hold := d.servable()
	if hold < d.r.Percent {
		d.r.Hold = ptr(hold)
	}
	d.r.RetryUntil = noTime
	d.parked(HealthRegression, fmt.Sprintf("the target failed %d times in step %d, and was whole again in between (the last time: %s); holding %d%%. Look at the target's logs; cancel and go back with a rollout in the other direction, or mend it and resume, which counts anew", is.Occasions, d.r.Step+1, is.Last, hold), nil)
	return true
}

// beginHealth begins to count in a step, with its first shift or when a person goes on.
func (d *decider) beginHealth() {
	if st := &d.r.Steps[d.r.Step]; st.Health == nil {
		st.Health = &Health{Seen: d.o.Target.Failures, Whole: d.o.Target.whole()}
		d.changed = true
	}
}

// servable is what the ready replicas can carry of the split that is served. A split that
// stood before the rollout is nobody's to lower, and replicas that may be on their way back
// are not missing.
func (d *decider) servable() int {
	source, target := d.o.Source.serving(), d.o.Target.serving()
	need := d.need()
	if d.r.Percent <= d.r.Journey.Seed || d.returning() || source >= need.Source && target >= need.Target {
		return d.r.Percent
	}
	return d.r.Journey.Servable(d.r.Percent, source, target)
}
