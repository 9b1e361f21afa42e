package rollout_test

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// epoch is the instant at which every virtual world begins.
var epoch = time.Date(2026, 9, 16, 20, 39, 45, 0, time.UTC)

// world is a virtual endpoint with one pair, its fleet, routers and meter, the
// stored record of one rollout, and the runner that drives it. Nothing in it
// waits: time jumps to the next thing that happens.
type world struct {
	now            time.Time
	source, target *side
	pool           pool
	router         *router
	meter          *meter
	timings        Timings

	stored []byte  // the record as the store holds it; nil without a rollout
	live   Rollout // the record as the running runner holds it
	events []Event // as the store holds them
	due    time.Time

	pending  []command // of the script, in order of time
	triggers []command // of the script, on a phase
	crash    crashPlan
	lapse    string // why the billing allows no scale-up; empty when it does
	watch    *watch
	lines    []string // the transcript
}

// crashPlan says at which boundaries the runner dies and starts anew: after the
// write of a decision, or after an effect.
type crashPlan struct {
	seen  int // boundaries so far
	at    int // the one to die at; 0 for none
	every int // die at every n-th one; 0 for none
}

// strike counts a boundary and reports whether the runner dies there.
func (c *crashPlan) strike() bool {
	c.seen++
	return c.seen == c.at || c.every > 0 && c.seen%c.every == 0
}

func newWorld() *world {
	w := &world{
		now:     epoch,
		source:  &side{id: "dep_src", bounds: Bounds{Min: 1, Max: 1}, cold: time.Minute},
		target:  &side{id: "dep_tgt", cold: time.Minute},
		pool:    pool{size: -1},
		router:  &router{},
		meter:   newMeter(),
		timings: DefaultTimings(),
	}
	w.watch = &watch{w: w}
	w.router.serve(0, w.now)
	return w
}

// record is the rollout as the runner knows it.
func (w *world) record() Rollout { return w.live }

// restart makes a runner that has just started: it knows what is stored, and no more.
func (w *world) restart() {
	w.live, w.due = Rollout{}, never
	if err := json.Unmarshal(w.stored, &w.live); err != nil {
		panic(err)
	}
}

// commit stores a record and its events in one write.
func (w *world) commit(r Rollout, events []Event) {
	old := w.record()
	stored, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	w.stored, w.live = stored, r
	for _, e := range events {
		text := fmt.Sprintf("%-24s %s", e.Type, e.Message)
		if e.Reason != "" && !strings.Contains(text, e.Reason) {
			text += " (" + e.Reason + ")"
		}
		w.say("event", "%s", text)
	}
	w.events = append(w.events, events...)
	if old.State != r.State && old.State != "" {
		w.say("state", "%s → %s", old.State, r.State)
	}
	w.watch.committed(old, r, events)
	w.pull(r)
}

// pull moves the triggers that wait for the record's phase to the script.
func (w *world) pull(r Rollout) {
	kept := w.triggers[:0]
	for _, c := range w.triggers {
		if r.State.Terminal() || r.State == Pending || c.phase != r.Phase || c.step > 0 && c.step != r.Step+1 {
			kept = append(kept, c)
			continue
		}
		c.at = w.now.Add(c.after)
		w.pending = append(w.pending, c)
	}
	w.triggers = kept
	sort.SliceStable(w.pending, func(i, j int) bool { return w.pending[i].at.Before(w.pending[j].at) })
}

// say adds a line to the transcript.
func (w *world) say(kind, format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%-10s %-7s %s", clock(w.now), kind, fmt.Sprintf(format, args...)))
}

// free is how many more replicas of the target fit.
func (w *world) free() int {
	if w.pool.size < 0 {
		return -1
	}
	used := len(w.target.replicas)
	if w.pool.shared {
		used += len(w.source.replicas)
	}
	return max(0, w.pool.size-used)
}

// fleet lets both fleets follow their autoscalers.
func (w *world) fleet() {
	sourceFree := -1
	if w.pool.shared {
		sourceFree = w.free()
	}
	w.source.fill(w.now, sourceFree)
	w.target.fill(w.now, w.free())
	w.watch.looked()
}

