package rehearsal

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"time"
)

// Draw makes the random script of a seed: a pair, a rollout of it, and what may happen
// to it. It ends with the line mend, from which on a patient operator brings the rollout
// to its end.
func Draw(seed uint64) Script {
	d := &drawer{rand.New(rand.NewPCG(seed, 0x51a1ce))}
	if d.oneIn(8) {
		return d.wayBack()
	}
	s := Script{Given: d.given()}
	var at time.Duration
	start := "+0:00 start"
	if d.oneIn(12) {
		start = "+0:30 start"
	}
	s.When = append(s.When, start)
	if d.oneIn(20) {
		s.When = nil // nobody starts it but the operator at the end
	}
	var later []string
	if d.oneIn(4) {
		later = d.story()
	}
	for range d.IntN(22) {
		at += time.Duration(pick(d, 0, 1, 7, 40, 100, 400, 1000, 5000)) * time.Second
		deed := d.deed()
		if d.oneIn(4) {
			later = append(later, fmt.Sprintf("in %s of step %d after %ds: %s", d.phase(), 1+d.IntN(3), pick(d, 0, 0, 1, 20), deed))
			continue
		}
		s.When = append(s.When, offset(at)+" "+deed)
	}
	sort.Strings(later)
	s.When = append(s.When, later...)
	at += time.Duration(pick(d, 10, 1000, 4000)) * time.Second
	s.When = append(s.When, lapses(seed, at)...)
	s.When = append(s.When, offset(at)+" mend")
	return s
}

