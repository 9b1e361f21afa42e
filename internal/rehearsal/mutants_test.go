package rehearsal

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// mutant is a wrong engine.
type mutant struct {
	name  string
	wrong Wrong
}

type decide = func(rollout.Rollout, rollout.Observed, time.Time) rollout.Decision

// thinks makes an engine that decides wrongly.
func thinks(name string, wrong func(d decide) decide) mutant {
	return mutant{name, func(c *engine.Config) { c.Decide = wrong(rollout.Decide) }}
}

// believes makes an engine that sees or knows something wrong when it decides.
func believes(name string, bend func(r *rollout.Rollout, o *rollout.Observed, now time.Time)) mutant {
	return thinks(name, func(d decide) decide {
		return func(r rollout.Rollout, o rollout.Observed, now time.Time) rollout.Decision {
			bent := r
			bend(&bent, &o, now)
			out := d(bent, o, now)
			out.Rollout.Journey, out.Rollout.Timings, out.Rollout.Spec = r.Journey, r.Timings, r.Spec
			return out
		}
	})
}

// concludes makes an engine whose decisions are bent after they are made.
func concludes(name string, bend func(before rollout.Rollout, d *rollout.Decision, o rollout.Observed, now time.Time)) mutant {
	return thinks(name, func(d decide) decide {
		return func(r rollout.Rollout, o rollout.Observed, now time.Time) rollout.Decision {
			out := d(r, o, now)
			bend(r, &out, o, now)
			return out
		}
	})
}

// withoutEffect drops the effects of a kind.
func withoutEffect(d *rollout.Decision, drop func(rollout.Effect) bool) {
	d.Effects = slices.DeleteFunc(d.Effects, drop)
}

// hears makes an engine that reads its meter wrongly.
func hears(name string, ask func(*rollout.Query), bend func(*rollout.Reading)) mutant {
	return mutant{name, func(c *engine.Config) { c.Meter = bentMeter{c.Meter, ask, bend} }}
}

type bentMeter struct {
	engine.Meter
	ask  func(*rollout.Query)
	bend func(*rollout.Reading)
}

func (m bentMeter) Read(ctx context.Context, q rollout.Query) (rollout.Reading, error) {
	if m.ask != nil {
		m.ask(&q)
	}
	r, err := m.Meter.Read(ctx, q)
	if m.bend != nil && err == nil {
		m.bend(&r)
	}
	return r, err
}

// writes makes an engine that stores something wrong.
func writes(name string, bend func(s engine.Store, c *rollout.Change)) mutant {
	return mutant{name, func(c *engine.Config) { c.Store = bentStore{c.Store, bend} }}
}

type bentStore struct {
	engine.Store
	bend func(s engine.Store, c *rollout.Change)
}

func (s bentStore) Commit(ctx context.Context, c rollout.Change) error {
	s.bend(s.Store, &c)
	return s.Store.Commit(ctx, c)
}

// routes makes an engine that tells its routers something wrong.
func routes(name string, bend func(r *rollout.Route) bool) mutant {
	return mutant{name, func(c *engine.Config) { c.Router = bentRouter{c.Router, bend} }}
}

type bentRouter struct {
	engine.Router
	bend func(r *rollout.Route) bool // false: the route is thrown away
}

func (r bentRouter) Apply(route rollout.Route) error {
	if p := route.Pair; p != nil {
		own := *p
		route.Pair = &own
	}
	if !r.bend(&route) {
		return nil
	}
	return r.Router.Apply(route)
}

func ptrTo(n int) *int { return &n }

// mutants are the wrong engines that the watch must notice.
func mutants() []mutant {
	return slices.Concat(capacityMutants(), orderMutants(), gateMutants(), recordMutants(), controlMutants(), failureMutants(), billingMutants(), healthMutants(), wayBackMutants())
}

