package rollout_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// scenario is one parsed text: a world, a script, and what is expected of it. The
// format is told in testdata/scenarios/README.md.
type scenario struct {
	head   string // everything before the expected lines, kept as written
	given  []line
	when   []line
	expect []string
}

// line is one line of a scenario with its number, for messages.
type line struct {
	number int
	text   string
}

func (l line) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %q: %s", l.number, l.text, fmt.Sprintf(format, args...))
}

// command is one line of a script.
type command struct {
	text  string
	at    time.Time     // when; zero for one that waits for a phase
	phase Phase         // the phase it waits for
	step  int           // 1-based; 0 for any
	after time.Duration // after the phase has begun
	do    func(*world)
}

// parseScenario reads a text with the headings given, when and then.
func parseScenario(text string) (scenario, error) {
	var s scenario
	section := ""
	for i, raw := range strings.Split(text, "\n") {
		t := strings.TrimSpace(raw)
		if section != "then" {
			s.head += raw + "\n"
		}
		switch {
		case t == "" || section != "then" && strings.HasPrefix(t, "#"):
		case t == "given" || t == "when" || t == "then":
			section = t
		case section == "given":
			s.given = append(s.given, line{i + 1, t})
		case section == "when":
			s.when = append(s.when, line{i + 1, t})
		case section == "then":
			s.expect = append(s.expect, strings.TrimRight(strings.TrimPrefix(raw, "  "), " "))
		default:
			return s, line{i + 1, t}.errorf("stands before the heading given")
		}
	}
	if section != "then" {
		return s, fmt.Errorf("the heading then is missing")
	}
	return s, nil
}

// build makes the world of a scenario, with its script ready to run.
func (s scenario) build() (*world, error) {
	w := newWorld()
	w.meter.rate.set(w.now, 5)
	var spec []string
	var rules []Rule
	var breaker *Breaker
	for _, l := range s.given {
		key, rest, ok := strings.Cut(l.text, ":")
		if !ok {
			return nil, l.errorf("wants \"what: how\"")
		}
		rest = strings.TrimSpace(rest)
		var err error
		switch key {
		case "source":
			err = parseSide(w, w.source, rest)
		case "target":
			err = parseSide(w, w.target, rest)
		case "split":
			var n int
			n, err = strconv.Atoi(strings.TrimSuffix(rest, " on the target"))
			w.router.history = nil
			w.router.serve(n, w.now)
		case "rollout":
			spec = append(spec, rest)
		case "gate":
			var r Rule
			r, err = parseRule(rest)
			rules = append(rules, r)
		case "breaker":
			breaker, err = withRule(breaker, rest)
		default:
			var do func(*world)
			if do, err = parseCommand(key + " " + rest); err == nil {
				do(w)
			}
		}
		if err != nil {
			return nil, l.errorf("%v", err)
		}
	}
	for _, text := range spec {
		sp, err := parseSpec(text)
		if err != nil {
			return nil, err
		}
		sp.Rules, sp.Breaker = rules, breaker
		w.fleet()
		w.create(sp)
	}
	return w, s.script(w, rules)
}

// script gives the world its commands.
func (s scenario) script(w *world, rules []Rule) error {
	for _, l := range s.when {
		c, rest, err := parseWhen(l.text)
		if err != nil {
			return l.errorf("%v", err)
		}
		if c.do, err = parseAct(rest, rules); err != nil {
			return l.errorf("%v", err)
		}
		if c.text = rest; c.phase != "" {
			w.triggers = append(w.triggers, c)
		} else {
			w.pending = append(w.pending, c)
		}
	}
	return nil
}

var (
	atTime  = regexp.MustCompile(`^(\+\S+)\s+(.*)$`)
	inPhase = regexp.MustCompile(`^in ([A-Z]+)(?: of step (\d+))?(?: after (\S+))?: (.*)$`)
)

// parseWhen reads the moment of a command: "+3:57 …" or "in SOAKING of step 2 after 10s: …".
func parseWhen(text string) (command, string, error) {
	if m := atTime.FindStringSubmatch(text); m != nil {
		d, err := parseClock(m[1])
		return command{at: epoch.Add(d)}, m[2], err
	}
	m := inPhase.FindStringSubmatch(text)
	if m == nil {
		return command{}, "", fmt.Errorf("wants +M:SS or \"in PHASE:\" in front")
	}
	c := command{phase: Phase(m[1])}
	var err error
	if m[2] != "" {
		c.step, err = strconv.Atoi(m[2])
	}
	if m[3] != "" && err == nil {
		c.after, err = time.ParseDuration(m[3])
	}
	return c, m[4], err
}

