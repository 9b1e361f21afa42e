package rehearsal

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// command is one line of a script.
type command struct {
	text  string
	at    time.Time     // when; zero for one that waits for a phase
	phase rollout.Phase // the phase it waits for
	step  int           // 1-based; 0 for any
	after time.Duration // after the phase has begun
	do    func(*World)
}

var (
	inPhase = regexp.MustCompile(`^in ([A-Z]+)(?: of step (\d+))?(?: after (\S+))?: (.*)$`)
	atCall  = regexp.MustCompile(`^at call (\d+): (.*)$`)
	quoted  = regexp.MustCompile(`"([^"]*)"`)
)

// parseWhen reads the moment of a command: "+3:57 …" or "in SOAKING of step 2 after 10s: …".
func parseWhen(text string) (command, string, error) {
	if strings.HasPrefix(text, "+") {
		at, rest, _ := strings.Cut(text, " ")
		d, err := parseClock(at)
		return command{at: Epoch.Add(d)}, strings.TrimSpace(rest), err
	}
	m := inPhase.FindStringSubmatch(text)
	if m == nil {
		return command{}, "", fmt.Errorf("wants +M:SS or \"in PHASE:\" in front")
	}
	c := command{phase: rollout.Phase(m[1])}
	var err error
	if m[2] != "" {
		c.step, err = strconv.Atoi(m[2])
	}
	if m[3] != "" && err == nil {
		c.after, err = time.ParseDuration(m[3])
	}
	return c, m[4], err
}

// command runs the next command of the script that is due, and reports whether there
// was one.
func (w *World) command() bool {
	if len(w.pending) == 0 || w.pending[0].at.After(w.now) {
		return false
	}
	c := w.pending[0]
	w.pending = w.pending[1:]
	w.say("given", "%s", c.text)
	w.watch.acted()
	w.lastDeed = w.now
	was := w.power.busy
	w.power.busy = true
	c.do(w)
	w.power.busy = was
	return true
}

// parseCommand reads what happens to a world.
func parseCommand(text string, rules []rollout.Rule) (func(*World), error) {
	if m := atCall.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		return parseAtCall(n, m[2])
	}
	if verb, rest, ok := strings.Cut(text, ": "); ok && (verb == "again" || verb == "back") {
		return parseAnother(verb, rest, rules)
	}
	reason := ""
	if m := quoted.FindStringSubmatch(text); m != nil {
		reason = m[1]
	}
	words := strings.Fields(quoted.ReplaceAllString(text, ""))
	if len(words) == 0 {
		return nil, fmt.Errorf("nothing to do")
	}
	for _, parse := range []func([]string, string) (func(*World), error){parseControl, parseFleet, parseTraffic, parsePort, parseBilling, parseRival, parseLooks} {
		if do, err := parse(words, reason); do != nil || err != nil {
			return do, err
		}
	}
	return nil, fmt.Errorf("%q is not a command", text)
}

// parseAtCall reads what happens at an outward call of the engine.
func parseAtCall(n int, text string) (func(*World), error) {
	switch text {
	case "crash before":
		return func(w *World) { w.power.after(n, crashBefore, nil) }, nil
	case "crash after":
		return func(w *World) { w.power.after(n, crashAfter, nil) }, nil
	}
	do, err := parseCommand(text, nil)
	if err != nil {
		return nil, err
	}
	return func(w *World) {
		w.power.after(n, between, func(w *World) {
			w.say("given", "meanwhile: %s", text)
			w.watch.acted()
			do(w)
		})
	}, nil
}

// parseAnother reads a new rollout of the same pair, or of the pair with its sides
// swapped.
func parseAnother(verb, text string, rules []rollout.Rule) (func(*World), error) {
	s, err := parseSpec(text)
	if err != nil {
		return nil, err
	}
	if s.Strategy == rollout.Canary {
		s.Rules = rules
	}
	return func(w *World) {
		if verb == "back" {
			w.source, w.target = w.target, w.source
			w.routers.measure()
		}
		create(s)(w)
	}, nil
}

// parseControl reads one of a person's controls.
func parseControl(words []string, reason string) (func(*World), error) {
	text := strings.Join(words, " ")
	switch text {
	case "start":
		return start, nil
	case "delete":
		return remove, nil
	case "pause", "resume", "promote", "cancel":
		return func(w *World) { w.control(text, reason, "") }, nil
	case "stale pause", "stale resume", "stale promote", "stale cancel":
		return func(w *World) { w.stale(strings.TrimPrefix(text, "stale "), reason) }, nil
	case "mend":
		return mend, nil
	}
	return nil, nil //nolint:nilnil // another parser knows it
}

// onSide makes a command about one side.
func onSide(name string, do func(*World, *side)) (func(*World), error) {
	switch name {
	case "source":
		return func(w *World) { do(w, w.source) }, nil
	case "target":
		return func(w *World) { do(w, w.target) }, nil
	}
	return nil, fmt.Errorf("%q is not a side", name)
}