func capacityMutants() []mutant {
	return []mutant{
		believes("target counts are rounded down", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			r.Journey.Rungs = slices.Clone(r.Journey.Rungs)
			for i := range r.Journey.Rungs {
				rung := &r.Journey.Rungs[i]
				rung.Need = max(1, r.Journey.FinalTarget*rung.Percent/100)
				rung.Target = rung.Need
			}
		}),
		believes("the drained amount is rounded up", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			r.Journey.Rungs = slices.Clone(r.Journey.Rungs)
			for i := range r.Journey.Rungs {
				r.Journey.Rungs[i].Source = max(r.Journey.FinalSource, r.Journey.Rungs[i].Source-1)
			}
		}),
		believes("replicas that start count as ready", func(_ *rollout.Rollout, o *rollout.Observed, _ time.Time) {
			o.Target.Ready = max(o.Target.Ready, o.Target.Scheduled)
		}),
		believes("the peak's capacity is not checked", func(_ *rollout.Rollout, o *rollout.Observed, _ time.Time) { o.Capacity.Free = -1 }),
		believes("a target's death goes unnoticed", func(r *rollout.Rollout, o *rollout.Observed, _ time.Time) {
			if r.Phase == rollout.PhaseSoaking {
				o.Target.Ready = 1000
			}
		}),
		concludes("the split is not held when replicas die", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if r.State.Parked() {
				withoutEffect(d, func(e rollout.Effect) bool { return e.Kind == rollout.SetSplit })
			}
		}),
		concludes("all traffic goes back when a replica dies", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if r.State.Parked() && e.Kind == rollout.SetSplit {
					d.Effects[i].Percent = 0
				}
			}
		}),
		concludes("the target's floor is raised one too high", func(r rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if e.Kind == rollout.SetBounds && e.Deployment == r.Spec.Target && e.Min != nil && *e.Min < max(o.Target.Bounds.Max, r.Journey.LandingMax) {
					d.Effects[i].Min = ptrTo(*e.Min + 1)
				}
			}
		}),
		concludes("an operator's maximum is overwritten", func(r rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			if working(r) && r.Lifted && r.Phase == rollout.PhaseScaling && o.Target.Bounds.Max < r.Journey.LandingMax {
				d.Effects = append(d.Effects, rollout.Effect{Kind: rollout.SetBounds, Deployment: r.Spec.Target, Max: ptrTo(r.Journey.LandingMax)})
			}
			if r.Lifted && r.Phase == rollout.PhaseChecking && d.Rollout.State == rollout.SystemPaused && d.Rollout.Condition.Category == rollout.PolicyInfeasible {
				d.Rollout, d.Events, d.Changed = r, nil, false
				d.Effects = []rollout.Effect{{Kind: rollout.SetBounds, Deployment: r.Spec.Target, Max: ptrTo(r.Journey.LandingMax)}}
			}
		}),
		concludes("the source keeps its size at the end", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if r.Last() {
				before := len(d.Effects)
				withoutEffect(d, func(e rollout.Effect) bool { return e.Kind == rollout.SetBounds && e.Deployment == r.Spec.Source })
				if len(d.Effects) < before {
					d.Rollout.Phase, d.Rollout.SteadySince, d.Rollout.State, d.Changed = rollout.PhaseSoaking, d.Rollout.UpdatedAt, rollout.Stabilizing, true
				}
			}
		}),
	}
}

