package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// Setup is what a play needs beside its script.
type Setup struct {
	Disk  *store.SQLite // in memory and empty
	Reads Reads
	Wrong Wrong // makes the engine a wrong one; nil for the real one
}

// newWorld makes the world of a script, with its commands ready to run.
func newWorld(ctx context.Context, s Script, setup Setup) (*World, error) {
	w := &World{ctx: ctx, now: Epoch, lastDeed: Epoch, timings: rollout.DefaultTimings(), poll: 5 * time.Second, wrong: setup.Wrong}
	w.source = &side{name: "source", cold: time.Minute, bounds: rollout.Bounds{Min: 1, Max: 1}, ready: 1, weight: 100}
	w.target = &side{name: "target", cold: time.Minute}
	w.sides = []*side{w.source, w.target}
	w.watch, w.power = newWatch(w), &power{w: w}
	w.routers, w.billing = newRouters(w, 1), &billing{w: w}
	var commands []func(*World)
	var specs []rollout.Spec
	for _, text := range s.Given {
		key, rest, ok := strings.Cut(text, ":")
		if !ok {
			return nil, &lineError{text, errors.New("wants \"what: how\"")}
		}
		rest = strings.TrimSpace(rest)
		var err error
		switch key {
		case "rollout":
			var spec rollout.Spec
			if spec, err = parseSpec(rest); err == nil {
				specs = append(specs, spec)
			}
		case "gate":
			var r rollout.Rule
			if r, err = parseRule(rest); err == nil {
				w.rules = append(w.rules, r)
			}
		case "breaker":
			var r rollout.Rule
			if r, err = parseRule(rest); err == nil {
				w.breaker = withRule(w.breaker, r)
			}
		default:
			if known, e := w.fact(key, rest); known {
				err = e
				break
			}
			var do func(*World)
			if do, err = parseCommand(commandOf(text, key, rest), nil); err == nil {
				commands = append(commands, do)
			}
		}
		if err != nil {
			return nil, &lineError{text, err}
		}
	}
	for _, text := range slices.Concat(s.Given, s.When) {
		w.shared = w.shared || strings.HasSuffix(text, " shared")
	}
	if err := w.script(s.When); err != nil {
		return nil, err
	}
	for _, side := range w.sides {
		if side.budget == 0 {
			side.budget = max(side.cold, time.Second)
		}
	}
	if w.routers.dies { // then it is in the same process, and the only one
		w.routers.copies = make([]routerCopy, 1)
	}
	w.meter = newMeter(w, w.timings.IngestionLag)
	w.power.busy = true
	if err := w.build(setup.Disk, setup.Reads); err != nil { //nolint:contextcheck // the simulated fleet's drains have a life of their own
		return w, fmt.Errorf("%w: %w", errSetup, err)
	}
	w.begin(commands, specs)
	return w, nil
}

// begin is +0:00: what the script says of the world, and its first rollout.
func (w *World) begin(commands []func(*World), specs []rollout.Spec) {
	w.power.busy = true
	for _, spec := range specs {
		spec.Rules, spec.Breaker = w.rules, w.breaker
		create(spec)(w)
	}
	w.power.calls = 0
	for _, do := range commands {
		do(w)
	}
	w.power.busy = false
}

// commandOf is a command as it stands among the facts: "free: 2", "at call 3: crash after".
func commandOf(text, key, rest string) string {
	if atCall.MatchString(text) {
		return text
	}
	return key + " " + rest
}

// What a world can hold: each endpoint has replicas, and each copy is told every route.
const (
	maxEndpoints = 1000
	maxCopies    = 100
)

// wholeTo reads a whole number from 1 to most; it is 1 with an error.
func wholeTo(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 1, fmt.Errorf("%q is not a whole number from 1 to %d", text, most)
	}
	return n, nil
}

// fact reads one line of given that is not a command.
func (w *World) fact(key, rest string) (known bool, err error) {
	switch key {
	case "source", "target":
		s := map[string]*side{"source": w.source, "target": w.target}[key]
		return true, s.parse(rest)
	case "other": // a third member of the split, with so many replicas
		n, err := strconv.Atoi(strings.TrimSuffix(rest, " ready"))
		w.sides = append(w.sides, &side{name: "other", cold: time.Minute, ready: n, bounds: rollout.Bounds{Min: n, Max: n}, weight: 50})
		return true, err
	case "weights": // of all replicas of source, target and other, in any scale
		return true, w.weigh(strings.Fields(rest))
	case "endpoints": // so many in all; the others only serve
		n, err := wholeTo(rest, maxEndpoints)
		w.elsewhere = n - 1
		return true, err
	case "split":
		n, err := strconv.Atoi(strings.TrimSuffix(rest, " on the target"))
		w.source.weight, w.target.weight = float64(100-n), float64(n)
		return true, err
	case "copies":
		n, err := wholeTo(rest, maxCopies)
		w.routers.copies = make([]routerCopy, n)
		return true, err
	case "poll":
		w.poll, err = time.ParseDuration(rest)
		return true, err
	case "gateway":
		w.routers.dies = rest == "in the engine"
		return true, nil
	case "timings":
		return true, w.timing(rest)
	}
	return false, nil
}

// timing chooses among the timings that rehearsals play.
func (w *World) timing(name string) error {
	t := &w.timings
	switch name {
	case "published":
	case "no looks":
		t.PeekEvery = 0
	case "no confirmation":
		t.Confirmation, t.PeekEvery = 0, 0
	case "compressed":
		t.Propagation, t.IngestionLag, t.DefaultWindow, t.DefaultInterval = 2*time.Second, 3*time.Second, 15*time.Second, 5*time.Second
		t.Confirmation, t.PeekEvery, t.GateSettle, t.MinimumWindow = 4*time.Second, 700*time.Millisecond, 200*time.Millisecond, time.Second
	default:
		return fmt.Errorf("%q are no timings", name)
	}
	return nil
}

// parse reads "3 ready; bounds 3..3; cold start 4m; budget 10m; drain 10s" or "stopped".
func (s *side) parse(text string) error {
	bounded := false
	for _, part := range clauses(text) {
		var err error
		switch {
		case part == "stopped":
			s.ready, s.bounds = 0, rollout.Bounds{}
		case strings.HasSuffix(part, " ready"):
			s.ready, err = strconv.Atoi(strings.TrimSuffix(part, " ready"))
			if !bounded {
				s.bounds = rollout.Bounds{Min: s.ready, Max: s.ready}
			}
		case strings.HasPrefix(part, "bounds "):
			bounded = true
			s.bounds, err = parseBounds(strings.TrimPrefix(part, "bounds "))
		case strings.HasPrefix(part, "cold start "):
			s.cold, err = time.ParseDuration(strings.TrimPrefix(part, "cold start "))
		case strings.HasPrefix(part, "budget "):
			s.budget, err = time.ParseDuration(strings.TrimPrefix(part, "budget "))
		case strings.HasPrefix(part, "drain "):
			s.drain, err = time.ParseDuration(strings.TrimPrefix(part, "drain "))
		default:
			err = fmt.Errorf("%q is not known of a side", part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// script gives the world its commands.
func (w *World) script(when []string) error {
	for _, text := range when {
		c, rest, err := parseWhen(text)
		if err != nil {
			return &lineError{text, err}
		}
		if c.do, err = parseCommand(rest, w.rules); err != nil {
			return &lineError{text, err}
		}
		c.text = rest
		if c.phase != "" {
			w.triggers = append(w.triggers, c)
		} else {
			w.pending = append(w.pending, c)
		}
	}
	w.inOrder()
	return nil
}
