package rehearsal

import (
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// The watch's own idea of the ways back: a source that is held whole, a circuit breaker,
// and a split that a person set by breaking the glass.

// holds reports whether the source of a spec is to be kept whole.
func holds(s rollout.Spec) bool { return s.HoldSource || s.Breaker != nil }

// breakerQuery tells a look of the breaker from one of the gate: it counts all of the
// target's requests, under whatever route, and not only those of the current step.
func (v *watch) breakerQuery(q rollout.Query) bool {
	return q.MinGeneration == 0 && v.w.record.Spec.Breaker != nil
}

// readBreaker checks one look of the circuit breaker, and keeps it.
func (v *watch) readBreaker(q rollout.Query, got rollout.Reading) {
	now := v.w.engineNow()
	if !v.breakerAt.Equal(now) {
		v.breakerAt = now
		v.breaker = map[rollout.Query]rollout.Reading{}
	}
	v.breaker[q] = got
	if q.Deployment != v.w.record.Spec.Target {
		v.blame(5, "the circuit breaker looks at %s", q.Deployment)
	}
	if q.To.After(now.Add(-v.w.timings.IngestionLag)) {
		v.blame(6, "the circuit breaker's window ends %v before now, inside the ingestion lag", now.Sub(q.To))
	}
	// A look of a decision that a resume overtakes is void; within a minute none is whole.
	if v.w.skew == 0 && now.Sub(v.armedSince) > time.Minute && q.From.Before(v.armedSince) {
		v.blame(6, "the circuit breaker's window reaches before the start or the last resume, to %s", clock(q.From))
	}
}

// bad reports whether a reading says that a breaker's rule is breached.
func bad(r rollout.Rule, got rollout.Reading) bool {
	need := 20
	if r.Stat == rollout.StatPercentile {
		need = samples(r)
	}
	return usable(got, need) && judge(r, rollout.Reading{}, got) == breached
}

// wayBack checks what a write of the record says about the ways back.
func (v *watch) wayBack(old, r rollout.Rollout) {
	going := r.State == rollout.Running || r.State == rollout.Stabilizing
	if stood := old.State == rollout.Pending || old.State == rollout.Pausing || old.State.Parked(); stood && going && v.w.byHand {
		v.armedSince = v.w.engineNow()
		if v.w.power.slow > 0 {
			v.armedSince = v.armedSince.Add(-time.Minute) // the control was pressed before it is stored
		}
	}
	if going && (r.Trip != nil || r.Edit != nil) {
		v.blame(7, "%s with a tripped circuit breaker or broken glass", r.State)
	}
	if (r.Trip != nil || r.Edit != nil) && !r.RetryAt.IsZero() {
		v.blame(7, "a retry is set after a trip or an edit of the split")
	}
	if old.Trip == nil && r.Trip != nil {
		v.trips(old, r)
	}
	if old.Edit == nil && r.Edit != nil && !v.w.byHand {
		v.blame(7, "the glass was broken by nobody")
	}
	if !old.SourceReleased && r.SourceReleased {
		v.gives(old, r)
	}
}

// trips checks that two whole windows, one look apart, breach one rule.
func (v *watch) trips(old, r rollout.Rollout) {
	v.w.stats.Trips++
	if old.Percent <= v.plan.Seed {
		v.blame(5, "the circuit breaker tripped at %d%%, the target had %d%%", old.Percent, v.plan.Seed)
	}
	rule := r.Spec.Breaker.Rules[r.Trip.Rule]
	window := r.Timings.WindowOf(rule)
	ends := map[time.Time]bool{}
	for q, got := range v.breaker {
		if q.Metric == rule.Metric && q.Percentile == rule.Percentile && q.To.Sub(q.From) == window && bad(rule, got) {
			ends[q.To] = true
		}
	}
	if len(ends) < 2 && v.w.engineNow().Sub(v.breakerAt).Abs() <= time.Minute {
		v.blame(5, "the circuit breaker tripped on %d windows that breach", len(ends))
	}
}

// gives checks that a held source is given up after the last gate, and not before.
func (v *watch) gives(old, r rollout.Rollout) {
	last := len(v.plan.Rungs) - 1
	if r.Step != last {
		v.blame(3, "a held source is given up at step %d of %d", r.Step+1, last+1)
		return
	}
	v.judged(old, r, last)
}

// keeps checks a write of the bounds of a source that is to be held. It reports whether
// the write only keeps it whole.
func (v *watch) keeps(r rollout.Rollout, old, b rollout.Bounds) bool {
	if !holds(v.spec) || r.SourceReleased {
		return false
	}
	if b.Max != old.Max || b.Min < old.Min {
		v.blame(3, "a held source goes from %d..%d to %d..%d before its last gate", old.Min, old.Max, b.Min, b.Max)
		return true
	}
	if b.Min > v.plan.Source || r.Phase != rollout.PhaseScaling {
		v.blame(4, "a held source's floor goes to %d in %s, it had %d", b.Min, r.Phase, v.plan.Source)
	}
	return true
}

// restsWayBack checks what holds whenever nothing more happens at an instant.
func (v *watch) restsWayBack(r rollout.Rollout) {
	floor := min(v.plan.Source, v.w.deployments[v.w.source.id].Bounds.Max)
	settled := r.Phase == rollout.PhaseSoaking || r.Phase == rollout.PhaseGating || r.Phase == rollout.PhaseConfirming
	if working := r.State == rollout.Running || r.State == rollout.Stabilizing; holds(v.spec) && !r.SourceReleased && working && settled {
		if got := v.w.deployments[v.w.source.id].Bounds.Min; got < floor && !v.touched[v.w.source.id] {
			v.blame(3, "a held source has a floor of %d at step %d, it had %d", got, r.Step+1, v.plan.Source)
		}
	}
	if r.Trip != nil && r.Edit == nil && v.served() > v.plan.Seed && r.State.Parked() {
		v.blame(3, "%d%% is served after the circuit breaker tripped to %d%%", v.served(), v.plan.Seed)
	}
	v.restsArmed(r)
}

// nextLook is when the watch looks by itself whether an armed breaker is silent; zero when
// none is. A right engine looks more often.
func (v *watch) nextLook() time.Time {
	if v.armedAt.IsZero() || v.w.record.State.Terminal() {
		return time.Time{}
	}
	return v.w.now.Add(time.Minute)
}

// looksMissed is how many looks in a row a breaker may not have noticed what each of
// them shows.
const looksMissed = 4

// restsArmed checks that the breaker is not silent, whatever the rollout waits for.
func (v *watch) restsArmed(r rollout.Rollout) {
	b := v.spec.Breaker
	armed := b != nil && r.Trip == nil && r.Edit == nil && !r.SourceReleased && r.Percent > v.plan.Seed && r.Percent == v.served() && v.w.skew == 0 && !v.w.meter.down && len(v.w.meter.looks) == 0
	if !armed {
		v.armedAt = time.Time{}
		return
	}
	now := v.w.engineNow()
	if v.armedAt.IsZero() {
		v.armedAt = now
	}
	every := r.Timings.BreakerEvery()
	if now.Sub(v.armedAt) < (looksMissed+1)*every || now.Sub(v.awaits) < 0 || now.Sub(v.armedLook) < looksMissed*every {
		return
	}
	v.armedLook = now
	for _, rule := range b.Rules {
		window, missed := r.Timings.WindowOf(rule), 0
		for k := range time.Duration(looksMissed + 2) {
			to := now.Add(-r.Timings.IngestionLag - k*every)
			q := rollout.Query{Deployment: r.Spec.Target, Metric: rule.Metric, Stat: rule.Stat, Percentile: rule.Percentile, From: to.Add(-window), To: to}
			if q.From.Before(v.armedSince) || !bad(rule, v.w.meter.read(q)) {
				break
			}
			missed++
		}
		if missed == looksMissed+2 {
			v.blame(5, "the circuit breaker is silent in %s at %d%%, and the target breaches %s all the time", r.State, v.served(), rule.Metric)
			return
		}
	}
}

// glassBroken reports whether a change is a person's edit of the locked split, and checks
// that a person made it and that it says so.
func (v *watch) glassBroken(c rollout.Change) bool {
	told := slices.ContainsFunc(c.Events, func(e rollout.Event) bool { return e.Type == rollout.EventBreakGlass && e.Reason != "" })
	if told && !v.w.byHand {
		v.blame(7, "the glass was broken by nobody")
	}
	for _, r := range c.Rollouts {
		for _, e := range c.Endpoints {
			if told && r.Edit != nil && e.Pair != nil && e.Pair.Percent != r.Edit.To {
				v.blame(7, "%s set the split to %d%% by breaking the glass, and %d%% is written", r.Edit.By, r.Edit.To, e.Pair.Percent)
			}
		}
	}
	for _, e := range c.Endpoints {
		if told && e.Pair != nil {
			v.glassShare = e.Pair.Share
		}
		v.glassLate = v.glassLate || told && e.Pair == nil
	}
	return told
}

// overEdit checks that nothing of the engine moves a split that a person set by breaking
// the glass.
func (v *watch) overEdit(r rollout.Rollout, e rollout.Endpoint) bool {
	if r.Edit == nil || e.Pair == nil || r.State == rollout.Cancelling {
		return false
	}
	if e.Pair.Percent != r.Edit.To {
		v.blame(7, "the split goes to %d%%, and %s set it to %d%% by breaking the glass", e.Pair.Percent, r.Edit.By, r.Edit.To)
	}
	return true
}

// stages are the events that a step must have had, in order: a held source is told as
// kept, and drained after that at the last step.
func (v *watch) stages(r rollout.Rollout, i int, at map[rollout.EventType]int) []rollout.EventType {
	out := []rollout.EventType{rollout.EventTargetScaled, rollout.EventTargetReady, rollout.EventPropagated}
	switch again := at[rollout.EventSourceHeld] == 0; {
	case !holds(r.Spec), again && i == len(v.plan.Rungs)-1: // done again after its drain had begun
		return append(out, rollout.EventSourceDrained)
	case i == len(v.plan.Rungs)-1:
		return append(out, rollout.EventSourceHeld, rollout.EventSourceDrained)
	}
	return append(out, rollout.EventSourceHeld)
}