func orderMutants() []mutant {
	return []mutant{
		concludes("the source drains before the shift", func(r rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			rung := r.Rung()
			if working(r) && r.Phase == rollout.PhaseScaling && o.Source.Bounds.Min > rung.Source {
				d.Effects = append(d.Effects, rollout.Effect{Kind: rollout.SetBounds, Deployment: r.Spec.Source, Min: ptrTo(rung.Source)})
			}
		}),
		concludes("the source is drained under its share", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if e.Kind == rollout.SetBounds && e.Deployment == r.Spec.Source && e.Min != nil && *e.Min > 1 {
					d.Effects[i].Min = ptrTo(*e.Min - 1)
				}
			}
		}),
		believes("routing gets no time to converge", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) { r.Timings.Propagation = 0 }),
		believes("traffic is shifted one replica early", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			r.Journey.Rungs = slices.Clone(r.Journey.Rungs)
			for i := range r.Journey.Rungs {
				r.Journey.Rungs[i].Need = max(0, r.Journey.Rungs[i].Need-1)
			}
		}),
		believes("the soak is half as long", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) { r.Journey.Soak /= 2 }),
		concludes("a step's record is lost by the next", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if d.Rollout.Step > r.Step {
				d.Rollout.Steps[r.Step].State = rollout.StepRunning
			}
		}),
		concludes("the last step is enough for the record", func(_ rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if d.Rollout.State == rollout.Completed {
				d.Rollout.Steps[0].State = rollout.StepPending
			}
		}),
		concludes("the split jumps to the end", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if e.Kind == rollout.SetSplit && working(r) && e.Percent > r.Percent {
					d.Effects[i].Percent = 100
				}
			}
		}),
	}
}

func gateMutants() []mutant {
	noRules := func(when func(r *rollout.Rollout) bool) func(*rollout.Rollout, *rollout.Observed, time.Time) {
		return func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			if when(r) {
				r.Spec.Rules = nil
			}
		}
	}
	return []mutant{
		believes("the gate is skipped", noRules(func(r *rollout.Rollout) bool { return r.Phase == rollout.PhaseGating })),
		believes("the gate is skipped at the last step", noRules(func(r *rollout.Rollout) bool { return r.Phase == rollout.PhaseGating && r.Last() })),
		believes("a confirmation passes what it finds", noRules(func(r *rollout.Rollout) bool {
			return r.Phase == rollout.PhaseConfirming || r.Phase == rollout.PhaseGating && len(r.Peeks) > 0
		})),
		believes("a resume passes the gate that tripped", noRules(func(r *rollout.Rollout) bool { return r.Phase == rollout.PhaseGating && r.Attempts > 0 })),
		hears("the window is one lag too short", func(q *rollout.Query) { q.From = q.From.Add(min(90*time.Second, q.To.Sub(q.From)/2)) }, nil),
		hears("the window ends now", func(q *rollout.Query) { q.To = q.To.Add(3 * time.Second) }, nil),
		hears("the window reaches back before the shift", func(q *rollout.Query) { q.From = q.From.Add(-10 * time.Minute) }, nil),
		hears("not a number passes", nil, func(r *rollout.Reading) {
			if math.IsNaN(r.Value) {
				r.Value = 0
			}
		}),
		hears("a gap passes", nil, func(r *rollout.Reading) { r.Complete = true }),
		hears("one sample is enough", nil, func(r *rollout.Reading) {
			if r.Samples > 0 {
				r.Samples = 1000
			}
		}),
		hears("silence passes", nil, func(r *rollout.Reading) {
			if r.Samples == 0 {
				r.Samples, r.Value = 1000, 0
			}
		}),
		hears("every value is halved", nil, func(r *rollout.Reading) { r.Value = r.Value/2 - 1 }),
	}
}

