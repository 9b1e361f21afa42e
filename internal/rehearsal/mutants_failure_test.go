package rehearsal

import (
	"time"

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