// parseFleet reads what happens to replicas and hardware.
func parseFleet(words []string, _ string) (func(*World), error) {
	last := words[len(words)-1]
	n := 0
	if len(words) > 1 {
		n, _ = strconv.Atoi(words[1])
	}
	switch {
	case words[0] == "kill" && len(words) == 3:
		return onSide(last, func(w *World, s *side) { w.kill(s, n) })
	case words[0] == "fail" && len(words) == 3 && words[1] == "starting": // replicas that start crash
		return onSide(last, func(w *World, s *side) { w.failStarting(s) })
	case words[0] == "stick" && len(words) == 2:
		return onSide(last, func(w *World, s *side) { w.must(w.fleet.Stick(s.id)) })
	case words[0] == "heal" && len(words) == 2:
		return onSide(last, func(w *World, s *side) { s.loops = 0; w.must(w.fleet.Unstick(s.id)) })
	case words[0] == "loop" && len(words) == 3: // loop 40s target: what is ready crashes after so long
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return nil, err
		}
		return onSide(last, func(w *World, s *side) { w.watch.disturbed(); s.loops = d })
	case words[0] == "cold" && len(words) == 3: // cold 20m target: starts take so long from now on
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return nil, err
		}
		return onSide(last, func(_ *World, s *side) { s.cold = d })
	case words[0] == "autoscale" && len(words) == 3:
		return onSide(last, func(w *World, s *side) {
			w.watch.disturbed()
			w.must(w.fleet.SetDesired(w.ctx, s.id, n))
		})
	case words[0] == "bound" && len(words) == 3:
		b, err := parseBounds(words[1])
		if err != nil {
			return nil, err
		}
		return onSide(last, func(w *World, s *side) { w.edit(s, b) })
	case words[0] == "free" && len(words) >= 2:
		return func(w *World) { w.resize(n) }, nil
	case words[0] == "unlimited":
		return func(w *World) { w.capacity(-1) }, nil
	}
	return nil, nil //nolint:nilnil // another parser knows it
}

// parseTraffic reads what happens to requests and readings.
func parseTraffic(words []string, _ string) (func(*World), error) {
	switch {
	case words[0] == "traffic" && len(words) == 2:
		rate, err := strconv.ParseFloat(strings.TrimSuffix(words[1], "/s"), 64)
		return func(w *World) { w.meter.change(func(c *conditions) { c.rate = rate }) }, err
	case words[0] == "measure" && len(words) == 4:
		v, err := strconv.ParseFloat(words[3], 64)
		if words[3] == "NaN" {
			v, err = math.NaN(), nil
		}
		metric := rollout.Metric(words[1])
		do, bad := onSide(words[2], func(w *World, s *side) {
			w.meter.change(func(c *conditions) { c.values[signal{s.id, metric}] = v })
		})
		if bad != nil {
			err = bad
		}
		return do, err
	case words[0] == "meter" && len(words) == 2:
		switch words[1] {
		case "blind", "sees":
			return func(w *World) { w.meter.change(func(c *conditions) { c.blind = words[1] == "blind" }) }, nil
		case "down", "up":
			return func(w *World) { w.meter.down = words[1] == "down" }, nil
		}
	case (words[0] == "mute" || words[0] == "unmute") && len(words) == 2:
		return onSide(words[1], func(w *World, s *side) {
			w.meter.change(func(c *conditions) { c.mute[s.id] = words[0] == "mute" })
		})
	}
	return nil, nil //nolint:nilnil // another parser knows it
}

// parsePort reads what happens to the routers, the store, the fleet's interface and the
// clock.
func parsePort(words []string, reason string) (func(*World), error) {
	n := 0
	if len(words) > 2 {
		n, _ = strconv.Atoi(words[2])
	}
	text := strings.Join(words, " ")
	switch {
	case text == "routers fail":
		return func(w *World) { w.routers.failing = reason; w.watch.faulty() }, nil
	case text == "routers work":
		return func(w *World) { w.routers.failing = ""; w.watch.faulty() }, nil
	case strings.HasPrefix(text, "routers late ") && len(words) == 3:
		d, err := time.ParseDuration(words[2])
		return func(w *World) { w.routers.late = min(d, w.timings.Propagation) }, err
	case text == "store down", text == "store up":
		return func(w *World) { w.store.down = text == "store down"; w.watch.faulty() }, nil
	case strings.HasPrefix(text, "store fails ") && len(words) == 3:
		return func(w *World) { w.store.fails = n; w.watch.faulty() }, nil
	case strings.HasPrefix(text, "store loses ") && len(words) == 3: // answers, not writes
		return func(w *World) { w.store.loses = n; w.watch.faulty() }, nil
	case strings.HasPrefix(text, "store slow ") && len(words) == 3:
		d, err := time.ParseDuration(words[2])
		return func(w *World) { w.power.slow = d; w.watch.faulty() }, err
	case text == "fleet down", text == "fleet up":
		return func(w *World) { w.fleets.down = text == "fleet down"; w.watch.faulty() }, nil
	case text == "notices lost", text == "notices come":
		return func(w *World) { w.fleets.deaf = text == "notices lost"; w.watch.faulty() }, nil
	case words[0] == "clock" && len(words) == 2: // clock -90s: the engine's clock jumps
		d, err := time.ParseDuration(words[1])
		return func(w *World) { w.skew += d; w.watch.faulty() }, err
	case strings.HasPrefix(text, "break glass ") && len(words) == 3: // somebody with the permission edits it
		p, err := strconv.Atoi(words[2])
		return func(w *World) { w.breakGlass(p, reason) }, err
	case words[0] == "split" && len(words) == 2: // somebody tries to edit the locked split
		p, err := strconv.Atoi(words[1])
		return func(w *World) { w.trySplit(p) }, err
	}
	return nil, nil //nolint:nilnil // it is no command
}