func recordMutants() []mutant {
	return []mutant{
		concludes("the outcome is recorded before the act", func(_ rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			for i, e := range d.Effects {
				if e.Kind == rollout.SetSplit && e.Percent > d.Rollout.Percent {
					d.Rollout.Percent, d.Rollout.Phase, d.Rollout.PhaseSince, d.Changed = e.Percent, rollout.PhasePropagating, now, true
					d.Effects = slices.Delete(d.Effects, i, i+1)
					return
				}
			}
		}),
		routes("the routers are never told", func(r *rollout.Route) bool { return r.Pair == nil || r.Pair.Percent == 0 }),
		routes("the other members' share goes to the pair", func(r *rollout.Route) bool {
			if r.Pair != nil {
				r.Pair.Share = 1
			}
			return true
		}),
		routes("standing weights forget the replica counts", func(r *rollout.Route) bool {
			if r.Pair == nil {
				for i := range r.Members {
					r.Members[i].Weight *= float64(r.Members[i].Ready())
				}
			}
			return true
		}),
		writes("the slot is kept after the end", func(s engine.Store, c *rollout.Change) {
			for _, r := range c.Rollouts {
				if r.State.Terminal() {
					c.Endpoints = nil
				}
			}
		}),
		writes("events are told twice", func(_ engine.Store, c *rollout.Change) { c.Events = append(c.Events, c.Events...) }),
		writes("the drain is not told", func(_ engine.Store, c *rollout.Change) {
			c.Events = slices.DeleteFunc(c.Events, func(e rollout.Event) bool { return e.Type == rollout.EventSourceDrained })
		}),
		writes("the last writer wins", func(s engine.Store, c *rollout.Change) {
			c.Require = nil
			for i, r := range c.Rollouts {
				if now, err := s.Rollout(context.Background(), r.ID); err == nil {
					c.Rollouts[i].Version = now.Version
				}
			}
			for i, e := range c.Endpoints {
				if now, err := s.Endpoint(context.Background(), e.ID); err == nil {
					c.Endpoints[i].Version = now.Version
				}
			}
		}),
		{"the fleet is not told what is recorded", func(c *engine.Config) { c.Fleet = deafFleet{c.Fleet} }},
	}
}

// deafFleet is never told of a smaller workload.
type deafFleet struct{ engine.Fleet }

func (f deafFleet) Ensure(ctx context.Context, w rollout.Workload) error {
	if now, err := f.Observe(ctx, w.Deployment); err == nil && now.Desired > w.Bounds.Max {
		return nil
	}
	return f.Fleet.Ensure(ctx, w)
}

func controlMutants() []mutant {
	return []mutant{
		concludes("a cancel loses to a late shift", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if r.State == rollout.Cancelling && e.Kind == rollout.ReleaseSplit {
					d.Effects[i].Percent = r.Rung().Percent
				}
			}
		}),
		concludes("a cancel goes back to the source", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if r.State == rollout.Cancelling && e.Kind == rollout.ReleaseSplit {
					d.Effects[i].Percent = 0
				}
			}
		}),
		concludes("a cancel waits for its step", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if r.State == rollout.Cancelling && now.Sub(r.Canceling.At) < time.Minute {
				*d = rollout.Decision{Rollout: r, Due: r.Canceling.At.Add(time.Minute)}
			}
		}),
		concludes("a pause waits for its step", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if r.State == rollout.Pausing && now.Sub(r.Pause.At) < time.Minute {
				*d = rollout.Decision{Rollout: r, Due: r.Pause.At.Add(time.Minute)}
			}
		}),
		concludes("an operator's pause is retried", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if r.State == rollout.Paused && now.Sub(r.Pause.At) >= 15*time.Minute && !d.Changed {
				d.Rollout.State, d.Rollout.Pause, d.Changed = rollout.Running, nil, true
			}
		}),
		concludes("a regression is retried", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if c := d.Rollout.Condition; d.Changed && d.Rollout.State == rollout.SystemPaused && r.State != rollout.SystemPaused && c.Category == rollout.MetricRegression {
				d.Rollout.RetryAt, d.Rollout.RetryUntil = now.Add(15*time.Minute), now.Add(3*time.Hour)
			}
		}),
		concludes("nothing is retried", func(_ rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			d.Rollout.RetryAt = time.Time{}
		}),
		concludes("retries never end", func(_ rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if d.Rollout.State == rollout.SystemPaused && d.Rollout.Condition.Category.Recoverable() && d.Rollout.RetryAt.IsZero() && d.Changed {
				d.Rollout.RetryAt = now.Add(15 * time.Minute)
			}
		}),
		writes("a resume skips the step", func(_ engine.Store, c *rollout.Change) {
			for i, r := range c.Rollouts {
				resumed := slices.ContainsFunc(c.Events, func(e rollout.Event) bool { return e.Type == rollout.EventResumed })
				if resumed && !r.Last() && r.Step < len(r.Steps)-1 {
					c.Rollouts[i].Step++
					c.Rollouts[i].Phase = rollout.PhaseChecking
				}
			}
		}),
		writes("a promote skips the last soak", func(_ engine.Store, c *rollout.Change) {
			for i := range c.Rollouts {
				if slices.ContainsFunc(c.Events, func(e rollout.Event) bool { return e.Type == rollout.EventPromoted }) {
					c.Rollouts[i].Journey.Soak = 0
				}
			}
		}),
		{"a stale etag is accepted", func(c *engine.Config) { c.Store = &oldVersions{Store: c.Store} }},
		concludes("the pair is never released", func(_ rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			before := len(d.Effects)
			withoutEffect(d, func(e rollout.Effect) bool { return e.Kind == rollout.ReleaseSplit })
			if len(d.Effects) < before && d.Rollout.State == rollout.Cancelling {
				d.Rollout.State, d.Rollout.CompletedAt, d.Changed = rollout.Canceled, now, true
			}
		}),
	}
}

