package rollout

import "time"

// Patience is how long something that the engine needs may fail before a working rollout
// is parked for it: long enough for a restart of what is down, short enough for a person
// to hear of it.
const Patience = time.Minute

// ParkOn parks a working rollout for a reason that lies outside of a decision: an
// effect cannot be carried out, or the world cannot be observed. The split stays as
// it is served. In every other state nothing changes: a pause needs no world, and a
// cancel goes on trying.
func ParkOn(r Rollout, c Category, message string, now time.Time) Decision {
	d := &decider{r: r.clone(), now: now}
	if r.State == Running || r.State == Stabilizing {
		d.park(c, message, nil)
		d.r.UpdatedAt = now
	}
	return Decision{Rollout: d.r, Events: d.events, Due: d.due, Changed: d.changed}
}
