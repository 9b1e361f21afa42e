package planning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// judged reports whether a rule can judge a step: at 100 % the source has no traffic
// to compare with, and only a threshold is left.
func judged(rules []rollout.Rule, percent int) bool {
	return slices.ContainsFunc(rules, func(r rollout.Rule) bool { return r.Threshold != nil || percent < 100 })
}

// gates tells each rule with the traffic that it needs. The rate is of the pair,
// at the step where a side's share is smallest; one that judges no step needs none.
func gates(s rollout.Spec, steps []Step, t rollout.Timings) []Gate {
	out := make([]Gate, 0, len(s.Rules))
	for _, r := range s.Rules {
		g := Gate{Rule: r, Text: RuleText(r), Window: t.WindowOf(r), SamplesNeeded: r.SamplesNeeded()}
		for _, st := range steps {
			if rate := rateNeeded(g, r, st.TrafficPercent); rate > g.RequestsPerSecond {
				g.RequestsPerSecond, g.BusiestStep = rate, st.Number
			}
		}
		out = append(out, g)
	}
	return out
}

func rateNeeded(g Gate, r rollout.Rule, percent int) float64 {
	if !judged([]rollout.Rule{r}, percent) {
		return 0
	}
	smallest := percent
	if source := 100 - percent; r.Regression != nil && source > 0 {
		smallest = min(smallest, source)
	}
	if smallest <= 0 || g.Window <= 0 {
		return 0
	}
	return float64(g.SamplesNeeded) / g.Window.Seconds() * 100 / float64(smallest)
}

// RuleText is a rule in one line, for example
// "router_latency p95 at most 25 % worse than the source, over 5m0s".
func RuleText(r rollout.Rule) string {
	var b strings.Builder
	b.WriteString(string(r.Metric))
	if r.Stat == rollout.StatPercentile {
		b.WriteString(" p" + strconv.Itoa(r.Percentile))
	} else {
		b.WriteString(" average")
	}
	switch {
	case r.Regression != nil:
		way := "higher"
		if r.Regression.Direction == rollout.LowerIsWorse {
			way = "lower"
		}
		fmt.Fprintf(&b, " at most %s %% %s than the source", number(r.Regression.MaxPercent), way)
	case r.Threshold != nil:
		fmt.Fprintf(&b, " %s %s", operator(r.Threshold.Operator), number(r.Threshold.Value))
	}
	if r.Window > 0 {
		b.WriteString(" over " + Span(r.Window))
	}
	return b.String()
}

func operator(o rollout.Operator) string {
	switch o {
	case rollout.LT:
		return "below"
	case rollout.LTE:
		return "at most"
	case rollout.GT:
		return "above"
	case rollout.GTE:
		return "at least"
	}
	return string(o)
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Span is a duration for people: "6m30s", "1h", "4.5s".
func Span(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
