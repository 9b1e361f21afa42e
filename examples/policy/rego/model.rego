# What is rolled out must be the same model tomorrow.
package sluice

deny contains {"rule": "pinned_model", "address": r.address, "msg": msg} if {
	some r in made
	target := target_of(r)
	not regex.match(data.limits.pinned_model, target.values.model)
	msg := sprintf("the target %s serves %q, which names no revision: it may be another model tomorrow", [target.address, target.values.model])
}

deny contains {"rule": "pinned_model", "address": r.address, "msg": "the target is not a sluice_deployment of this configuration, so its model cannot be seen"} if {
	some r in made
	not target_of(r)
}