// observe looks at everything that a decision about r needs now.
func (w *world) observe(r Rollout) Observed {
	w.router.follow(w.source.count(ready), w.target.count(ready), w.now)
	if w.watch.most.counting {
		w.watch.most.look(w.target)
	}
	o := Observed{
		Source: w.source.observed(), Target: w.target.observed(), Split: w.router.observed(),
		Capacity: Capacity{Free: w.free(), Hardware: "1xnvidia-h100-80gb"},
	}
	if w.pool.shared {
		o.Capacity.Shared = SharedHardware
	}
	if WantsEntitlement(r, o) > 0 {
		o.Lapsed = w.lapse
	}
	for _, q := range Wants(r, w.now) {
		w.watch.queried(r, q)
		o.Readings = append(o.Readings, w.meter.read(q, w.target.id, w.router.history))
	}
	for _, q := range WantsBreaker(r, w.now) {
		got := w.meter.read(q, w.target.id, w.router.history)
		w.watch.breakerRead(q, got)
		o.Breaker = append(o.Breaker, got)
	}
	return o
}

// backOff is how long the runner waits when an effect changes nothing yet.
const backOff = time.Second

// settle decides and acts until nothing changes: the contract of every runner.
// The record and its events are stored before the first effect is tried.
func (w *world) settle() {
	if w.stored == nil {
		return
	}
	for range 10_000 {
		if w.command() {
			continue
		}
		d := Decide(w.record(), w.observe(w.record()), w.now)
		if d.Changed {
			w.commit(d.Rollout, d.Events)
			if w.crash.strike() {
				w.restart()
				continue
			}
		}
		moved, died := w.act(d)
		if d.Changed || moved || died {
			continue
		}
		w.watch.settled(w.record())
		w.due = d.Due
		if len(d.Effects) > 0 {
			w.due = earlier(w.due, w.now.Add(backOff))
		}
		return
	}
	panic("did not settle:\n" + strings.Join(w.lines[max(0, len(w.lines)-20):], "\n"))
}

// act does the effects of a decision in order. It reports whether any changed the
// world, and whether the runner died after one.
func (w *world) act(d Decision) (moved, died bool) {
	for _, e := range d.Effects {
		news := w.apply(d.Rollout, e)
		moved = moved || news
		if news && w.crash.strike() {
			w.restart()
			return moved, true
		}
	}
	return moved, false
}

// apply does one effect and reports whether it changed the world.
func (w *world) apply(r Rollout, e Effect) bool {
	switch e.Kind {
	case SetSplit:
		w.watch.splitting(r, e.Percent)
		news, err := w.router.setSplit(e.Percent, w.now)
		if news && err == nil {
			w.say("effect", "split of the pair: %d%% on %s", e.Percent, w.target.id)
		}
		return news
	case ReleaseSplit:
		w.watch.releasing(r, e.Percent)
		news, err := w.router.release(e.Percent, w.now)
		if news && err == nil {
			w.say("effect", "split released: %d%%/%d%% stand as weights", 100-e.Percent, e.Percent)
		}
		return news
	case SetBounds:
		return w.bound(r, e)
	}
	panic("unknown effect " + e.Kind)
}

// bound writes one side's bounds.
func (w *world) bound(r Rollout, e Effect) bool {
	s := w.source
	if e.Deployment == w.target.id {
		s = w.target
	}
	old, b := s.bounds, s.bounds
	if e.Min != nil {
		b.Min = *e.Min
	}
	if e.Max != nil {
		b.Max = *e.Max
	}
	if b == old {
		return false
	}
	w.watch.bounding(r, s, old, b)
	s.bounds = b
	w.say("effect", "bounds of %s: %d..%d → %d..%d", s.id, old.Min, old.Max, b.Min, b.Max)
	w.fleet()
	return true
}

