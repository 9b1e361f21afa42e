package planning

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// GateForecast is one metric rule beside the traffic that there is.
type GateForecast struct {
	Metric   string        // for example "router_latency p95"
	Window   time.Duration // in effect
	Samples  int           // needed of each side that it reads, in the window
	Expected []*float64    // at each step, of the side with the smaller share; nil where it judges nothing
	Enough   bool          // at every step, in 95 of 100 windows
}

// Forecast tells for each rule of a spec the samples to expect at each of the ladder's
// percents, at so many requests a second on the pair.
func Forecast(s rollout.Spec, percents []int, t rollout.Timings, rate float64) []GateForecast {
	out := make([]GateForecast, 0, len(s.Rules))
	for _, rule := range s.Rules {
		g := GateForecast{Metric: MetricName(rule), Window: t.WindowOf(rule), Samples: rule.SamplesNeeded(), Enough: true}
		for i, percent := range percents {
			if !judged([]rollout.Rule{rule}, percent) {
				g.Expected = append(g.Expected, nil)
				continue
			}
			n := needOf(rule, i+1, percent, g.Window, rate)
			g.Expected = append(g.Expected, ptr(rate*g.Window.Seconds()*float64(n.Share)/100))
			g.Enough = g.Enough && n.Verdict == Enough
		}
		out = append(out, g)
	}
	return out
}
