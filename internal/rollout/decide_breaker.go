package rollout

import (
	"fmt"
	"math"
)

// watchBreaker looks at the circuit breaker. Nothing is kept between two looks: a rule
// trips when the window that ends now and the one before it both say so, each whole and
// with its samples. A gap or a value that is not a number says nothing.
func (d *decider) watchBreaker() {
	if !d.r.armed() {
		return
	}
	for i, l := range d.r.breakerLooks(d.now) {
		rule := d.r.Spec.Breaker.Rules[l.rule]
		row, breached := breakerRow(rule, d.breakerReading(2*i))
		if _, before := breakerRow(rule, d.breakerReading(2*i+1)); breached && before {
			d.trip(l.rule, row)
			return
		}
	}
	d.wake(d.r.nextLook(d.now))
}

// breakerReading is one answer to WantsBreaker; one that is missing is a gap.
func (d *decider) breakerReading(i int) Reading {
	if i < len(d.o.Breaker) {
		return d.o.Breaker[i]
	}
	return Reading{}
}

// breakerRow judges one window of a breaker's rule.
func breakerRow(r Rule, got Reading) (Row, bool) {
	row := Row{Rule: r, TargetSamples: got.Samples, Needed: r.BreakerNeeds()}
	if !got.Complete || got.Samples < row.Needed || math.IsNaN(got.Value) || math.IsInf(got.Value, 0) {
		return row, false
	}
	row.TargetValue = &got.Value
	row = judgeThreshold(row, *r.Threshold, got.Value)
	return row, row.Verdict == VerdictBreached
}

// trip takes the target's traffic away: one decision, stored before the routers are
// told. A working rollout parks; one that is parked stays so, with this as its reason.
// Nothing but a person goes on from here.
func (d *decider) trip(rule int, row Row) {
	from, to := d.r.Percent, d.r.Journey.Seed
	message := d.tripText(rule, row, to)
	e := d.r.event(d.now, EventBreakerTripped, "circuit breaker tripped at step %d of %d: target traffic goes from %d%% back to %d%%", d.r.Step+1, len(d.r.Steps), from, to)
	e.Level, e.Reason, e.Status = LevelWarn, message, string(MetricRegression)
	e.OldPercent, e.NewPercent = ptr(from), ptr(to)
	d.tell(e)
	if d.r.State == Running || d.r.State == Stabilizing {
		d.park(MetricRegression, message, []Row{row})
	} else {
		d.r.Condition = &Condition{Category: MetricRegression, Message: message, AtStep: d.r.Step, At: d.now, Rows: []Row{row}}
		if d.r.State == SystemPaused {
			d.r.Pause = &PauseInfo{At: d.now, Reason: pauseReason(MetricRegression, message)}
		}
	}
	d.r.Trip = &Trip{At: d.now, Rule: rule, From: from, To: to}
	d.r.Hold = ptr(to)
	d.r.RetryAt, d.r.RetryUntil = noTime, noTime
	d.hold()
}

func (d *decider) tripText(rule int, row Row, to int) string {
	b := d.r.Spec.Breaker
	source := fmt.Sprintf("the source is at its full size (%d of %d replicas answer)", d.o.Source.Ready, d.r.Journey.Source)
	if d.o.Source.serving() < d.r.Journey.Source {
		source = fmt.Sprintf("the source has %d of the %d replicas that it had", d.o.Source.serving(), d.r.Journey.Source)
	}
	return fmt.Sprintf("circuit breaker rule %d of %d, signed by %s: %s, over %s on %d request(s), and so %s before. The target goes back to %d%%; %s. Mend the target and resume to do step %d again, or cancel to keep the split",
		rule+1, len(b.Rules), b.SignedBy, row.Reason, rounded(d.r.Timings.WindowOf(row.Rule)), row.TargetSamples, rounded(d.r.Timings.BreakerEvery()), to, source, d.r.Step+1)
}