// next is when something happens at the latest; zero when nothing will.
func (w *world) next() time.Time {
	at := earlier(w.source.next(), w.target.next())
	at = earlier(at, w.router.lands)
	at = earlier(at, w.due)
	if len(w.pending) > 0 {
		at = earlier(at, w.pending[0].at)
	}
	return at
}

// run plays until nothing is left to happen, or until an instant.
func (w *world) run(until time.Time) {
	w.fleet()
	w.settle()
	for {
		at := w.next()
		if at.IsZero() || !until.IsZero() && at.After(until) {
			return
		}
		if at.After(w.now) {
			w.now = at
		}
		w.due = never
		w.source.advance(w.now)
		w.target.advance(w.now)
		w.router.advance(w.now)
		w.fleet()
		for w.stored == nil && w.command() {
		}
		w.settle()
	}
}

// command runs the next command of the script that is due, and reports whether
// there was one.
func (w *world) command() bool {
	if len(w.pending) == 0 || w.pending[0].at.After(w.now) {
		return false
	}
	c := w.pending[0]
	w.pending = w.pending[1:]
	w.say("given", "%s", c.text)
	w.watch.since = len(w.events)
	c.do(w)
	w.fleet()
	return true
}

// outage is what a runner does that can neither look nor act.
func (w *world) outage(why string) {
	if w.stored == nil {
		return
	}
	if d := ParkOn(w.record(), DependencyOutage, why, w.now); d.Changed {
		w.commit(d.Rollout, d.Events)
	}
}

// control presses one of a person's controls.
func (w *world) control(press func(Rollout) (Rollout, []Event, error)) error {
	r, events, err := press(w.record())
	if err != nil {
		w.say("refused", "%s", err)
		return err
	}
	w.commit(r, events)
	return nil
}

// create makes a rollout of the world's pair from what stands, and stores it.
func (w *world) create(s Spec) []Problem {
	s.Source, s.Target = w.source.id, w.target.id
	problems := s.Validate(w.timings)
	b := Basis{
		SourceReplicas: w.source.count(ready), TargetReplicas: w.target.count(ready),
		SourceBounds: w.source.bounds, TargetBounds: w.target.bounds, Seed: w.router.served,
	}
	j, more := NewJourney(s, b, w.timings)
	if problems = append(problems, more...); len(problems) > 0 {
		for _, p := range problems {
			w.say("refused", "%s", p)
		}
		return problems
	}
	w.watch.begin(j)
	w.stored, w.live = nil, Rollout{}
	r, events := New(fmt.Sprintf("rol_%d", len(w.events)+1), "proj_1", "ep_1", s, j, w.timings, w.now)
	w.commit(r, events)
	return nil
}

// swap makes the target the source, for a rollout back.
func (w *world) swap() {
	w.source, w.target = w.target, w.source
	w.router.serve(100-w.router.served, w.now)
}

// summary says in one line how things stand.
func (w *world) summary() string {
	r := w.record()
	side := func(s *side) string {
		return fmt.Sprintf("%s %d..%d with %d ready", s.id, s.bounds.Min, s.bounds.Max, s.count(ready))
	}
	held := "standing weights"
	if w.router.held {
		held = "held by the rollout"
	}
	return fmt.Sprintf("%-10s %-7s %s at %d%% (%s), %s, %s", clock(w.now), "end", r.State, w.router.served, held, side(w.source), side(w.target))
}

// clock prints an instant as the time since the world began.
func clock(t time.Time) string {
	d := t.Sub(epoch).Round(time.Millisecond)
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	h, m, s := rest/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute
	seconds := fmt.Sprintf("%02d", s/time.Second)
	if ms := s % time.Second / time.Millisecond; ms > 0 {
		seconds += fmt.Sprintf(".%03d", ms)
	}
	switch {
	case days > 0:
		return fmt.Sprintf("+%dd%02d:%02d:%s", days, h, m, seconds)
	case h > 0:
		return fmt.Sprintf("+%d:%02d:%s", h, m, seconds)
	}
	return fmt.Sprintf("+%d:%s", m, seconds)
}