// offset prints a time since the beginning as a script has it.
func offset(d time.Duration) string {
	return fmt.Sprintf("+%d:%02d:%02d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
}

type drawer struct{ *rand.Rand }

func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

func (d *drawer) oneIn(n int) bool { return d.IntN(n) == 0 }

// given draws what stands.
func (d *drawer) given() []string {
	n := 1 + d.IntN(12)
	if d.oneIn(3) {
		n = 1 + d.IntN(3)
	}
	lo, hi := 1+d.IntN(n), n+d.IntN(7)
	if d.oneIn(2) {
		lo, hi = n, n
	}
	out := []string{
		fmt.Sprintf("source: %d ready; bounds %d..%d; cold start %ds; budget 600s; drain %ds", n, lo, hi, 1+d.IntN(300), d.drain()),
	}
	seed := 0
	if d.oneIn(4) {
		k := 1 + d.IntN(6)
		seed = 1 + d.IntN(90)
		out = append(out, fmt.Sprintf("target: %d ready; bounds 1..%d; cold start %ds; budget 600s; drain %ds", k, k, 1+d.IntN(300), d.drain()), fmt.Sprintf("split: %d", seed))
	} else {
		out = append(out, fmt.Sprintf("target: stopped; cold start %ds; budget 600s; drain %ds", 1+d.IntN(500), d.drain()))
	}
	if d.oneIn(5) {
		out = append(out, fmt.Sprintf("other: %d ready", 1+d.IntN(3)))
	}
	timings := pick(d, "published", "published", "published", "no looks", "no confirmation", "compressed")
	out = append(out, "timings: "+timings)
	out = append(out, fmt.Sprintf("copies: %d", pick(d, 1, 1, 2, 3, 5)), "poll: "+pick(d, "5s", "30s", "2m", "2m"))
	out = append(out, fmt.Sprintf("routers: late %ds", pick(d, 0, 1, 2)))
	if d.oneIn(2) {
		out = append(out, "gateway: in the engine")
	}
	switch d.IntN(10) {
	case 0, 1:
		out = append(out, fmt.Sprintf("free: %d", d.IntN(10)))
	case 2, 3: // one pool for both sides, with room for the journey or nearly so
		out = append(out, fmt.Sprintf("free: %d shared", n-1+d.IntN(3)))
	}
	out = append(out, d.rollout(seed)...)
	if timings != "compressed" && d.oneIn(10) { // which looks at a breaker a million times in a paused day
		out = append(out, "breaker: "+d.breaker())
	}
	return append(out, fmt.Sprintf("traffic: %v/s", pick(d, 0, 0.01, 5, 5, 100)))
}

func (d *drawer) drain() int { return pick(d, 0, 0, 5, 60, 1200) }

// rollout draws a spec with its gates.
func (d *drawer) rollout(seed int) []string {
	text := pick(d, "canary", "canary", "canary", "blue-green", "rolling")
	canary := text == "canary"
	if canary {
		text += d.ladder(seed)
	}
	if canary && d.oneIn(3) {
		text += fmt.Sprintf("; interval %ds", pick(d, 1, 60, 600))
	}
	if d.oneIn(4) {
		text += fmt.Sprintf("; final target %d", 1+d.IntN(15))
	}
	if d.oneIn(4) {
		text += "; final source 1"
	}
	if d.oneIn(6) {
		text += "; hold source"
	}
	out := []string{"rollout: " + text}
	if !canary {
		return out
	}
	for range d.IntN(3) {
		out = append(out, "gate: "+d.gate())
	}
	return out
}

func (d *drawer) ladder(seed int) string {
	text, last := "", seed
	for last < 99 && !d.oneIn(3) {
		last += 1 + d.IntN(100-last)
		text += fmt.Sprintf(" %d", last)
		if last < 100 && d.oneIn(5) {
			text += fmt.Sprintf("x%d", 1+d.IntN(6))
		}
	}
	if text != "" && last < 100 {
		text += " 100"
	}
	return text
}

func (d *drawer) gate() string {
	text := pick(d, "router_error_rate", "inflight_requests", "router_latency p50", "router_latency p95", "router_latency p99")
	text += pick(d, " regression 25 higher", " regression 0 higher", " regression 10 lower", " threshold LT 0.9", " threshold LTE 0.5")
	return text + pick(d, "", "; window 60s", "; window 90s", "; window 600s")
}

func (d *drawer) breaker() string {
	text := pick(d, "router_error_rate", "inflight_requests", "router_latency p50", "router_latency p95")
	return text + " threshold LT 0.6" + pick(d, "", "; window 60s", "; window 90s")
}

func (d *drawer) phase() string {
	return pick(d, "CHECKING", "SCALING", "SHIFTING", "PROPAGATING", "DRAINING", "SOAKING", "GATING", "CONFIRMING", "RELEASING")
}

func (d *drawer) side() string { return pick(d, "source", "target", "target") }

// deed draws one thing that happens.
func (d *drawer) deed() string {
	switch d.IntN(9) {
	case 0, 1:
		return d.control()
	case 2, 3:
		return d.fleetDeed()
	case 4:
		return d.bounds()
	case 5:
		return d.traffic()
	case 6:
		return d.port()
	case 7:
		return fmt.Sprintf("at call %d: crash %s", 1+d.IntN(9), pick(d, "before", "after"))
	}
	return fmt.Sprintf("at call %d: %s", 1+d.IntN(5), pick(d, d.control(), d.control(), d.fleetDeed(), d.bounds()))
}

// story draws faults that only mean something one after the other.
func (d *drawer) story() []string {
	if d.oneIn(2) {
		return d.crashLoop()
	}
	phase := pick(d, "PROPAGATING", "SOAKING")
	return []string{ // routers that cannot be told of a replica that comes or goes while a split is served
		d.in(phase, 1, 1, "routers fail \"no gateway answers\""),
		d.in(phase, 1, 2, pick(d, "autoscale 1 source", "autoscale 12 source", "autoscale 12 target")),
		d.in(phase, 1, pick(d, 40, 58, 400), "routers work"),
	}
}

// crashLoop draws a target that crashes again and again, with something in between that
// may make an engine forget how often.
func (d *drawer) crashLoop() []string {
	step := 1 + d.IntN(2)
	return []string{
		d.in("SOAKING", step, 0, fmt.Sprintf("loop %ds target", pick(d, 30, 60, 300))),
		d.in("SOAKING", step, pick(d, 60, 400, 3000), pick(d, "at call 1: crash after", "notices lost", "resume")),
		d.in("SOAKING", step, 4000, "heal target"),
	}
}

// in is a line of a script for the first time that a step is in a phase.
func (*drawer) in(phase string, step, seconds int, deed string) string {
	return fmt.Sprintf("in %s of step %d after %ds: %s", phase, step, seconds, deed)
}

func (d *drawer) control() string {
	return pick(d,
		"start", "resume", "resume", "resume", "promote", "cancel \"enough\"", "pause \"a look\"", "pause \"a look\"",
		fmt.Sprintf("break glass %d \"by hand\"", d.IntN(101)), "stale cancel", "stale resume", "stale pause", fmt.Sprintf("split %d", d.IntN(101)), "again: blue-green", "delete")
}

func (d *drawer) fleetDeed() string {
	n := d.IntN(13)
	switch d.IntN(9) {
	case 0, 1, 2:
		return fmt.Sprintf("kill %d %s", 1+n/2, d.side())
	case 3:
		return fmt.Sprintf("%s %s", pick(d, "stick", "heal"), d.side())
	case 4:
		return "fail starting " + d.side()
	case 5:
		return fmt.Sprintf("cold %ds %s", pick(d, 1, 60, 550, 900), d.side())
	case 6:
		return fmt.Sprintf("free %d", n/2)
	case 7:
		return "unlimited"
	}
	return fmt.Sprintf("autoscale %d %s", n, d.side())
}

func (d *drawer) bounds() string {
	if d.oneIn(8) {
		return "bound 0..0 " + d.side()
	}
	lo := 1 + d.IntN(8)
	return fmt.Sprintf("bound %d..%d %s", lo, lo+d.IntN(13), d.side())
}

func (d *drawer) traffic() string {
	switch d.IntN(6) {
	case 0:
		return fmt.Sprintf("traffic %v/s", pick(d, 0, 0.01, 5, 100))
	case 1:
		return pick(d, "meter blind", "meter sees", "meter down", "meter up")
	case 2:
		return pick(d, "mute ", "unmute ") + d.side()
	}
	return fmt.Sprintf("measure %s %s %s", pick(d, "router_latency", "router_error_rate", "inflight_requests"), d.side(), pick(d, "0", "0.001", "0.5", "700", "1740", "NaN", "NaN"))
}

func (d *drawer) port() string {
	switch d.IntN(8) {
	case 0:
		return pick(d, "routers fail \"no gateway answers\"", "routers work")
	case 1:
		return fmt.Sprintf("routers late %ds", pick(d, 0, 1, 20))
	case 2:
		return pick(d, "store down", "store up", "store up")
	case 3:
		return fmt.Sprintf("store %s %d", pick(d, "fails", "loses"), 1+d.IntN(4))
	case 4:
		return fmt.Sprintf("store slow %s", pick(d, "0s", "100ms", "4s"))
	case 5:
		return pick(d, "fleet down", "fleet up", "fleet up")
	case 6:
		return pick(d, "notices lost", "notices come")
	}
	return "clock " + pick(d, "10s", "-10s", "300s", "-300s", "3h", "-3h")
}
