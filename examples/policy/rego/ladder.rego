# Small first, and every wait long enough for its gate.
package sluice

deny contains {"rule": "first_step", "address": r.address, "msg": msg} if {
	some r in made
	r.change.after.facts.strategy == "CANARY"
	first := r.change.after.facts.first_step_percent
	first > data.limits.first_step_percent
	msg := sprintf("the first step moves %d %% of traffic, and %d %% is the most", [first, data.limits.first_step_percent])
}

deny contains {"rule": "soak", "address": r.address, "msg": msg} if {
	some r in made
	longest := r.change.after.facts.longest_window_seconds
	longest > 0
	least := longest + data.limits.ingestion_lag_seconds
	short := [step | some step in r.change.after.journey; step.wait_seconds < least]
	count(short) > 0 # said once, of the first step
	msg := sprintf("step %d waits %v s, and its gate needs %v s: the window of %v s and %v s until its last request can be read", [short[0].step, short[0].wait_seconds, least, longest, data.limits.ingestion_lag_seconds])
}

deny contains {"rule": "blast_radius", "address": r.address, "msg": msg} if {
	some r in made
	ungated := r.change.after.facts.ungated_percent
	ungated > data.limits.ungated_percent
	msg := sprintf("%d %% of traffic reaches the target before any gate has judged it, and %d %% is the most", [ungated, data.limits.ungated_percent])
}
