package rehearsal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// stage is a world set up for one play of a plan, with what is noted of it.
type stage struct {
	plan    Plan
	seed    uint64
	w       *World
	crowd   *crowd
	names   *strings.Replacer // the world's names to the user's
	begins  []func(*World)    // faults that stand at +0:00
	moments []moment
	levels  []level
}

// moment is a record as it was committed.
type moment struct {
	at      time.Time
	step    int
	phase   rollout.Phase
	state   rollout.State
	percent int
}

// level is what runs on both sides from an instant on.
type level struct {
	at             time.Time
	source, target rollout.FleetStatus
}

// newStage makes the world of a plan, with its rollout created and not started. The
// stage's world is to be closed also after an error.
func newStage(ctx context.Context, p Plan, seed uint64, disk *store.SQLite) (*stage, error) {
	w := &World{ctx: ctx, now: Epoch, lastDeed: Epoch, timings: p.Timings, poll: 5 * time.Second}
	s := &stage{plan: p, seed: seed, w: w}
	w.wrong = s.hook
	draw := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a rehearsal is to be repeatable, not secret
	w.source, w.target = p.Source.side("source", draw), p.Target.side("target", draw)
	w.sides = []*side{w.source, w.target}
	w.shared = p.Source.Pool.Name == p.Target.Pool.Name
	w.watch, w.power = newWatch(w), &power{w: w}
	w.routers, w.billing = newRouters(w, 1), &billing{w: w}
	w.meter = newMeter(w, p.Timings.IngestionLag)
	w.meter.change(func(c *conditions) { c.rate = p.Rate })
	s.crowd = &crowd{meter: w.meter, seed: seed, models: map[string]Model{}}
	s.names = strings.NewReplacer("dep_src", p.Source.Name, "dep_tgt", p.Target.Name,
		"1xgpu-source", p.Source.Pool.Name, "1xgpu-target", p.Target.Pool.Name, "1xgpu", p.Target.Pool.Name)
	w.power.busy = true
	if err := w.build(disk, Remembered); err != nil { //nolint:contextcheck // the world keeps it
		return s, fmt.Errorf("%w: %s", errSetup, s.names.Replace(err.Error()))
	}
	s.crowd.models[w.source.id], s.crowd.models[w.target.id] = p.Source.Model, p.Target.Model
	if free := p.Target.Pool.Free; free >= 0 {
		s.begins = append(s.begins, func(w *World) { w.resize(free) }) //nolint:contextcheck // as above
	}
	for _, f := range p.Faults {
		f.stage(s)
	}
	w.begin(s.begins, []rollout.Spec{s.spec()})
	if w.record.ID == "" {
		return s, s.refusal()
	}
	for _, f := range p.Faults {
		if n := len(w.record.Journey.Rungs); f.Step > n {
			return s, fmt.Errorf("fault %s@step%d: the rollout has %s", f.Kind, f.Step, planning.Count(n, "step"))
		}
	}
	w.pending = append(w.pending, command{text: "start", at: Epoch, do: start})
	return s, nil
}

// spec is the plan's, as the world's begin fills it: sides and rules are its own.
func (s *stage) spec() rollout.Spec {
	spec := s.plan.Spec
	s.w.rules = spec.Rules
	return spec
}

// side is a party as a side of the world.
func (p Party) side(name string, draw *rand.Rand) *side {
	cold := max(p.ColdStart.Sample(draw), time.Millisecond)
	budget := p.Budget
	if budget <= 0 {
		budget = max(10*time.Minute, 2*cold)
	}
	return &side{name: name, ready: p.Replicas, bounds: p.Bounds, cold: cold, budget: budget, drain: p.Drain, weight: float64(p.Share)}
}

// hook stands between the engine and its store and meter, also after a restart.
func (s *stage) hook(c *engine.Config) {
	c.Store = &ledger{Store: c.Store, s: s}
	c.Meter = s.crowd
}

