package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// World is one virtual endpoint with a real engine at it. Nothing in it waits: time
// jumps to the next thing that happens.
type World struct {
	ctx     context.Context //nolint:containedctx // of the whole play, which is one call
	now     time.Time       // true time
	skew    time.Duration   // the engine's clock minus true time
	timings rollout.Timings
	poll    time.Duration
	wrong   Wrong

	source, target *side
	sides          []*side
	rules          []rollout.Rule
	breaker        *rollout.Breaker
	shared         bool

	fleet   *simulated.Fleet
	fleets  *fleetPort
	routers *routers
	meter   *meter
	power   *power
	billing *billing
	store   *storePort
	engine  *engine.Engine
	hand    *engine.Stepper
	retry   time.Time // when an engine that could not load tries again
	rival   *rival    // the first engine, while or after another takes its place

	record      rollout.Rollout // the newest one, as stored
	endpoint    rollout.Endpoint
	deployments map[string]rollout.Deployment
	elsewhere   int // endpoints beside it, which only serve
	deleted     bool
	serial      map[string]int // names given, by prefix

	lastDeed time.Time
	pending  []command // of the script, in order of time
	triggers []command // of the script, on a phase
	byHand   bool      // a person or the world itself is acting, not the runner
	patience *patience // an operator who waits for the end; nil before the script's mend
	watch    *watch
	lines    []string
	stats    Stats
}

// Stats count what a play had.
type Stats struct {
	Calls   int // outward calls of the engine
	Crashes int
	Parks   int
	Trips   int // of a circuit breaker
	Steps   int // of the engine
}

// hardwareOf names the pool that a side draws on.
func (w *World) hardwareOf(s *side) string {
	if w.shared {
		return "1xgpu"
	}
	return "1xgpu-" + s.name
}

// engineNow is what the engine's clock shows.
func (w *World) engineNow() time.Time { return w.now.Add(w.skew) }

// say adds a line to the transcript.
func (w *World) say(kind, format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%-10s %-7s %s", clock(w.now), kind, fmt.Sprintf(format, args...)))
}

// build makes the world's ports and sets up its endpoint before +0:00.
func (w *World) build(disk *store.SQLite, reads Reads) error {
	pools := []fleet.Pool{}
	drains := time.Duration(0)
	named := map[string]bool{}
	for _, s := range w.sides {
		if id := w.hardwareOf(s); !named[id] {
			named[id] = true
			pools = append(pools, fleet.Pool{Hardware: rollout.Hardware{ID: id, Capacity: -1}})
		}
		drains = max(drains, s.drain)
	}
	var err error
	w.fleet, err = simulated.New(simulated.Config{Pools: pools, Now: func() time.Time { return w.now }, DrainsFor: drains})
	if err != nil {
		return err
	}
	w.fleets = &fleetPort{w: w, bounds: map[string]rollout.Bounds{}, seen: map[string]rollout.FleetStatus{}, free: map[string]int{}}
	w.store = &storePort{memo: newMemo(disk, reads), w: w}
	w.deployments, w.serial = map[string]rollout.Deployment{}, map[string]int{}
	return w.settleSides()
}

// settleSides makes the endpoint and its deployments with their replicas ready.
func (w *World) settleSides() error {
	w.byHand = true
	defer func() { w.byHand = false }()
	colds := map[*side]time.Duration{}
	for _, s := range w.sides {
		colds[s], s.cold = s.cold, 0
	}
	if err := w.boot(); err != nil {
		return err
	}
	ep, err := w.engine.CreateEndpoint(w.ctx, ana, "chat", "VISIBILITY_PRIVATE")
	if err != nil {
		return err
	}
	var weights []rollout.Weight
	for _, s := range w.sides {
		d, err := w.engine.CreateDeployment(w.ctx, ana, ep.ID, engine.DeploymentSpec{Name: s.name, Model: "m/" + s.name, Bounds: s.bounds}, engine.ForReal)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.id = d.ID
		if s.ready > 0 {
			if err := w.fleet.SetDesired(w.ctx, s.id, s.ready); err != nil {
				return err
			}
		}
		w.fleet.Step(w.now)
		if s.weight > 0 && s.ready > 0 {
			weights = append(weights, rollout.Weight{Deployment: s.id, Weight: s.weight / float64(s.ready)})
		}
	}
	if _, err := w.engine.UpdateEndpoint(w.ctx, ana, ep.ID, "", engine.EndpointChange{Split: &weights}); err != nil {
		return err
	}
	if err := w.settleElsewhere(); err != nil {
		return err
	}
	w.step()
	for s, cold := range colds {
		s.cold = cold
		if d, ok := w.deployments[s.id]; ok { // from here on a start takes its time
			if err := w.fleets.Ensure(w.ctx, rollout.Workload{Deployment: s.id, Model: d.Model, Config: w.serving(s), Bounds: d.Bounds}); err != nil {
				return err
			}
		}
	}
	return nil
}

