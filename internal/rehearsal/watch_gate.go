package rehearsal

import (
	"math"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// read checks one look at the meter, and keeps it.
func (v *watch) read(q rollout.Query, got rollout.Reading) {
	if v.breakerQuery(q) {
		v.readBreaker(q, got)
		return
	}
	r, now := v.w.record, v.w.engineNow()
	if !v.readAt.Equal(now) {
		v.readAt = now
		clear(v.readings)
	}
	v.readings[q], v.fresh = got, true
	if q.To.After(now.Add(-v.w.timings.IngestionLag)) {
		v.blame(6, "a gate's window ends %v before now, inside the ingestion lag", now.Sub(q.To))
	}
	if v.w.skew != 0 {
		return // the clock jumped: what was before is measured by another one
	}
	if r.SteadySince.IsZero() || q.From.Before(r.SteadySince) || q.From.Before(v.splitAt.Add(v.w.timings.Propagation)) {
		v.blame(6, "a gate's window begins at %s, before the step was steady", clock(q.From))
	}
	if !q.From.Before(q.To) {
		v.blame(6, "a gate's window from %s to %s is none", clock(q.From), clock(q.To))
	}
}

// outcome is what the readings of one instant say about a rule or a gate.
type outcome int

const (
	passes outcome = iota
	breached
	unavailable
	undecided // too close for two ways of computing it, or nothing was read
	nothing   // neither side served anything
)

// justRead reports whether the meter was read for the decision that is being stored; a
// slow store may have taken its time since.
func (v *watch) justRead() bool {
	return v.fresh && v.w.engineNow().Sub(v.readAt).Abs() <= time.Minute
}

// verdict judges a rollout's gate on what was read at this instant.
func (v *watch) verdict(r rollout.Rollout) outcome {
	if !v.justRead() {
		return undecided
	}
	worst, idle := passes, true
	for _, rule := range r.Spec.Rules {
		source, ok1 := v.reading(rule, r.Spec.Source)
		target, ok2 := v.reading(rule, r.Spec.Target)
		if !ok1 || !ok2 {
			return undecided
		}
		idle = idle && source.Complete && target.Complete && source.Samples == 0 && target.Samples == 0
		switch o := judge(rule, source, target); {
		case o == breached:
			worst = breached
		case o == undecided && worst != breached, o == unavailable && worst == passes:
			worst = o
		}
	}
	if idle {
		return nothing
	}
	return worst
}

// reading is what the meter said about a side for a rule at this instant.
func (v *watch) reading(rule rollout.Rule, deployment string) (rollout.Reading, bool) {
	for q, got := range v.readings {
		if q.Deployment == deployment && q.Metric == rule.Metric && q.Stat == rule.Stat && q.Percentile == rule.Percentile && v.windowOf(q, rule) {
			return got, true
		}
	}
	return rollout.Reading{}, false
}

// windowOf reports whether a query looks over a rule's whole window.
func (v *watch) windowOf(q rollout.Query, rule rollout.Rule) bool {
	window := rule.Window
	if window == 0 {
		window = v.w.timings.DefaultWindow
	}
	return q.To.Sub(q.From) == window
}

// samples is what a rule's statistic needs to mean anything.
func samples(rule rollout.Rule) int {
	if rule.Stat != rollout.StatPercentile {
		return 1
	}
	n := 1
	for n*(100-rule.Percentile) < 100 {
		n++
	}
	return n
}

func usable(r rollout.Reading, need int) bool {
	return r.Complete && r.Samples >= need && !math.IsNaN(r.Value) && !math.IsInf(r.Value, 0)
}

// judge says what two readings mean for a rule, as the contract has it, section D.2.
func judge(rule rollout.Rule, source, target rollout.Reading) outcome {
	need := samples(rule)
	if !usable(target, need) {
		return unavailable
	}
	if t := rule.Threshold; t != nil {
		ok := map[rollout.Operator]bool{
			rollout.LT: target.Value < t.Value, rollout.LTE: target.Value <= t.Value,
			rollout.GT: target.Value > t.Value, rollout.GTE: target.Value >= t.Value,
		}[t.Operator]
		return map[bool]outcome{true: passes, false: breached}[ok]
	}
	if source.Complete && source.Samples == 0 {
		return passes
	}
	if !usable(source, need) {
		return unavailable
	}
	higher := rule.Regression.Direction == rollout.HigherIsWorse
	if source.Value == 0 {
		return map[bool]outcome{true: breached, false: passes}[higher && target.Value != 0]
	}
	limit := source.Value * (1 + rule.Regression.MaxPercent/100)
	over := target.Value - limit
	if !higher {
		limit = source.Value * (1 - rule.Regression.MaxPercent/100)
		over = limit - target.Value
	}
	if math.Abs(over) < 1e-6*math.Abs(limit) {
		return undecided
	}
	return map[bool]outcome{true: breached, false: passes}[over > 0]
}

// passed checks that a step which is recorded as passed went its whole way.
func (v *watch) passed(old, r rollout.Rollout, i int) {
	w := v.w
	if i != old.Step {
		v.blame(2, "step %d passed while step %d is under way", i+1, old.Step+1)
	}
	if percent := v.plan.Rungs[i].Percent; v.served() != percent && v.able(w.target) > 0 {
		v.blame(2, "step %d passed, and %d%% is served, not %d%%", i+1, v.served(), percent)
	}
	waited := w.engineNow().Sub(v.splitAt)
	if least := w.timings.Propagation + v.plan.Soak; waited < least && w.skew == 0 {
		v.blame(6, "step %d passed %v after its shift, propagation and soak take %v", i+1, waited, least)
	}
	if !r.SourceReleased || old.SteadySince.IsZero() { // else it was judged before its drain
		v.judged(old, r, i)
	}
	v.order(r, i)
}

// judged checks that a step's gate passed on what was read at this instant.
func (v *watch) judged(_, r rollout.Rollout, i int) {
	w := v.w
	if waited, least := w.engineNow().Sub(v.splitAt), w.timings.Propagation+v.plan.Soak; waited < least && w.skew == 0 {
		v.blame(6, "step %d is judged %v after its shift, propagation and soak take %v", i+1, waited, least)
	}
	if len(r.Spec.Rules) > 0 {
		switch got := v.verdict(r); got {
		case breached, unavailable:
			v.blame(5, "step %d passed on readings that are %s", i+1, map[outcome]string{breached: "a breach", unavailable: "no verdict"}[got])
		case undecided:
			if !v.justRead() {
				v.blame(6, "step %d passed without a look at its gate", i+1)
			} else if !v.close(r) && w.skew == 0 {
				v.blame(6, "step %d passed on a part of its window", i+1)
			}
		case passes, nothing:
		}
	}
}

// close reports whether every rule was read over its whole window.
func (v *watch) close(r rollout.Rollout) bool {
	for _, rule := range r.Spec.Rules {
		for _, id := range []string{r.Spec.Source, r.Spec.Target} {
			if _, ok := v.reading(rule, id); !ok {
				return false
			}
		}
	}
	return true
}

// order checks the order of a step in the feed, from its last beginning: scaled,
// healthy, propagated, drained; and shifted before it had propagated.
func (v *watch) order(r rollout.Rollout, i int) {
	at := map[rollout.EventType]int{}
	var propagated time.Time
	for n, e := range v.events {
		if e.Subject != r.ID || e.Step == nil || *e.Step != i {
			continue
		}
		if e.Type == rollout.EventTargetScaled {
			clear(at)
		}
		at[e.Type] = n + 1
		if e.Type == rollout.EventPropagated {
			propagated = e.At
		}
	}
	last := 0
	for _, t := range v.stages(r, i, at) {
		if at[t] <= last {
			v.blame(2, "step %d passed without %s in its place", i+1, t)
		}
		last = max(last, at[t])
	}
	if at[rollout.EventTrafficShifted] > at[rollout.EventPropagated] {
		v.blame(2, "step %d shifted after it had propagated", i+1)
	}
	if waited := propagated.Sub(v.splitAt); waited < v.w.timings.Propagation && v.w.skew == 0 {
		v.blame(2, "step %d propagated for %v", i+1, waited)
	}
}