// ledger notes what is written.
type ledger struct {
	engine.Store
	s *stage
}

// Commit writes a change and notes where the rollout is by it.
func (l *ledger) Commit(ctx context.Context, c rollout.Change) error {
	err := l.Store.Commit(ctx, c)
	if err != nil {
		return err
	}
	for _, r := range c.Rollouts {
		if r.State != rollout.Pending {
			l.s.moments = append(l.s.moments, moment{l.s.w.now, r.Step, r.Phase, r.State, r.Percent})
		}
	}
	return nil
}

// maxMoves bounds a play: more than this is an engine that spins.
const maxMoves = 200_000

// play runs until the rollout is over or parked and what it holds is held.
func (s *stage) play() error {
	w := s.w
	for range maxMoves {
		at := w.settle()
		s.look()
		if v := w.watch.violations; len(v) > 0 {
			return fmt.Errorf("a guarantee was seen broken, which is a bug: %s", s.names.Replace(v[0].String()))
		}
		if w.record.State == rollout.Pending {
			return s.refusal()
		}
		if s.over() {
			return nil
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if due, moving := w.fleet.Step(w.now); moving {
			at = earlier(at, due)
		}
		at = earlier(at, w.routers.due())
		if len(w.pending) > 0 {
			at = earlier(at, w.pending[0].at)
		}
		if at.IsZero() || at.After(Epoch.Add(Horizon)) {
			return nil
		}
		w.pass(max(0, at.Sub(w.now)))
	}
	return fmt.Errorf("the play does not come to an end: %s in %s of step %d", w.record.State, w.record.Phase, w.record.Step+1)
}

// holdsWithin is how long a parked rollout is watched for the split that it means to
// hold: routers that refuse may never take it.
const holdsWithin = time.Minute

func (s *stage) over() bool {
	r := s.w.record
	if !r.State.Parked() {
		return r.State.Terminal()
	}
	return r.Hold == nil || r.Percent <= *r.Hold || s.w.now.Sub(s.end()) >= holdsWithin
}

// look notes what runs now, where it differs from before.
func (s *stage) look() {
	l := level{at: s.w.now}
	l.source, _ = s.w.fleet.Observe(s.w.ctx, s.w.source.id) // both exist
	l.target, _ = s.w.fleet.Observe(s.w.ctx, s.w.target.id)
	if n := len(s.levels); n > 0 {
		last := &s.levels[n-1]
		if last.at.Equal(l.at) {
			*last = l
			return
		}
		if counts(last.source) == counts(l.source) && counts(last.target) == counts(l.target) {
			return
		}
	}
	s.levels = append(s.levels, l)
}

func counts(f rollout.FleetStatus) [3]int { return [3]int{f.Scheduled, f.Ready, f.Draining} }

// levelAt is what ran at an instant.
func (s *stage) levelAt(at time.Time) level {
	i, _ := slices.BinarySearchFunc(s.levels, at, func(l level, at time.Time) int {
		if l.at.After(at) {
			return 1
		}
		return -1
	})
	return s.levels[max(0, i-1)]
}

// told is a record in the user's names.
func (s *stage) told(r rollout.Rollout) rollout.Rollout {
	r.Spec.Source, r.Spec.Target = s.plan.Source.Name, s.plan.Target.Name
	if r.Condition != nil {
		c := *r.Condition
		c.Message = s.names.Replace(c.Message)
		r.Condition = &c
	}
	if r.Pause != nil {
		p := *r.Pause
		p.Reason = s.names.Replace(p.Reason)
		r.Pause = &p
	}
	return r
}

// live is a record as the engine's API tells it.
func (s *stage) live(r rollout.Rollout) api.Rollout {
	out := wire.RolloutToAPI(r)
	out.ID, out.EndpointID, out.ProjectID, out.ETag = s.plan.Address, s.plan.Endpoint, "", ""
	return out
}
