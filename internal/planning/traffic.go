package planning

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Codes of findings that follow from the traffic that there is now. They are live: a
// preview has them and a journey of a declaration never does.
const (
	GateNeedsTraffic    Code = "GATE_NEEDS_TRAFFIC"
	GateSamplesShort    Code = "GATE_SAMPLES_SHORT"
	BreakerSamplesShort Code = "BREAKER_SAMPLES_SHORT"
)

// TrafficCodes lists the codes of Traffic.
func TrafficCodes() []Code { return []Code{GateNeedsTraffic, GateSamplesShort, BreakerSamplesShort} }

// Traffic compares what a spec's gates and its circuit breaker need at each of the
// ladder's percents with the requests a second that the pair has now: one finding when
// the gates have none, otherwise one for each rule that would lack samples, about the
// first step at which it does; and one for each rule on which the breaker could not trip.
func Traffic(s rollout.Spec, percents []int, t rollout.Timings, rate float64) []Finding {
	return append(gateTraffic(s, percents, t, rate), breakerTraffic(s, percents, t, rate)...)
}

// breakerTraffic finds the rules of a circuit breaker whose window would not hold the
// samples without which it does not look: a way back that never comes is worse than none.
func breakerTraffic(s rollout.Spec, percents []int, t rollout.Timings, rate float64) []Finding {
	if s.Breaker == nil {
		return nil
	}
	l := &list{}
	for i, rule := range s.Breaker.Rules {
		window, blind := t.WindowOf(rule), 0
		for _, percent := range percents { // the target's share only grows
			if rate*float64(percent)/100*window.Seconds() < float64(rule.BreakerNeeds()) {
				blind++
			}
		}
		if blind == 0 {
			continue
		}
		steps := "at step 1"
		if blind > 1 {
			steps = fmt.Sprintf("at steps 1 to %d", blind)
		}
		l.add(BreakerSamplesShort, Caution, fmt.Sprintf("sluice.circuitBreaker.rules[%d].window", i),
			fmt.Sprintf("circuit breaker rule %d (%s) needs %s to the target in %s, and at %s requests a second on the pair it has fewer %s: it cannot trip there", i+1, MetricName(rule), Count(rule.BreakerNeeds(), "request"), Span(window), RateText(rate), steps),
			"give the rule a longer window or a lower percentile, or roll out while there is more traffic")
	}
	return l.found
}

func gateTraffic(s rollout.Spec, percents []int, t rollout.Timings, rate float64) []Finding {
	l := &list{}
	if len(s.Rules) > 0 && rate <= 0 {
		l.add(GateNeedsTraffic, Caution, "metrics",
			"the pair had no request in the last minute; an idle endpoint's gate is skipped and the rollout goes ungated",
			"roll out while there is traffic, or send some")
		return l.found
	}
	for i, rule := range s.Rules {
		alone := s
		alone.Rules = []rollout.Rule{rule}
		var short []GateNeed
		for _, n := range Needs(alone, percents, t, rate) {
			if n.Verdict == TooFew || n.Verdict == Tight {
				short = append(short, n)
			}
		}
		if len(short) > 0 {
			l.add(GateSamplesShort, Caution, fmt.Sprintf("metrics[%d].window", i), shortText(short[0], rate), enoughText(rule, short, rate))
		}
	}
	return l.found
}

// Percents are the ladder of a journey.
func (j Journey) Percents() []int {
	out := make([]int, 0, len(j.Steps))
	for _, st := range j.Steps {
		out = append(out, st.TrafficPercent)
	}
	return out
}

// WithColdStarts is the least time of a journey on what stands, and one cold start of so
// long for each of its steps that starts replicas: those of one step start at once.
func (j Journey) WithColdStarts(one time.Duration) time.Duration {
	total := j.Totals.LeastDuration
	for _, st := range j.Steps {
		if st.ScaleUp != nil && *st.ScaleUp > 0 {
			total += one
		}
	}
	return total
}

// shortText says what the first step that lacks samples lacks.
func shortText(n GateNeed, rate float64) string {
	has := fmt.Sprintf("at %d %% of %s requests a second %s has its %s in %s", n.Share, RateText(rate), n.Rule, Count(n.Samples, "sample"), Span(time.Duration(n.Needs)))
	if n.Verdict == Tight {
		return fmt.Sprintf("%s on average, your window is %s: more than 5 of 100 windows lack some, and step %d would park METRICS_UNAVAILABLE then", has, Span(time.Duration(n.Window)), n.Step)
	}
	return fmt.Sprintf("%s, your window is %s: step %d would park METRICS_UNAVAILABLE", has, Span(time.Duration(n.Window)), n.Step)
}

// enoughText says what would do for 95 of 100 windows: a window for every step, or a
// share of the first for the window that is asked.
func enoughText(rule rollout.Rule, short []GateNeed, rate float64) string {
	var ways []string
	window := time.Duration(0)
	for _, n := range short {
		window = max(window, wholeSpan(surely(n.Samples)/(rate*float64(n.Share)/100)))
	}
	if window <= rollout.LongestWindow {
		ways = append(ways, "a window of "+Span(window))
	}
	first := short[0]
	share := int(math.Ceil(surely(first.Samples) * 100 / (rate * time.Duration(first.Window).Seconds())))
	most := 100
	if rule.Regression != nil {
		most = 50 // above it the source is the smaller side
	}
	if first.Side == "target" && share <= most {
		ways = append(ways, fmt.Sprintf("a share of %d %% at step %d", share, first.Step))
	}
	if len(ways) == 0 {
		return fmt.Sprintf("it takes about %s requests a second on the pair, or a lower percentile", RateText(first.Sure))
	}
	return strings.Join(ways, " or ") + " would do"
}

// wholeSpan rounds seconds up to ten of them, or from a minute on to half minutes.
func wholeSpan(seconds float64) time.Duration {
	unit := 10.0
	if seconds > 60 {
		unit = 30
	}
	return time.Duration(math.Ceil(seconds/unit)*unit) * time.Second
}
