package rollout

import (
	"fmt"
	"strings"
	"time"
)

// Breaker lets the engine take a target's traffic away without asking: it looks at its
// rules all the time, also in a pause, and a breach that two looks agree upon sets the
// target's share back to what it was at the start. Somebody answers for that.
type Breaker struct {
	SignedBy string `json:"signedBy"`
	Rules    []Rule `json:"rules"` // thresholds on the target alone
}

// BreakerSamples is how many requests a breaker's window must hold for a rate or an
// average: it acts by itself, so one unlucky request must not be enough.
const BreakerSamples = 20

// BreakerNeeds returns the samples without which a breaker does not look at a rule.
func (r Rule) BreakerNeeds() int {
	if r.Stat == StatPercentile {
		return r.SamplesNeeded()
	}
	return BreakerSamples
}

// Trip is what a circuit breaker did.
type Trip struct {
	At   time.Time `json:"at"`
	Rule int       `json:"rule"` // index
	From int       `json:"from"` // percent that was served
	To   int       `json:"to"`   // percent that is held until a person goes on
}

// BreakerEvery is the time between two looks of a breaker.
func (t Timings) BreakerEvery() time.Duration {
	if t.PeekEvery > 0 {
		return t.PeekEvery
	}
	return DefaultTimings().PeekEvery
}

// breakerSees is how long a split must be served until both looks of a breaker have seen
// nothing else; 0 without one.
func (t Timings) breakerSees(b *Breaker) time.Duration {
	if b == nil {
		return 0
	}
	var longest time.Duration
	for _, r := range b.Rules {
		longest = max(longest, t.WindowOf(r)+t.IngestionLag+t.BreakerEvery())
	}
	return longest
}

// armed reports whether the breaker may trip: from the first shift until the source is
// given up, in every state that serves the target more than it had. A person's edit of
// the split stands above it.
func (r Rollout) armed() bool {
	if r.Spec.Breaker == nil || r.Trip != nil || r.Edit != nil || r.SourceReleased || r.Percent <= r.Journey.Seed {
		return false
	}
	switch r.State {
	case Running, Stabilizing, Paused, SystemPaused:
		return true
	case Pending, Pausing, Cancelling, Canceled, Completed: // PAUSING is PAUSED in the same instant
	}
	return false
}

// breakerLook is one rule with the two windows that must agree.
type breakerLook struct {
	rule    int
	windows [2]Query // the one that ends now, and the one before it
}

// breakerLooks are the rules whose windows lie wholly after the start and the last
// resume. Both ends leave the ingestion lag out.
func (r Rollout) breakerLooks(now time.Time) []breakerLook {
	if !r.armed() {
		return nil
	}
	var out []breakerLook
	end := now.Add(-r.Timings.IngestionLag)
	earlier := end.Add(-r.Timings.BreakerEvery())
	for i, rule := range r.Spec.Breaker.Rules {
		window := r.Timings.WindowOf(rule)
		if earlier.Add(-window).Before(r.ArmedSince) {
			continue
		}
		l := breakerLook{rule: i}
		for k, to := range []time.Time{end, earlier} {
			l.windows[k] = Query{Deployment: r.Spec.Target, Metric: rule.Metric, Stat: rule.Stat, Percentile: rule.Percentile, From: to.Add(-window), To: to}
		}
		out = append(out, l)
	}
	return out
}

// WantsBreaker returns the readings that the circuit breaker needs at this instant, for
// Observed.Breaker. They are asked for apart from the gate's, so that neither is judged
// on the other's.
func WantsBreaker(r Rollout, now time.Time) []Query {
	var out []Query
	for _, l := range r.breakerLooks(now) {
		out = append(out, l.windows[:]...)
	}
	return out
}

// nextLook is when the breaker looks next: on a grid that begins when its shortest rule
// can have two whole windows.
func (r Rollout) nextLook(now time.Time) time.Time {
	shortest := r.Timings.WindowOf(r.Spec.Breaker.Rules[0])
	for _, rule := range r.Spec.Breaker.Rules {
		shortest = min(shortest, r.Timings.WindowOf(rule))
	}
	every := r.Timings.BreakerEvery()
	first := r.ArmedSince.Add(shortest + r.Timings.IngestionLag + every)
	if now.Before(first) {
		return first
	}
	return first.Add((now.Sub(first)/every + 1) * every)
}

// validateBreaker tells what can never be right about a circuit breaker.
func validateBreaker(ps *problems, b Breaker, t Timings) {
	const at = "sluice.circuitBreaker"
	switch {
	case strings.TrimSpace(b.SignedBy) == "":
		ps.add(at+".signedBy", "a circuit breaker acts without a person", "name who answers for it in signedBy")
	case len(b.SignedBy) > MaxSigner:
		ps.add(at+".signedBy", fmt.Sprintf("a signer of %d characters is above the limit of %d", len(b.SignedBy), MaxSigner), "give a name or an address")
	}
	if len(b.Rules) == 0 {
		ps.add(at+".rules", "a circuit breaker without a rule never trips", "give at least one threshold, or drop the breaker")
	}
	if n := len(b.Rules); n > MaxRules {
		ps.add(at+".rules", fmt.Sprintf("%d circuit breaker rules are more than the limit of %d", n, MaxRules), "keep those that would make you go back at once")
	}
	for i, r := range b.Rules {
		rule := fmt.Sprintf("%s.rules[%d]", at, i)
		switch {
		case r.Regression != nil:
			ps.add(rule+".regressionCheck", "a circuit breaker looks at the target alone", "give a thresholdCheck; a regression check belongs to a gate")
		case r.Threshold == nil:
			ps.add(rule, "a circuit breaker rule needs a thresholdCheck", "state the condition that the target must satisfy")
		default:
			validateRule(ps, rule, r, t)
		}
	}
}
