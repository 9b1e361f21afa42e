# What the overlap of both sides costs, and who has said yes to it.
package sluice

deny contains {"rule": "price", "address": r.address, "msg": msg} if {
	some r in made
	cost := preview_of(r).overlap_cost_cents
	cost > data.limits.overlap_cost_cents
	msg := sprintf("both sides at once cost %v cents, and %v are the most", [round(cost), data.limits.overlap_cost_cents])
}

deny contains {"rule": "price", "address": r.address, "msg": "its price is not known: apply its deployments first, without it; under terraform also add a data source sluice_rollout_preview with the same spec"} if {
	some r in made
	not priced(r)
}

priced(r) if is_number(preview_of(r).overlap_cost_cents)

# Approvals come beside the plan, as data: [{"digest": "…", "by": "…"}]. Each is of one
# digest, and anything that changes makes another one.
default approvals := []

approvals := data.approvals

# Who asks for the change; an own approval does not count.
default author := ""

author := data.author

approvers(digest) := {a.by | some a in approvals; a.digest == digest; a.by != author}

deny contains {"rule": "approvals", "address": r.address, "msg": msg, "override": data.limits.approval_override} if {
	some r in made
	preview := preview_of(r)
	preview.overlap_cost_cents > data.limits.approval_above_cents
	yes := count(approvers(preview.plan_digest))
	yes < 2
	msg := sprintf("above %v cents two people other than the author approve the plan %s; %d did", [data.limits.approval_above_cents, preview.plan_digest, yes])
}