// oldVersions is a store whose rollouts seem to be at the version before, until a write.
type oldVersions struct{ engine.Store }

func (s *oldVersions) Rollout(ctx context.Context, id string) (rollout.Rollout, error) {
	r, err := s.Store.Rollout(ctx, id)
	if r.Version > 1 {
		r.Version--
	}
	return r, err
}

func (s *oldVersions) Commit(ctx context.Context, c rollout.Change) error {
	c.Rollouts = slices.Clone(c.Rollouts)
	for i, r := range c.Rollouts {
		if now, err := s.Store.Rollout(ctx, r.ID); err == nil && now.Version == r.Version+1 {
			c.Rollouts[i].Version++
		}
	}
	c.Require = slices.Clone(c.Require)
	for i, r := range c.Require {
		if now, err := s.Store.Rollout(ctx, r.ID); err == nil && now.Version == r.Version+1 {
			c.Require[i].Version++
		}
	}
	return s.Store.Commit(ctx, c)
}

// seedsForAMutant is within how many random rollouts each wrong engine must be noticed.
const seedsForAMutant = 600

// Every wrong engine is noticed. The right one is not: TestRandomRollouts plays the same
// seeds.
func TestEveryWrongEngineIsNoticed(t *testing.T) {
	if slowBuild {
		t.Skip("a wrong engine is as wrong without the race detector")
	}
	all := mutants()
	require.GreaterOrEqual(t, len(all), 25)
	d := disk(t)
	names := map[string]bool{}
	var table strings.Builder
	for _, m := range all {
		require.False(t, names[m.name], m.name)
		names[m.name] = true
		seed, by := noticed(t, m, Setup{Disk: d, Wrong: m.wrong})
		if by == nil {
			t.Errorf("not noticed within %d seeds: %s", seedsForAMutant, m.name)
			continue
		}
		fmt.Fprintf(&table, "\n  %4d  %-48s %s", seed, m.name, by)
	}
	t.Logf("measured: %d wrong engines; seeds needed, engine, what was seen:%s", len(all), table.String())
}

// noticed plays seeds until a wrong engine is seen.
func noticed(t *testing.T, m mutant, setup Setup) (uint64, *Violation) {
	t.Helper()
	for seed := uint64(1); seed <= seedsForAMutant; seed++ {
		r, err := Play(t.Context(), Draw(seed), setup)
		require.NoError(t, err, m.name)
		if len(r.Violations) > 0 {
			return seed, &r.Violations[0]
		}
	}
	return seedsForAMutant, nil
}
