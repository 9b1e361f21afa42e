package rollout

// HoldsSource reports whether the source keeps its full size until the last step's
// gate has passed: because it was asked for, or because of a circuit breaker, since
// a way back without capacity is none.
func (s Spec) HoldsSource() bool { return s.HoldSource || s.Breaker != nil }

// holdSource makes every step but the last leave the source whole. The last one drains
// it, after its gate.
func (j *Journey) holdSource() {
	for i := range j.Rungs[:max(0, len(j.Rungs)-1)] {
		j.Rungs[i].Source = j.Source
	}
}

// HoldsSource reports whether the source must still have its full size. Once its drain
// has begun it never has again, also where the last step is done again after that.
func (r Rollout) HoldsSource() bool { return r.Spec.HoldsSource() && !r.SourceReleased }

// Judged reports whether the drain that is under way comes after the gate, and not
// between the shift and the soak.
func (r Rollout) Judged() bool { return r.SourceReleased && !r.SteadySince.IsZero() }

// keepWhole keeps a held source from shrinking with its traffic: its floor is raised
// to the size that it had, before any traffic leaves it. It reports whether that is
// still to be done.
func (d *decider) keepWhole() bool {
	b := d.o.Source.Bounds
	floor := min(d.r.Journey.Source, b.Max) // an operator's lower maximum wins
	if !d.r.HoldsSource() || b.Min >= floor {
		return false
	}
	d.act(Effect{Kind: SetBounds, Deployment: d.r.Spec.Source, Min: ptr(floor)})
	return true
}

// soakWhole begins the soak of a step that leaves the source as it is. A share for now
// is not soaked: the step goes on to the rest, for which no source makes room.
func (d *decider) soakWhole() {
	if d.r.Limit != nil {
		d.enter(PhaseChecking)
		return
	}
	d.tell(d.r.event(d.now, EventSourceHeld, "source kept at full size: %d of %d replica(s) answer", d.o.Source.Ready, d.r.Journey.Source))
	d.happen(SoakBegan)
	d.r.SteadySince = d.now
	d.enter(PhaseSoaking)
}

// letGo begins the drain of a held source: the last gate has passed, and from here on
// there is no quick way back.
func (d *decider) letGo() {
	d.r.SourceReleased = true
	d.happen(DrainBegan)
	d.enter(PhaseDraining)
}

// WithoutWayBack is the spec without what keeps a quick way back open, to tell what that
// costs.
func (s Spec) WithoutWayBack() Spec {
	s.HoldSource, s.Breaker = false, nil
	return s
}
