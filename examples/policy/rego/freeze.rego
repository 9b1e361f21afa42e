# When nobody is there to look, nothing moves.
package sluice

deny contains {"rule": "freeze", "address": r.address, "msg": msg, "override": data.limits.freeze_override} if {
	some r in moved
	some window in data.freeze
	day := time.weekday([time.now_ns(), window.zone])
	day in window.days
	[hour, _, _] := time.clock([time.now_ns(), window.zone])
	hour >= window.from_hour
	hour < window.to_hour
	msg := sprintf("changes are frozen on %s from %02d:00 to %02d:00 (%s)", [day, window.from_hour, window.to_hour, window.zone])
}
