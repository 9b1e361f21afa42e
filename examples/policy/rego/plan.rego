# What the rules look at, found once.
package sluice

# Rollouts that the plan makes, a replacement included.
made contains r if {
	some r in input.resource_changes
	r.type == "sluice_rollout"
	"create" in r.change.actions
}

# Rollouts that the plan makes or steers.
moved contains r if {
	some r in input.resource_changes
	r.type == "sluice_rollout"
	some action in r.change.actions
	action in {"create", "update"}
}

# Every managed object of the planned world, of every module.
planned contains resource if {
	walk(input.planned_values.root_module, [_, resource])
	resource.mode == "managed"
}

# The deployment that a rollout moves traffic to: by its id where that is known, by the
# reference in the configuration where it is made in the same plan.
target_of(r) := deployment if {
	some deployment in planned
	deployment.type == "sluice_deployment"
	deployment.values.id == r.change.after.target_deployment_id
} else := deployment if {
	some block in input.configuration.root_module.resources
	block.address == r.address
	some reference in block.expressions.target_deployment_id.references
	some deployment in planned
	deployment.type == "sluice_deployment"
	deployment.address == reference
}

# The preview of a rollout: what the engine said of it when the plan was made.
preview_of(r) := preview.values if {
	walk(input.prior_state.values.root_module, [_, preview])
	preview.type == "sluice_rollout_preview"
	preview.values.endpoint_id == r.change.after.endpoint_id
	preview.values.spec_digest == r.change.after.spec_digest
}
