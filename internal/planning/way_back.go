package planning

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// BreakerRule is one rule of a circuit breaker, as people and policies read it.
type BreakerRule struct {
	Text          string        `json:"text"` // one line for a person
	Window        time.Duration `json:"window"`
	SamplesNeeded int           `json:"samplesNeeded"` // of the target, in each of the two windows that must agree
	Every         time.Duration `json:"every"`         // between two looks
}

// addWayBack tells what keeps a way back open.
func (j *Journey) addWayBack(s rollout.Spec, t rollout.Timings) {
	j.Totals.HoldsSource = s.HoldsSource()
	if s.Breaker == nil {
		return
	}
	j.Totals.BreakerSignedBy = s.Breaker.SignedBy
	for _, r := range s.Breaker.Rules {
		j.Breaker = append(j.Breaker, BreakerRule{Text: RuleText(r), Window: t.WindowOf(r), SamplesNeeded: r.BreakerNeeds(), Every: t.BreakerEvery()})
	}
}

// wayBackFindings say what a held source costs, and what a breaker does not take back.
func wayBackFindings(l *list, s rollout.Spec, k Known, t rollout.Timings) {
	if !s.HoldsSource() {
		return
	}
	field, other := "sluice.holdSourceUntilComplete", "leave hold_source_until_complete out, and the source drains with each step"
	if s.Breaker != nil {
		field, other = "sluice.circuitBreaker", "leave the circuit breaker out, and the source drains with each step; a way back then waits for cold starts"
	}
	l.add(SourceHeld, Info, field, heldText(s, k, t), other)
	if asked, soak := t.Soak(s); grownForBreaker(s, t) {
		l.add(SoakGrown, Info, field,
			fmt.Sprintf("each step waits %s instead of %s, so that both looks of the circuit breaker have seen it before the next, and before the source is given up", Span(soak), Span(asked)),
			"shorten the breaker's windows for quicker steps")
	}
	if s.Breaker != nil && k.Basis != nil && k.Basis.Frozen() {
		l.add(BreakerKeepsSeed, Caution, field,
			fmt.Sprintf("the target carries %d %% of the pair already: a trip goes back to that, and not to 0", k.Basis.Seed),
			"roll back first if nothing is to stay on the target")
	}
}

// heldText counts what a held source adds, where it is known what stands.
func heldText(s rollout.Spec, k Known, t rollout.Timings) string {
	if k.Basis == nil {
		return "the source keeps its full size until the last gate has passed: both sides run in full at the last step"
	}
	with, _ := rollout.NewJourney(s, *k.Basis, t)
	without, _ := rollout.NewJourney(s.WithoutWayBack(), *k.Basis, t)
	most, _ := with.Peak()
	least, _ := without.Peak()
	return fmt.Sprintf("the source keeps its %s until the last gate has passed: %d of both sides at the peak, %d more than without", Count(with.Source, "replica"), most, most-least)
}

// grownForBreaker reports whether it is the circuit breaker that lengthens the steps.
func grownForBreaker(s rollout.Spec, t rollout.Timings) bool {
	_, without := t.Soak(s.WithoutWayBack())
	_, with := t.Soak(s)
	return with > without
}