// parseClock reads +M:SS, +H:MM:SS and +9d00:00:00.
func parseClock(text string) (time.Duration, error) {
	rest := strings.TrimPrefix(text, "+")
	var total time.Duration
	if days, more, ok := strings.Cut(rest, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil {
			return 0, err
		}
		total, rest = time.Duration(n)*24*time.Hour, more
	}
	var seconds int
	for _, part := range strings.Split(rest, ":") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time", text)
		}
		seconds = seconds*60 + n
	}
	return total + time.Duration(seconds)*time.Second, nil
}

// parseSide reads "3 ready; bounds 3..3; cold start 4m; drain 10s" or "stopped; …".
func parseSide(w *world, s *side, text string) error {
	for _, part := range clauses(text) {
		var err error
		switch {
		case part == "stopped":
			s.bounds = Bounds{}
		case strings.HasSuffix(part, " ready"):
			var n int
			if n, err = strconv.Atoi(strings.TrimSuffix(part, " ready")); err == nil {
				s.bounds, s.wish = Bounds{Min: n, Max: n}, n
				for range n {
					s.replicas = append(s.replicas, replica{life: ready})
				}
			}
		case strings.HasPrefix(part, "bounds "):
			s.bounds, err = parseBounds(strings.TrimPrefix(part, "bounds "))
		case strings.HasPrefix(part, "cold start "):
			s.cold, err = time.ParseDuration(strings.TrimPrefix(part, "cold start "))
		case strings.HasPrefix(part, "drain "):
			s.drain, err = time.ParseDuration(strings.TrimPrefix(part, "drain "))
		default:
			err = fmt.Errorf("%q is not known of a side", part)
		}
		if err != nil {
			return err
		}
	}
	w.watch.looked()
	return nil
}

func parseBounds(text string) (Bounds, error) {
	var b Bounds
	_, err := fmt.Sscanf(text, "%d..%d", &b.Min, &b.Max)
	return b, err
}