// serving is a side's serving config.
func (w *World) serving(s *side) rollout.ServingConfig {
	return fleet.WithDefaults(rollout.ServingConfig{
		ID: "cr_" + s.name, Models: []string{"m/" + s.name}, Hardware: w.hardwareOf(s),
		ColdStart: s.budget, DrainTimeout: max(s.drain, time.Nanosecond),
	})
}

// boot makes an engine on what is stored, as after a restart.
func (w *World) boot() error {
	was := w.power.busy
	w.power.dead, w.power.busy = false, true // nobody is there to be asked yet
	defer func() { w.power.busy = was }()
	if w.hand != nil {
		w.hand.Close()
		w.hand, w.engine = nil, nil
		if w.routers.dies {
			w.routers.Remove("")
			w.routers.measure()
		}
	}
	c := engine.Config{
		Store: w.store, Fleet: w.fleets, Router: w.routers, Meter: w.meter, Billing: w.billing, Timings: w.timings, Now: w.engineNow, NewID: w.newID,
		Project: rollout.Project{ID: "proj_1", Slug: "demo"}, Poll: w.poll,
	}
	for _, s := range w.sides {
		c.Serving = append(c.Serving, w.serving(s))
	}
	w.routers.behind = time.Time{} // nobody knows yet
	if w.wrong != nil {
		w.wrong(&c)
	}
	e := engine.New(c)
	if err := e.Load(w.ctx); err != nil {
		return err
	}
	hand, err := e.Stepper(w.ctx)
	if err != nil {
		return err
	}
	w.engine, w.hand = e, hand
	return nil
}

// revive restarts an engine that died; one that cannot load tries again a second later,
// as its supervisor has it do.
func (w *World) revive() {
	if w.power.dead {
		w.say("given", "the engine's process ends and starts anew")
		w.retry = w.now
		w.patience.disturb(w)
	}
	for !w.retry.IsZero() && !w.retry.After(w.now) {
		w.retry = time.Time{}
		if err := w.boot(); err != nil || w.power.dead {
			w.retry = w.now.Add(time.Second)
			if w.power.dead {
				w.retry = w.now
			}
		}
		w.watch.restarted()
	}
}

// newID names things so that a transcript can be read.
func (w *World) newID(prefix string) string {
	w.serial[prefix]++
	if prefix == "dep" {
		for _, s := range w.sides {
			if s.id == "" {
				return map[string]string{"source": "dep_src", "target": "dep_tgt", "other": "dep_oth"}[s.name]
			}
		}
	}
	return fmt.Sprintf("%s_%d", prefix, w.serial[prefix])
}

// pass lets true time go by, with what the fleet and the routers do in it.
func (w *World) pass(d time.Duration) {
	from := w.engineNow()
	w.now = w.now.Add(d)
	w.meter.pass(from, w.engineNow())
	w.fleet.Step(w.now)
	w.routers.advance(w.now)
}

// pull moves the triggers that wait for the record's phase to the script.
func (w *World) pull(r rollout.Rollout) {
	kept := w.triggers[:0]
	for _, c := range w.triggers {
		if r.State.Terminal() || r.State == rollout.Pending || c.phase != r.Phase || c.step > 0 && c.step != r.Step+1 {
			kept = append(kept, c)
			continue
		}
		c.at = w.now.Add(c.after)
		w.pending = append(w.pending, c)
	}
	w.triggers = kept
	w.inOrder()
}

// inOrder sorts what is to come by its instant.
func (w *World) inOrder() {
	sort.SliceStable(w.pending, func(i, j int) bool { return w.pending[i].at.Before(w.pending[j].at) })
}

