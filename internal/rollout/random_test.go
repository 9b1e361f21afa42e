package rollout_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// played counts the random rollouts of this run, and how they ended.
var played struct{ rollouts, completed, canceled, crashes, parks, trips, edits atomic.Int64 }

// worldsOf is how many random worlds a run of the tests plays; -rapid.checks says
// another number.
const worldsOf = 2500

func TestMain(m *testing.M) {
	flag.Parse()
	checks := worldsOf
	if testing.Short() {
		checks = 1000
	}
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", fmt.Sprint(checks)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// drawWorld makes a random pair, and a rollout of it that is not started.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	n := rapid.IntRange(1, 12).Draw(t, "source replicas")
	w.source.bounds = Bounds{Min: rapid.IntRange(1, n).Draw(t, "source min"), Max: n + rapid.IntRange(0, 6).Draw(t, "source headroom")}
	w.source.wish = n
	for range n {
		w.source.replicas = append(w.source.replicas, replica{life: ready})
	}
	for _, s := range []*side{w.source, w.target} {
		s.cold = time.Duration(rapid.IntRange(0, 600).Draw(t, "cold start")) * time.Second
		s.drain = time.Duration(rapid.SampledFrom([]int{0, 0, 5, 60, 1200}).Draw(t, "drain")) * time.Second
	}
	if rapid.IntRange(0, 3).Draw(t, "frozen") == 0 {
		k := rapid.IntRange(1, 6).Draw(t, "target replicas")
		w.target.bounds, w.target.wish = Bounds{Min: 1, Max: k}, k
		for range k {
			w.target.replicas = append(w.target.replicas, replica{life: ready})
		}
		w.router.history = nil
		w.router.serve(rapid.IntRange(1, 90).Draw(t, "seed"), w.now)
	}
	w.router.delay = time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "router delay")) * time.Second
	w.meter.rate.set(w.now, rapid.SampledFrom([]float64{0, 0.01, 5, 5, 100}).Draw(t, "rate"))
	w.timings = drawTimings(t)
	w.fleet()
	w.create(drawSpec(t, w.router.served))
	return w
}

// drawTimings are those of the platform, or an operator's own: without looks, with no
// confirmation, without waits, or compressed for a demo.
func drawTimings(t *rapid.T) Timings {
	ts := DefaultTimings()
	switch rapid.SampledFrom([]string{"", "", "", "no looks", "no confirmation", "no waits", "compressed"}).Draw(t, "timings") {
	case "no looks":
		ts.PeekEvery = 0
	case "no confirmation":
		ts.Confirmation, ts.PeekEvery = 0, 0
	case "no waits":
		ts.Propagation, ts.GateSettle, ts.Stabilization, ts.IngestionLag = 0, 0, 0, 0
	case "compressed":
		ts.Propagation, ts.IngestionLag, ts.DefaultWindow, ts.DefaultInterval = 2*time.Second, 3*time.Second, 15*time.Second, 5*time.Second
		ts.Confirmation, ts.PeekEvery, ts.GateSettle = 4*time.Second, 700*time.Millisecond, 200*time.Millisecond
	}
	return ts
}

func drawSpec(t *rapid.T, seed int) Spec {
	s := Spec{Strategy: rapid.SampledFrom([]Strategy{Canary, Canary, BlueGreen, Rolling}).Draw(t, "strategy")}
	if rapid.IntRange(0, 3).Draw(t, "own final") == 0 {
		n := rapid.IntRange(1, 15).Draw(t, "final target")
		s.FinalTarget = &n
	}
	if rapid.IntRange(0, 3).Draw(t, "keep") == 0 {
		s.FinalSource = 1
	}
	s.HoldSource = rapid.IntRange(0, 5).Draw(t, "hold the source") == 0
	if rapid.IntRange(0, 3).Draw(t, "breaker") == 0 {
		s.Breaker = drawBreaker(t)
	}
	if s.Strategy != Canary {
		return s
	}
	last := seed
	for last < 100 && rapid.Bool().Draw(t, "own step") {
		last = rapid.IntRange(last+1, 100).Draw(t, "percent")
		st := StepSpec{Percent: last}
		if rapid.IntRange(0, 4).Draw(t, "override") == 0 {
			n := rapid.IntRange(1, 6).Draw(t, "replicas")
			st.Replicas = &n
		}
		s.Steps = append(s.Steps, st)
	}
	if n := len(s.Steps); n > 0 && last < 100 {
		s.Steps = append(s.Steps, StepSpec{Percent: 100})
	}
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		s.Rules = append(s.Rules, drawRule(t))
	}
	return s
}