func clauses(text string) []string {
	parts := strings.Split(text, ";")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// parseSpec reads "canary 10 50x3 100; interval 600s; final target 2; final source 1".
func parseSpec(text string) (Spec, error) {
	var s Spec
	for i, part := range clauses(text) {
		var err error
		switch words := strings.Fields(part); {
		case i == 0:
			err = parseStrategy(&s, words)
		case words[0] == "interval":
			s.StepInterval, err = time.ParseDuration(words[1])
		case part == "hold source":
			s.HoldSource = true
		case strings.HasPrefix(part, "final target "):
			var n int
			n, err = strconv.Atoi(words[2])
			s.FinalTarget = &n
		case strings.HasPrefix(part, "final source "):
			s.FinalSource, err = strconv.Atoi(words[2])
		default:
			err = fmt.Errorf("%q is not known of a rollout", part)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func parseStrategy(s *Spec, words []string) error {
	kinds := map[string]Strategy{"canary": Canary, "blue-green": BlueGreen, "rolling": Rolling}
	s.Strategy = kinds[words[0]]
	if s.Strategy == "" {
		return fmt.Errorf("%q is not a strategy", words[0])
	}
	for _, word := range words[1:] {
		percent, count, override := strings.Cut(word, "x")
		p, err := strconv.Atoi(percent)
		if err != nil {
			return err
		}
		st := StepSpec{Percent: p}
		if override {
			n, err := strconv.Atoi(count)
			if err != nil {
				return err
			}
			st.Replicas = &n
		}
		s.Steps = append(s.Steps, st)
	}
	return nil
}

// parseRule reads "router_latency p95 regression 25 higher; window 300s" or
// "router_error_rate threshold LT 0.01".
func parseRule(text string) (Rule, error) {
	parts := clauses(text)
	words := strings.Fields(parts[0])
	r := Rule{Metric: Metric(words[0])}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "avg":
			r.Stat = StatAvg
		case strings.HasPrefix(w, "p"):
			n, err := strconv.Atoi(w[1:])
			if err != nil {
				return r, err
			}
			r.Stat, r.Percentile = StatPercentile, n
		case w == "regression" || w == "threshold":
			if len(words) != i+3 {
				return r, fmt.Errorf("%s wants two words", w)
			}
			return r, finishRule(&r, w, words[i+1], words[i+2], parts[1:])
		default:
			return r, fmt.Errorf("%q is not known of a gate", w)
		}
	}
	return r, fmt.Errorf("a gate wants regression or threshold")
}

func finishRule(r *Rule, kind, first, second string, more []string) error {
	var err error
	if kind == "threshold" {
		r.Threshold = &Threshold{Operator: Operator(first)}
		r.Threshold.Value, err = strconv.ParseFloat(second, 64)
	} else {
		r.Regression = &Regression{Direction: map[string]Direction{"higher": HigherIsWorse, "lower": LowerIsWorse}[second]}
		r.Regression.MaxPercent, err = strconv.ParseFloat(first, 64)
	}
	for _, part := range more {
		if err != nil || !strings.HasPrefix(part, "window ") {
			return fmt.Errorf("%q is not known of a gate", part)
		}
		r.Window, err = time.ParseDuration(strings.TrimPrefix(part, "window "))
	}
	return err
}

// parseAct reads a command that needs the scenario's gates, or any other.
func parseAct(text string, rules []Rule) (func(*world), error) {
	verb, rest, _ := strings.Cut(text, ": ")
	if verb != "again" && verb != "back" {
		return parseCommand(text)
	}
	s, err := parseSpec(rest)
	if err != nil {
		return nil, err
	}
	if s.Strategy == Canary {
		s.Rules = rules
	}
	return func(w *world) {
		if verb == "back" {
			w.swap()
		}
		w.create(s)
	}, nil
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

// parseCommand reads what happens to a world.
func parseCommand(text string) (func(*world), error) {
	reason := ""
	if m := quoted.FindStringSubmatch(text); m != nil {
		reason = m[1]
	}
	words := strings.Fields(quoted.ReplaceAllString(text, ""))
	if len(words) == 0 {
		return nil, fmt.Errorf("nothing to do")
	}
	if do := parseControl(words, reason); do != nil {
		return do, nil
	}
	if do, err := parseFleet(words); !errors.Is(err, errNotOfTheFleet) {
		return do, err
	}
	return parseTraffic(words, reason)
}

// parseControl reads one of a person's controls.
func parseControl(words []string, reason string) func(*world) {
	switch strings.Join(words, " ") {
	case "start":
		return func(w *world) { w.press(func(r Rollout) (Rollout, []Event, error) { return r.Start(w.now) }) }
	case "pause":
		return func(w *world) {
			w.press(func(r Rollout) (Rollout, []Event, error) { return r.PauseBy("ana", reason, w.now) })
		}
	case "resume":
		return func(w *world) { w.press(func(r Rollout) (Rollout, []Event, error) { return r.Resume("ana", w.now) }) }
	case "promote":
		return func(w *world) {
			w.press(func(r Rollout) (Rollout, []Event, error) { return r.Promote("ana", w.now) })
		}
	case "cancel":
		return func(w *world) {
			w.press(func(r Rollout) (Rollout, []Event, error) { return r.Cancel("ana", reason, w.now) })
		}
	}
	return nil
}

// press is a control whose refusal stands in the transcript.
func (w *world) press(control func(Rollout) (Rollout, []Event, error)) { _ = w.control(control) }

var errNotOfTheFleet = errors.New("not a command of the fleet")

// parseFleet reads what happens to replicas and hardware.
func parseFleet(words []string) (func(*world), error) {
	n := 0
	if len(words) > 1 {
		n, _ = strconv.Atoi(words[1])
	}
	on := func(do func(*world, *side)) (func(*world), error) {
		switch words[len(words)-1] {
		case "source":
			return func(w *world) { do(w, w.source) }, nil
		case "target":
			return func(w *world) { do(w, w.target) }, nil
		}
		return nil, fmt.Errorf("%q is not a side", words[len(words)-1])
	}
	switch {
	case words[0] == "kill" && len(words) == 3: // kill 2 target
		return on(func(w *world, s *side) { w.watch.disturbed(); s.kill(n) })
	case words[0] == "stick" && len(words) == 2: // replicas that start do not become ready
		return on(func(_ *world, s *side) { s.stuck = true })
	case words[0] == "loop" && len(words) == 3: // loop 40s target
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return nil, err
		}
		return on(func(w *world, s *side) { w.watch.disturbed(); s.loop(d, w.now) })
	case words[0] == "heal" && len(words) == 2:
		return on(func(w *world, s *side) { s.heal(w.now) })
	case words[0] == "autoscale" && len(words) == 3: // autoscale 5 source
		return on(func(w *world, s *side) { w.watch.disturbed(); s.wish = n })
	case words[0] == "bound" && len(words) == 3: // bound 1..4 target
		b, err := parseBounds(words[1])
		if err != nil {
			return nil, err
		}
		return on(func(w *world, s *side) { s.edit(w, b) })
	case words[0] == "free" && len(words) >= 2: // free 3 [shared]
		return func(w *world) { w.resize(n, len(words) > 2 && words[2] == "shared") }, nil
	}
	return nil, errNotOfTheFleet
}

// edit is an operator's change of a side's bounds.
func (s *side) edit(w *world, b Bounds) {
	w.watch.disturbed()
	s.pinnedMax = s.pinnedMax || b.Max != s.bounds.Max
	s.bounds, s.touched = b, true
}

// resize makes so many further replicas fit.
func (w *world) resize(free int, shared bool) {
	w.pool.shared = w.pool.shared || shared
	w.pool.size = len(w.target.replicas) + free
	if w.pool.shared {
		w.pool.size += len(w.source.replicas)
	}
}

// parseTraffic reads what happens to requests, readings and routers.
func parseTraffic(words []string, reason string) (func(*world), error) {
	switch text := strings.Join(words, " "); {
	case words[0] == "traffic" && len(words) == 2: // traffic 5/s
		rate, err := strconv.ParseFloat(strings.TrimSuffix(words[1], "/s"), 64)
		return func(w *world) { w.meter.rate.set(w.now, rate) }, err
	case words[0] == "measure" && len(words) == 4: // measure router_latency source 734.20
		return parseMeasure(words)
	case text == "meter blind" || text == "meter sees":
		return func(w *world) { w.meter.blind.set(w.now, map[string]float64{"blind": 1}[words[1]]) }, nil
	case words[0] == "mute" || words[0] == "unmute": // mute target: it is given no request
		return func(w *world) {
			id := w.source.id
			if words[1] == "target" {
				id = w.target.id
			}
			m := w.meter.mute[id]
			m.set(w.now, map[string]float64{"mute": 1}[words[0]])
			w.meter.mute[id] = m
		}, nil
	case text == "lapse": // the billing allows no scale-up any more
		return func(w *world) { w.lapse = reason }, nil
	case text == "mend billing":
		return func(w *world) { w.lapse = "" }, nil
	case text == "outage": // the runner cannot see or change the world
		return func(w *world) { w.outage(reason) }, nil
	case text == "routers fail":
		return func(w *world) { w.router.failing = reason }, nil
	case text == "routers work":
		return func(w *world) { w.router.failing = "" }, nil
	case strings.HasPrefix(text, "routers late "):
		d, err := time.ParseDuration(words[2])
		return func(w *world) { w.router.delay = d }, err
	case strings.HasPrefix(text, "break glass ") && len(words) == 3: // an edit of the locked split that is allowed
		n, err := strconv.Atoi(words[2])
		return func(w *world) { w.breakGlass(n, reason) }, err
	case words[0] == "split" && len(words) == 2: // somebody changes the locked split by hand
		n, err := strconv.Atoi(words[1])
		return func(w *world) { w.router.edit(n, w.now) }, err
	}
	return nil, fmt.Errorf("not a command")
}

// withRule adds a rule to a circuit breaker that ana signed.
func withRule(b *Breaker, text string) (*Breaker, error) {
	r, err := parseRule(text)
	if b == nil {
		b = &Breaker{SignedBy: "ana"}
	}
	b.Rules = append(b.Rules, r)
	return b, err
}

// breakGlass is a person's edit of the split that the rollout holds, as the engine
// takes it: the record and the split in one commit.
func (w *world) breakGlass(percent int, reason string) {
	if !w.router.held {
		return
	}
	was := w.router.asked
	if w.control(func(r Rollout) (Rollout, []Event, error) { return r.BreakGlass("ana", reason, was, percent, w.now) }) == nil {
		w.router.edit(percent, w.now)
	}
}

// edit changes the split of the pair outside the rollout.
func (r *router) edit(percent int, now time.Time) {
	if percent == r.served && r.lands.IsZero() {
		return
	}
	r.asked = percent
	r.generation++
	r.serve(percent, now)
}

func parseMeasure(words []string) (func(*world), error) {
	v, err := strconv.ParseFloat(words[3], 64)
	if words[3] == "NaN" {
		v, err = math.NaN(), nil
	}
	return func(w *world) {
		s := signal{w.source.id, Metric(words[1])}
		if words[2] == "target" {
			s.deployment = w.target.id
		}
		values := w.meter.values[s]
		values.set(w.now, v)
		w.meter.values[s] = values
	}, err
}
