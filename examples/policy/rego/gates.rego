# A canary that nothing can stop is a slow blue-green.
package sluice

needed_gates := {
	"router_latency": "latency",
	"router_error_rate": "error",
}

deny contains {"rule": "gates", "address": r.address, "msg": msg} if {
	some r in made
	r.change.after.facts.strategy == "CANARY"
	some metric, kind in needed_gates
	not metric in {m.name | some m in r.change.after.metrics}
	msg := sprintf("the canary has no %s gate: add a metric %q", [kind, metric])
}

# Where the facts are not known, no rule can look at them.
deny contains {"rule": "known", "address": r.address, "msg": "the journey is not known at plan, so it cannot be judged: give the engine's address and key as known values"} if {
	some r in made
	not r.change.after.facts.strategy
}
