package rehearsal

import (
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// failureMutants mistake a failure for another, or go on in spite of it.
func failureMutants() []mutant {
	return []mutant{
		concludes("a part of a share is recorded as the whole", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if r.Limit != nil && r.Phase == rollout.PhaseDraining && d.Rollout.Phase == rollout.PhaseChecking && working(d.Rollout) {
				d.Rollout.State, d.Rollout.Phase, d.Rollout.PhaseSince, d.Rollout.SteadySince, d.Rollout.Limit = rollout.Stabilizing, rollout.PhaseSoaking, now, now, nil
			}
		}),
		concludes("at a part of a share the source drains for the whole", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if r.Limit != nil && e.Kind == rollout.SetBounds && e.Deployment == r.Spec.Source && e.Min != nil {
					d.Effects[i].Min = ptrTo(r.Rung().Source)
				}
			}
		}),
		concludes("a part of a share counts a replica too many", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			for i, e := range d.Effects {
				if r.Limit != nil && r.Limit.Moving && e.Kind == rollout.SetSplit && working(r) {
					d.Effects[i].Percent = min(r.Rung().Percent-1, e.Percent+100/r.Journey.FinalTarget+1)
				}
			}
		}),
		believes("the drain begins while the routers are behind", func(_ *rollout.Rollout, o *rollout.Observed, now time.Time) {
			if o.Split.Behind != "" && now.Sub(o.Split.BehindSince) < rollout.Patience {
				o.Split.Behind = ""
			}
		}),
		believes("routers that are behind are no matter", func(_ *rollout.Rollout, o *rollout.Observed, now time.Time) {
			o.Split.BehindSince = now
		}),
		believes("routers that are behind park at once", func(_ *rollout.Rollout, o *rollout.Observed, now time.Time) {
			o.Split.BehindSince = time.Time{}
		}),
	}
}

// healthMutants count wrongly how often a target fails, or draw the wrong conclusion.
func healthMutants() []mutant {
	return []mutant{
		{"the failures of a target are lost at a crash", func(c *engine.Config) {
			lost := false // of this process
			c.Decide = func(r rollout.Rollout, o rollout.Observed, now time.Time) rollout.Decision {
				if r.Steps[r.Step].Health != nil && !lost {
					r.Steps = slices.Clone(r.Steps)
					r.Steps[r.Step].Health = nil
				}
				d := rollout.Decide(r, o, now)
				lost = true
				return d
			}
		}},
		believes("a target's failures are not counted", func(_ *rollout.Rollout, o *rollout.Observed, _ time.Time) { o.Target.Failures = 0 }),
		{"each replica's failure is counted", func(c *engine.Config) {
			c.Decide = func(r rollout.Rollout, o rollout.Observed, now time.Time) rollout.Decision {
				if h := r.Steps[r.Step].Health; h != nil && o.Target.Failures > h.Seen+1 && h.Whole {
					r.Steps = slices.Clone(r.Steps)
					more := *h
					more.Occasions += o.Target.Failures - h.Seen - 1
					more.Occasions = min(more.Occasions, rollout.UnhealthyAfter-1)
					r.Steps[r.Step].Health = &more
				}
				return rollout.Decide(r, o, now)
			}
		}},
		concludes("a target that keeps failing is tried again", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, now time.Time) {
			if d.Changed && parkedOn(d.Rollout) == rollout.HealthRegression && parkedOn(r) != rollout.HealthRegression {
				d.Rollout.RetryAt, d.Rollout.RetryUntil = now.Add(15*time.Minute), now.Add(3*time.Hour)
			}
		}),
		concludes("a retry forgets the failures", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if r.State == rollout.SystemPaused && working(d.Rollout) {
				d.Rollout.Steps[d.Rollout.Step].Health = nil
			}
		}),
		concludes("failures before the shift are counted", func(_ rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			if st := &d.Rollout.Steps[d.Rollout.Step]; d.Changed && d.Rollout.Phase == rollout.PhasePropagating && st.Health != nil && st.Health.Occasions == 0 {
				st.Health = &rollout.Health{Whole: true}
			}
		}),
		concludes("a target that keeps failing goes on", func(r rollout.Rollout, d *rollout.Decision, _ rollout.Observed, _ time.Time) {
			if parkedOn(d.Rollout) == rollout.HealthRegression && working(r) {
				events, health := d.Events, d.Rollout.Steps[r.Step].Health
				d.Rollout, d.Events = r, events[:0]
				d.Rollout.Steps = slices.Clone(r.Steps)
				d.Rollout.Steps[r.Step].Health = health
			}
		}),
	}
}