// maxRounds bounds what happens at one instant.
const maxRounds = 10_000

// settle does everything that happens now, and returns when the engine wants to be
// worked next by itself.
func (w *World) settle() time.Time {
	for range maxRounds {
		w.revive()
		w.fleet.Step(w.now)
		w.loop()
		w.routers.advance(w.now)
		if w.command() {
			continue
		}
		if w.hand == nil {
			return w.retry
		}
		next, again := w.step()
		if again {
			continue
		}
		w.watch.rests()
		return next
	}
	w.watch.blame(7, "the world does not come to rest")
	return time.Time{}
}

// step works the engine once. again says that something followed from it.
func (w *World) step() (next time.Time, again bool) {
	w.learn()
	notices, hand := w.fleets.notices, w.hand
	w.stats.Steps++
	at, pending, err := hand.Step(w.ctx)
	switch {
	case hand != w.hand && w.rival != nil: // its place was taken at one of its calls
		if err != nil {
			w.learned(err)
		}
		return next, true
	case w.power.dead:
		return next, true
	case err != nil:
		w.watch.blame(7, "engine: %v", err)
	}
	w.fleet.Step(w.now)
	if w.fleets.notices != notices && !w.fleets.deaf {
		return next, true
	}
	if !pending {
		return next, false
	}
	return later(at.Add(-w.skew), w.now.Add(time.Millisecond)), false
}

// run plays until nothing is left to happen, or until an instant.
func (w *World) run(until time.Time) {
	for {
		at := w.settle()
		if due, moving := w.fleet.Step(w.now); moving {
			at = earlier(at, due)
		}
		at = earlier(at, w.routers.due())
		at = earlier(at, w.loop())
		at = earlier(at, w.watch.nextLook())
		if len(w.pending) > 0 {
			at = earlier(at, w.pending[0].at)
		}
		if w.patience != nil {
			if w.patience.done {
				return
			}
			at = earlier(at, w.patience.next)
		}
		if w.idle(at) || at.After(until) || len(w.pending) == 0 && at.Sub(w.lastDeed) > patienceOfPlays {
			return
		}
		w.pass(max(0, at.Sub(w.now)))
	}
}

// patienceOfPlays is how long a play goes on after the script's last deed: replicas that
// never start would otherwise be restarted for ever.
const patienceOfPlays = 12 * time.Hour

// idle reports whether nothing is to come any more: an open rollout without a due time
// waits for a person, and there is none left in the script.
func (w *World) idle(at time.Time) bool {
	if at.IsZero() {
		return true
	}
	return len(w.pending) == 0 && w.patience == nil && (w.record.State.Terminal() || w.record.ID == "") && w.quiet()
}

// quiet reports whether no replica is on its way anywhere.
func (w *World) quiet() bool {
	_, moving := w.fleet.Step(w.now)
	return !moving
}

// close ends the world's own work.
func (w *World) close() error {
	if w.hand != nil {
		w.hand.Close()
	}
	if w.rival != nil {
		w.rival.hand.Close()
	}
	if w.fleet == nil {
		return nil
	}
	return w.fleet.Close(context.WithoutCancel(w.ctx))
}

var errSetup = errors.New("the world cannot be set up")

// ready counts what answers on a side and is meant to stay.
func (w *World) ready(s *side) int {
	status, err := w.fleet.Observe(w.ctx, s.id)
	if err != nil {
		return 0
	}
	return status.Ready
}

// summary says in one line how things stand.
func (w *World) summary() string {
	side := func(s *side) string {
		b := w.deployments[s.id].Bounds
		return fmt.Sprintf("%s %d..%d with %d ready", s.id, b.Min, b.Max, w.ready(s))
	}
	held := "standing weights"
	route, _ := w.routers.Serving(w.endpoint.ID)
	if route.Pair != nil {
		held = "held by the rollout"
	}
	state := string(w.record.State)
	if w.deleted {
		state = "DELETED"
	}
	if state == "" {
		state = "no rollout"
	}
	return fmt.Sprintf("%-10s %-7s %s at %d%% (%s), %s, %s", clock(w.now), "end", state, w.routers.percent(route), held, side(w.source), side(w.target))
}