func drawBreaker(t *rapid.T) *Breaker {
	b := &Breaker{SignedBy: "ana"}
	for range rapid.IntRange(1, 2).Draw(t, "breaker rules") {
		r := drawRule(t)
		r.Regression, r.Threshold = nil, &Threshold{LT, 0.6}
		b.Rules = append(b.Rules, r)
	}
	return b
}

func drawRule(t *rapid.T) Rule {
	r := Rule{Metric: rapid.SampledFrom(Metrics()).Draw(t, "metric"), Window: time.Duration(rapid.SampledFrom([]int{0, 60, 90, 600}).Draw(t, "window")) * time.Second}
	if r.Metric == RouterLatency {
		r.Stat, r.Percentile = StatPercentile, rapid.SampledFrom([]int{50, 95, 99}).Draw(t, "percentile")
	}
	if rapid.Bool().Draw(t, "regression") {
		r.Regression = &Regression{HigherIsWorse, 25}
	} else {
		r.Threshold = &Threshold{LT, 0.9}
	}
	return r
}

// deeds are what may happen to a world at any time: faults, people, autoscalers.
func deeds() []string {
	return []string{
		"pause", "resume", "promote", "cancel", "start", "resume", "resume",
		"kill target", "kill source", "stick target", "heal target", "loop target", "heal target",
		"autoscale source", "autoscale target", "bound target", "bound source", "floor target", "free", "free", "free shared", "unlimited",
		"rate", "measure", "measure", "NaN", "meter blind", "meter sees", "mute target", "unmute target",
		"routers fail", "routers work", "split", "break glass", "bad target", "bad target", "outage",
		"lapse", "mend billing",
	}
}

