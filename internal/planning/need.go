package planning

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// GateNeed is what one metric rule needs at one step to have a verdict, beside the
// traffic that there is.
type GateNeed struct {
	Step    int          `json:"step"` // 1-based
	Percent int          `json:"percent"`
	Rule    string       `json:"rule"` // for example "router_latency p95"
	Samples int          `json:"samples"`
	Window  api.Duration `json:"window"`
	Side    string       `json:"side"`    // the one with the smaller share: source or target
	Share   int          `json:"share"`   // percent of the pair's requests that it gets
	Average float64      `json:"average"` // requests a second on the pair at which an average window has the samples
	Sure    float64      `json:"sure"`    // at which 95 of 100 windows have them, arrivals being random
	Needs   api.Duration `json:"needs"`   // window that has them on average at the plan's rate; 0 for no traffic
	Verdict string       `json:"verdict"` // enough, tight (more than 5 of 100 windows lack samples), too few, or idle
}

// Verdicts of a GateNeed.
const (
	Enough = "enough"
	Tight  = "tight"
	TooFew = "too few"
	Idle   = "idle" // no traffic at all: the gate is skipped
)

// Needs lists what a spec's gates need at each of the ladder's percents, at so many
// requests a second on the pair. Rules that judge nothing at a step, as a regression at
// 100 %, are left out.
func Needs(s rollout.Spec, percents []int, t rollout.Timings, rate float64) []GateNeed {
	out := []GateNeed{}
	for i, percent := range percents {
		for _, rule := range s.Rules {
			if judged([]rollout.Rule{rule}, percent) {
				out = append(out, needOf(rule, i+1, percent, t.WindowOf(rule), rate))
			}
		}
	}
	return out
}

func needOf(rule rollout.Rule, step, percent int, window time.Duration, rate float64) GateNeed {
	n := GateNeed{Step: step, Percent: percent, Rule: MetricName(rule), Samples: rule.SamplesNeeded(), Window: api.Duration(window), Side: "target", Share: percent}
	if rest := 100 - percent; rule.Regression != nil && rest < percent {
		n.Side, n.Share = "source", rest
	}
	each := window.Seconds() * float64(n.Share) / 100 // requests in a window, at one a second on the pair
	n.Average, n.Sure = float64(n.Samples)/each, surely(n.Samples)/each
	if rate > 0 {
		n.Needs = api.Duration(time.Duration(math.Ceil(float64(n.Samples)/(rate*float64(n.Share)/100))) * time.Second)
	}
	switch {
	case rate <= 0:
		n.Verdict = Idle
	case rate < n.Average:
		n.Verdict = TooFew
	case rate < n.Sure:
		n.Verdict = Tight
	default:
		n.Verdict = Enough
	}
	return n
}

// Text says a need in a sentence.
func (n GateNeed) Text(rate float64) string {
	at := fmt.Sprintf("step %d: at %d %% of %s requests a second", n.Step, n.Share, RateText(rate))
	window := Span(time.Duration(n.Window))
	switch n.Verdict {
	case Idle:
		return fmt.Sprintf("step %d: without traffic the gate is skipped", n.Step)
	case TooFew:
		return fmt.Sprintf("%s the %s gate needs %s; your window is %s: it will park METRICS_UNAVAILABLE", at, n.Rule, Span(time.Duration(n.Needs)), window)
	case Tight:
		return fmt.Sprintf("%s the %s gate needs %s on average; your window is %s: some windows lack samples and park METRICS_UNAVAILABLE", at, n.Rule, Span(time.Duration(n.Needs)), window)
	}
	return fmt.Sprintf("%s the %s gate has its %s in %s; your window is %s", at, n.Rule, Count(n.Samples, "sample"), Span(time.Duration(n.Needs)), window)
}

// RateText is a rate with two digits that matter.
func RateText(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// surely is the mean of a Poisson count that is n or more in 95 of 100 cases.
func surely(n int) float64 {
	low, high := float64(n), float64(n)*2+10
	for range 60 {
		middle := (low + high) / 2
		if fewer(n, middle) > 0.05 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// fewer is the chance that a Poisson count of this mean is below n.
func fewer(n int, mean float64) float64 {
	total := 0.0
	for k := range n {
		logs, _ := math.Lgamma(float64(k) + 1)
		total += math.Exp(float64(k)*math.Log(mean) - mean - logs)
	}
	return total
}
