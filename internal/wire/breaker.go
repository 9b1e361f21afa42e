package wire

import (
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// breaker converts a circuit breaker.
func (c *converter) breaker(in api.CircuitBreaker) *rollout.Breaker {
	out := &rollout.Breaker{SignedBy: in.SignedBy}
	for i, r := range in.Rules {
		out.Rules = append(out.Rules, c.rule(fmt.Sprintf("sluice.circuitBreaker.rules[%d]", i), r))
	}
	return out
}

func breakerToAPI(b rollout.Breaker) *api.CircuitBreaker {
	out := &api.CircuitBreaker{SignedBy: b.SignedBy}
	for _, r := range b.Rules {
		out.Rules = append(out.Rules, ruleToAPI(r))
	}
	return out
}

// extraOfSpec tells what only Sluice's engine takes in a spec; nil for nothing.
func extraOfSpec(s rollout.Spec) *api.SpecExtra {
	out := api.SpecExtra{Digest: s.Digest, Origin: s.Origin, HoldSource: s.HoldSource}
	if s.Breaker != nil {
		out.CircuitBreaker = breakerToAPI(*s.Breaker)
	}
	if out == (api.SpecExtra{}) {
		return nil
	}
	return &out
}

// driftToAPI tells a split that a person set by breaking the glass; nil when none
// stands.
func driftToAPI(r rollout.Rollout) *api.Drift {
	if r.Edit == nil || r.State.Terminal() {
		return nil
	}
	return &api.Drift{SetPercent: r.Edit.From, ActualPercent: standing(r), By: r.Edit.By, Reason: r.Edit.Reason, At: api.At(r.Edit.At)}
}

// tripToAPI tells what the circuit breaker did; nil when it has not tripped.
func tripToAPI(r rollout.Rollout) *api.BreakerTrip {
	if r.Trip == nil || r.Spec.Breaker == nil {
		return nil
	}
	return &api.BreakerTrip{At: api.At(r.Trip.At), Rule: r.Trip.Rule, SignedBy: r.Spec.Breaker.SignedBy, FromPercent: r.Trip.From, ToPercent: r.Trip.To}
}

// fillBreaker names the window and the statistic in effect of a breaker's rules.
func fillBreaker(out api.RolloutSpec, s rollout.Spec, t rollout.Timings) {
	if s.Breaker == nil {
		return
	}
	for i, r := range s.Breaker.Rules {
		rule := &out.Sluice.CircuitBreaker.Rules[i]
		rule.Window = ptr(api.Duration(t.WindowOf(r)))
		if r.Stat == "" {
			rule.Stat = api.PrefixStat + string(rollout.StatAvg)
		}
	}
}
