package rollout

import "fmt"

// Lapse is the answer of a billing check that a project may have no more replicas.
type Lapse struct {
	Reason string // in the words of whoever keeps the bills
}

func (l *Lapse) Error() string { return "the billing check failed: " + l.Reason }

// WantsEntitlement returns the floor that the target is about to be raised to, which
// the billing has to allow first; 0 when none is. Only a working rollout whose step is
// checked, scaled or landed asks: a pause, a cancel and a step whose replicas stand
// already never wait for it. It is asked again at each raise, since between two of one
// step (the rest of it found no place) days may lie.
func WantsEntitlement(r Rollout, o Observed) int {
	if r.State != Running && r.State != Stabilizing {
		return 0
	}
	if floor := r.raise(o); floor > o.Target.Bounds.Min {
		return floor
	}
	return 0
}

// raise is the floor that the current phase gives the target; 0 when it gives none.
func (r Rollout) raise(o Observed) int {
	rung, most := r.Rung(), o.Target.Bounds.Max
	switch {
	case r.Phase == PhaseReleasing:
		return min(r.Journey.LandingMin, most)
	case r.Phase != PhaseScaling && (r.Phase != PhaseChecking || !o.Split.Held):
		return 0
	case !r.Lifted:
		return rung.Target
	case most < rung.Need:
		return 0 // it parks on the operator's maximum
	}
	return o.fitting(min(rung.Target, most))
}

// Floor is the highest floor that a journey gives its target.
func (j Journey) Floor() int {
	n := 0
	for _, r := range j.Rungs {
		n = max(n, r.Target)
	}
	return n
}

// lapsed parks in front of a scale-up that the billing does not allow.
func (d *decider) lapsed() bool {
	if d.o.Lapsed == "" {
		return false
	}
	d.park(EntitlementLapsed, fmt.Sprintf("step %d needs a floor of %d target replica(s) and the billing does not allow it: %s; nothing was scaled, the split stays at %d%%. Mend the billing and resume, or cancel", d.r.Step+1, WantsEntitlement(d.r, d.o), d.o.Lapsed, d.r.Percent), nil)
	return true
}
