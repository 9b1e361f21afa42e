// Package provider is the Terraform provider "sluice": endpoints, deployments and
// rollouts as resources; what is live at plan, and a gate for pipelines, as data
// sources. Terraform's types stop here: everything is decided with the same core
// and planning that the other doors use.
//
// Three measured facts shape it. An error from Create taints, and a tainted rollout
// would be canceled and started anew by the next apply: so once the engine has
// accepted a rollout, Create returns warnings only. A planned value that follows
// live facts makes the apply fail as inconsistent: so journey and findings come
// from the configuration and the engine's configured timings alone. And a plan that
// says "no changes" ends the story: so a rollout that is not over plans a resume.
package provider
