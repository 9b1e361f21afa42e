package rehearsal

import "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"

// A step whose target cannot have all of its replicas may advance to a part of its share.
// The watch has its own idea of when, of how far, and of what the source keeps meanwhile.

// forNow reports whether a share is one to which a limited step may advance: below the
// step's own, while the engine was told last that the rest of the target does not fit, or
// was told so when it stored that it goes there.
func (v *watch) forNow(r rollout.Rollout, percent int) bool {
	rung := v.plan.Rungs[min(r.Step, len(v.plan.Rungs)-1)]
	return percent < rung.Percent && (v.lacked || v.lacks(r)) && len(r.Conditions()) > 0
}

// lacks reports whether the engine was told last that not all of the step's target fits.
func (v *watch) lacks(r rollout.Rollout) bool {
	rung := v.plan.Rungs[min(r.Step, len(v.plan.Rungs)-1)]
	seen := v.w.fleets.seen[r.Spec.Target]
	free, known := v.w.fleets.free[v.w.hardwareOf(v.w.target)]
	return seen.Unplaced > 0 || known && free >= 0 && seen.Scheduled-seen.Draining+free < rung.Target
}

// limits notes on what the engine stored that a step goes to a share for now.
func (v *watch) limits(old, r rollout.Rollout) {
	switch was, is := old.Limit, r.Limit; {
	case is == nil || !is.Moving:
		v.lacked = false
	case was == nil || *was != *is:
		v.lacked = v.lacks(r)
	}
}

// keptForNow checks a drain at a part of a step's share: the source keeps its part of the
// traffic, and as many replicas as the target lacks of those that stood at the start.
func (v *watch) keptForNow(r rollout.Rollout, old, b rollout.Bounds) {
	percent, left := v.served(), 100-v.plan.Seed
	ready := min(v.w.fleets.seen[r.Spec.Target].Ready, v.w.deployments[r.Spec.Target].Bounds.Max)
	floor := min(old.Min, b.Min)
	if floor < old.Min && (floor-v.plan.FinalSource)*left < (v.plan.Source-v.plan.FinalSource)*(100-percent) {
		v.blame(3, "the source is drained to %d at %d%%, a part of a step: of %d, with %d to stay", floor, percent, v.plan.Source, v.plan.FinalSource)
	}
	if total := v.plan.Source + v.plan.Target; floor < min(old.Min, v.plan.Source) && floor+ready < total {
		v.blame(1, "the source is drained to %d with %d target replica(s) ready, a part of a step: %d stood", floor, ready, total)
	}
}

// restsForNow checks that a part of a step's share is not soaked.
func (v *watch) restsForNow(r rollout.Rollout) {
	switch r.Phase {
	case rollout.PhaseSoaking, rollout.PhaseGating, rollout.PhaseConfirming:
	default:
		return
	}
	if percent := v.plan.Rungs[r.Step].Percent; r.Percent != percent {
		v.blame(2, "%s at %d%%, a part of the step's %d%%", r.Phase, r.Percent, percent)
	}
}
