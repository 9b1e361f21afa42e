# While somebody's hand is on the split, nobody else's moves it unseen.
package sluice

deny contains {"rule": "break_glass", "address": r.address, "msg": msg, "override": data.limits.break_glass_override} if {
	some r in input.resource_changes
	r.type == "sluice_rollout"
	r.change.actions != ["no-op"]
	drift := r.change.before.drift
	drift.kind == "break_glass"
	msg := sprintf("%s broke the glass: %d %% set, %d %% served (%s). Speak to them, then cancel or resume the rollout", [drift.by, drift.set_percent, drift.actual_percent, drift.reason])
}
