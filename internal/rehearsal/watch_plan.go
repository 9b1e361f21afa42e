package rehearsal

import (
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// begins takes up the plan of a rollout that was started, and checks it.
func (v *watch) begins(r rollout.Rollout) {
	v.plan, v.spec = r.Journey, r.Spec
	v.total, v.lifts = r.Journey.Source+r.Journey.Target, 0
	v.pinned, v.touched = map[string]bool{}, map[string]bool{}
	v.parked, v.health = v.w.engineNow(), health{}
	ready := v.w.ready(v.w.source) + v.w.ready(v.w.target)
	v.sameSize = r.Journey.FinalTarget >= v.total && r.Journey.FinalSource == 0 && ready >= v.total
	v.total = min(v.total, ready)
	v.checkPlan(r)
}

// checkPlan checks the numbers of a journey by multiplying out, where the core divides
// and rounds.
func (v *watch) checkPlan(r rollout.Rollout) {
	j := r.Journey
	percent := j.Seed
	for i, rung := range j.Rungs {
		if rung.Percent < percent || rung.Percent == percent && r.Spec.Strategy != rollout.Rolling {
			v.blame(1, "plan: step %d goes to %d%% from %d%%", i+1, rung.Percent, percent)
		}
		percent = rung.Percent
		if v.needTarget(rung.Percent) > rung.Need || rung.Target < rung.Need || rung.Need < 1 {
			v.blame(1, "plan: step %d has %d of %d target replicas at %d%%, of %d", i+1, rung.Need, rung.Target, rung.Percent, j.FinalTarget)
		}
		v.checkKept(r, i)
	}
	if percent != 100 {
		v.blame(7, "plan: the ladder ends at %d%%", percent)
	}
	if last := j.Rungs[len(j.Rungs)-1]; last.Need < j.FinalTarget || last.Source != j.FinalSource {
		v.blame(1, "plan: the last step has %d target and %d source replicas, of %d and %d", last.Need, last.Source, j.FinalTarget, j.FinalSource)
	}
	if j.LandingMin < j.FinalTarget || j.LandingMax < j.LandingMin || j.LandingMax < j.SourceMax {
		v.blame(4, "plan: landing bounds %d..%d for %d replicas, the source had up to %d", j.LandingMin, j.LandingMax, j.FinalTarget, j.SourceMax)
	}
	asked := r.Spec.StepInterval
	for _, rule := range r.Spec.Rules {
		if w := r.Timings.WindowOf(rule) + r.Timings.IngestionLag; j.Soak < w {
			v.blame(6, "plan: a soak of %v for a window and lag of %v", j.Soak, w)
		}
	}
	if r.Spec.Strategy == rollout.Canary && j.Soak < asked {
		v.blame(6, "plan: a soak of %v where %v was asked", j.Soak, asked)
	}
}

// checkKept checks what a step leaves on the source: its share, and the total.
func (v *watch) checkKept(r rollout.Rollout, i int) {
	j, rung := r.Journey, r.Journey.Rungs[i]
	n, left := len(j.Rungs), 100-j.Seed
	enough := rung.Source*left >= j.Source*(100-rung.Percent)
	if r.Spec.Strategy == rollout.Rolling {
		enough = rung.Source*n >= j.Source*(n-i-1)
	}
	if !enough || rung.Source < j.FinalSource && j.FinalSource <= j.Source {
		v.blame(1, "plan: step %d leaves %d of %d source replicas at %d%%", i+1, rung.Source, j.Source, rung.Percent)
	}
	if j.FinalTarget >= j.Source+j.Target && rung.Percent < 100 && rung.Source+rung.Target < j.Source+j.Target && r.Spec.Strategy != rollout.Rolling {
		v.blame(1, "plan: step %d has %d+%d replicas of %d", i+1, rung.Source, rung.Target, j.Source+j.Target)
	}
}

// rungAt is the last step of the plan whose share is not above a percent.
func (v *watch) rungAt(percent int) (rung rollout.Rung, ok bool) {
	for _, r := range v.plan.Rungs {
		if r.Percent <= percent && r.Percent > v.plan.Seed {
			rung, ok = r, true
		}
	}
	return rung, ok
}
