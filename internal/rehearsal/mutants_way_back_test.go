package rehearsal

import (
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// wayBackMutants break a way back: a held source, a circuit breaker, an edit of the
// locked split.
func wayBackMutants() []mutant {
	return []mutant{
		believes("the breaker trips without data", func(r *rollout.Rollout, o *rollout.Observed, _ time.Time) {
			for i := range o.Breaker {
				if q := &o.Breaker[i]; !usable(*q, 20) {
					*q = rollout.Reading{Value: 1e6, Samples: 1000, Complete: true}
				}
			}
		}),
		believes("one look is enough for the breaker", func(_ *rollout.Rollout, o *rollout.Observed, _ time.Time) {
			for i := 0; i+1 < len(o.Breaker); i += 2 {
				o.Breaker[i+1] = o.Breaker[i]
			}
		}),
		believes("the breaker is silent while paused", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			if r.State == rollout.Paused {
				r.Spec.HoldSource, r.Spec.Breaker = holds(r.Spec), nil
			}
		}),
		concludes("a trip is retried", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if d.Rollout.Trip != nil && r.Trip == nil && d.Rollout.State == rollout.SystemPaused {
				d.Rollout.RetryAt, d.Rollout.RetryUntil = now.Add(15*time.Minute), now.Add(3*time.Hour)
			}
		}),
		concludes("a trip goes to half", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if d.Rollout.Trip != nil && r.Percent > r.Journey.Seed+1 {
				half := r.Journey.Seed + (r.Percent-r.Journey.Seed+1)/2
				d.Rollout.Hold = ptrTo(half)
				for i, e := range d.Effects {
					if e.Kind == rollout.SetSplit {
						d.Effects[i].Percent = half
					}
				}
			}
		}),
		concludes("a trip is revised when all is well", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if r.Trip != nil && r.Edit == nil && r.State.Parked() && !d.Changed && r.Percent == r.Journey.Seed {
				d.Effects = append(d.Effects, rollout.Effect{Kind: rollout.SetSplit, Percent: r.Trip.From})
			}
		}),
		believes("a held source is drained before its gate", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			r.SourceReleased = r.SourceReleased || r.Last() && r.Phase == rollout.PhasePropagating
		}),
		believes("a held source is drained with each step", func(r *rollout.Rollout, _ *rollout.Observed, _ time.Time) {
			if r.Spec.HoldSource {
				r.Journey.Rungs = slices.Clone(r.Journey.Rungs)
				for i := range r.Journey.Rungs {
					rung := &r.Journey.Rungs[i]
					rung.Source = rollout.SourceAfter(r.Journey.Source, r.Journey.FinalSource, r.Journey.Seed, rung.Percent)
				}
				r.Spec.HoldSource, r.Spec.Breaker = false, nil
			}
		}),
		concludes("a held source is never drained", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if r.SourceReleased && r.Phase == rollout.PhaseDraining && len(d.Effects) > 0 {
				d.Effects = nil
				d.Rollout.Steps = slices.Clone(d.Rollout.Steps)
				d.Rollout.Steps[r.Step].State, d.Rollout.Steps[r.Step].CompletedAt = rollout.StepPassed, r.PhaseSince
				d.Rollout.Phase, d.Changed = rollout.PhaseReleasing, true
			}
		}),
		concludes("a hold undoes an edit by broken glass", func(r rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			if r.Edit != nil && r.State.Parked() && o.Split.Held && o.Split.Percent > r.Journey.Seed && o.Target.Ready < o.Target.Desired {
				d.Effects = append(d.Effects, rollout.Effect{Kind: rollout.SetSplit, Percent: r.Journey.Seed})
			}
		}),
		concludes("a step goes on over an edit by broken glass", func(r rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			if r.Edit != nil && r.State.Parked() && o.Split.Held && o.Split.Percent != r.Rung().Percent && !d.Changed {
				d.Effects = append(d.Effects, rollout.Effect{Kind: rollout.SetSplit, Percent: r.Rung().Percent})
			}
		}),
		writes("a late shift overwrites an edit by broken glass", late),
	}
}

// late makes an edit by broken glass lose to the percent of the step that was under way.
func late(_ engine.Store, c *rollout.Change) {
	told := slices.ContainsFunc(c.Events, func(e rollout.Event) bool { return e.Type == rollout.EventBreakGlass })
	for _, r := range c.Rollouts {
		for i := range c.Endpoints {
			if p := c.Endpoints[i].Pair; told && p != nil && r.Edit != nil {
				over := *p
				over.Percent = r.Rung().Percent
				c.Endpoints[i].Pair = &over
			}
		}
	}
}