// happen does one deed. Controls that the state does not allow are refused.
func happen(t *rapid.T, w *world) {
	n := rapid.IntRange(0, 12).Draw(t, "n")
	deed := rapid.SampledFrom(deeds()).Draw(t, "deed")
	text := deed
	switch deed {
	case "kill target", "kill source", "autoscale source", "autoscale target":
		verb, on, _ := strings.Cut(deed, " ")
		text = fmt.Sprintf("%s %d %s", verb, n, on)
	case "bound target", "bound source":
		lo := rapid.IntRange(1, 8).Draw(t, "min")
		text = fmt.Sprintf("bound %d..%d %s", lo, lo+n, strings.TrimPrefix(deed, "bound "))
	case "loop target":
		text = fmt.Sprintf("loop %ds target", 10+20*n)
	case "floor target":
		if b := w.target.bounds; b.Max > 0 {
			text = fmt.Sprintf("bound 1..%d target", b.Max)
		} else {
			return
		}
	case "free":
		text = fmt.Sprintf("free %d", n)
	case "free shared":
		text = fmt.Sprintf("free %d shared", n/3)
	case "unlimited":
		w.pool.size = -1
		return
	case "rate":
		text = fmt.Sprintf("traffic %v/s", rapid.SampledFrom([]float64{0, 0.01, 5, 100}).Draw(t, "rate"))
	case "measure", "NaN":
		v := rapid.SampledFrom([]float64{0, 0.001, 0.5, 700, 1740}).Draw(t, "value")
		if deed == "NaN" {
			v = math.NaN()
		}
		text = fmt.Sprintf("measure %s %s %v", rapid.SampledFrom(Metrics()).Draw(t, "metric"), rapid.SampledFrom([]string{"source", "target"}).Draw(t, "side"), v)
	case "split":
		if !w.router.held || n > 2 {
			return // rare, and only while a rollout holds the split
		}
		text = fmt.Sprintf("split %d", rapid.IntRange(0, 100).Draw(t, "percent"))
	case "break glass":
		if !w.router.held || n > 4 {
			return
		}
		text = fmt.Sprintf("break glass %d \"by hand\"", rapid.IntRange(0, 100).Draw(t, "percent"))
	case "outage":
		text = `outage "the fleet does not answer"`
	case "lapse":
		text = `lapse "invoice overdue"`
	case "routers fail":
		text = `routers fail "no gateway answers"`
	}
	texts := []string{text}
	if deed == "bad target" {
		texts = texts[:0]
		for _, m := range Metrics() {
			texts = append(texts, fmt.Sprintf("measure %s target 0.7", m))
		}
	}
	for _, text := range texts {
		do, err := parseCommand(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		w.pending = append(w.pending, command{text: text, at: w.now, do: do})
	}
	w.run(w.now)
}

// mend takes every fault away.
func mend(w *world) {
	for _, text := range []string{"heal target", "heal source", "meter sees", "routers work", "unmute target", "unmute source", "traffic 1000/s"} {
		do, err := parseCommand(text)
		if err != nil {
			panic(err)
		}
		do(w)
	}
	for _, m := range Metrics() {
		for _, side := range []string{"source", "target"} {
			do, err := parseCommand(fmt.Sprintf("measure %s %s 0.5", m, side))
			if err != nil {
				panic(err)
			}
			do(w)
		}
	}
	w.pool.size, w.lapse = -1, ""
	w.source.drain = min(w.source.drain, time.Minute)
	w.fleet()
}

// patient is an operator who mends what a park says and resumes, and who cancels
// what an edit of the bounds has made impossible.
func patient(w *world) {
	r := w.record()
	switch {
	case r.State == Pending:
		_ = w.control(func(r Rollout) (Rollout, []Event, error) { return r.Start(w.now) })
	case r.State == SystemPaused && r.Condition.Category == PolicyInfeasible && w.watch.seenInfeasible > 3:
		_ = w.control(func(r Rollout) (Rollout, []Event, error) { return r.Cancel("ana", "not to be had", w.now) })
	case r.State.Parked():
		if r.Condition != nil && r.Condition.Category == PolicyInfeasible {
			w.watch.seenInfeasible++
			if s := w.target; s.bounds.Max < r.Journey.LandingMax {
				s.edit(w, Bounds{Min: s.bounds.Min, Max: r.Journey.LandingMax})
			}
		}
		_ = w.control(func(r Rollout) (Rollout, []Event, error) { return r.Resume("ana", w.now) })
	}
}

// Whatever happens to a rollout, what must never be is never seen; and once the
// faults are lifted, with a patient operator, it ends.
func TestRandomWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if w.stored == nil {
			return // what stands allows no such rollout
		}
		w.crash.every = rapid.SampledFrom([]int{0, 0, 1, 2, 3, 7}).Draw(t, "crash at every n-th boundary")
		if rapid.IntRange(0, 9).Draw(t, "start") > 0 {
			_ = w.control(func(r Rollout) (Rollout, []Event, error) { return r.Start(w.now) })
		}
		for range rapid.IntRange(0, 25).Draw(t, "deeds") {
			wait := rapid.SampledFrom([]int{0, 1, 10, 40, 100, 400, 1000, 5000}).Draw(t, "seconds")
			at := w.now.Add(time.Duration(wait) * time.Second)
			w.run(at)
			w.now = at
			happen(t, w)
			guard(t, w)
		}
		mend(w)
		for range 60 {
			w.run(w.now.Add(6 * time.Hour))
			if w.record().State.Terminal() {
				break
			}
			w.now = w.now.Add(20 * time.Minute)
			patient(w)
		}
		guard(t, w)
		count(w)
		if s := w.record().State; !s.Terminal() {
			t.Fatalf("did not end: %s\n%s", s, tail(w))
		}
	})
	t.Logf("%d random rollouts: %d completed, %d canceled; %d parks, %d trips of a breaker, %d edits by broken glass, %d crashes of the runner",
		played.rollouts.Load(), played.completed.Load(), played.canceled.Load(), played.parks.Load(), played.trips.Load(), played.edits.Load(), played.crashes.Load())
}

func guard(t *rapid.T, w *world) {
	if v := w.watch.violations; len(v) > 0 {
		t.Fatalf("never:\n%s\nin\n%s", strings.Join(v, "\n"), tail(w))
	}
}

// tail is the end of a transcript.
func tail(w *world) string {
	lines := w.transcript()
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

func count(w *world) {
	played.rollouts.Add(1)
	switch w.record().State {
	case Completed:
		played.completed.Add(1)
	case Canceled:
		played.canceled.Add(1)
	case Pending, Running, Stabilizing, Pausing, Paused, SystemPaused, Cancelling:
	}
	if w.crash.every > 0 {
		played.crashes.Add(int64(w.crash.seen / w.crash.every))
	}
	for _, e := range w.events {
		switch e.Type {
		case EventSystemPaused:
			played.parks.Add(1)
		case EventBreakerTripped:
			played.trips.Add(1)
		case EventBreakGlass:
			played.edits.Add(1)
		default:
		}
	}
}
