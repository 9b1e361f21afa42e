package rehearsal

import (
	"fmt"
	"strings"
	"time"
)

// wayBack draws a script of a rollout with a circuit breaker whose target goes bad now
// and then: in a world of every fault at once a breaker seldom has anything to see.
func (d *drawer) wayBack() Script {
	n := 1 + d.IntN(6)
	metric := pick(d, "router_error_rate", "inflight_requests", "router_latency")
	stat := map[bool]string{true: " p95", false: ""}[metric == "router_latency"]
	text := pick(d, "canary"+d.ladder(0), "canary 50 100", "blue-green", "rolling")
	given := []string{
		fmt.Sprintf("source: %d ready; drain %ds", n, pick(d, 0, 5, 60)),
		fmt.Sprintf("target: stopped; cold start %ds; budget 600s", 1+d.IntN(120)),
		"timings: " + pick(d, "published", "published", "no looks"),
		"rollout: " + text + pick(d, "", "", "; hold source", "; final source 1"),
		fmt.Sprintf("breaker: %s%s threshold LT 0.6; window %ds", metric, stat, pick(d, 60, 90)),
		fmt.Sprintf("traffic: %d/s", pick(d, 1, 5, 100)),
		fmt.Sprintf("measure: %s target 0.5", metric),
	}
	if strings.HasPrefix(text, "canary") && d.oneIn(2) {
		given = append(given, fmt.Sprintf("gate: %s%s threshold LT 0.9; window 60s", metric, stat))
	}
	s := Script{Given: given, When: []string{"+0:00 start"}}
	var at time.Duration
	for range 2 + d.IntN(8) {
		at += time.Duration(pick(d, 1, 40, 100, 200, 400, 1000)) * time.Second
		deed := pick(d,
			fmt.Sprintf("measure %s target %s", metric, pick(d, "0.7", "0.7", "0.001", "NaN")),
			fmt.Sprintf("measure %s target 0.7", metric),
			"pause \"a look\"", "pause \"a look\"", "resume", "resume", "promote", "meter blind", "meter sees", d.fleetDeed(), d.control(), d.port(),
			fmt.Sprintf("at call %d: crash %s", 1+d.IntN(9), pick(d, "before", "after")),
			fmt.Sprintf("at call %d: break glass %d \"by hand\"", 1+d.IntN(5), d.IntN(101)))
		s.When = append(s.When, offset(at)+" "+deed)
		if strings.HasPrefix(deed, "pause") { // the target goes bad while nobody is there
			s.When = append(s.When, fmt.Sprintf("%s measure %s target 0.7", offset(at+30*time.Second), metric))
			at += 10 * time.Minute
		}
	}
	s.When = append(s.When, offset(at+time.Duration(pick(d, 10, 1000, 4000))*time.Second)+" mend")
	return s
}
