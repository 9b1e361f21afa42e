package rollout

import "fmt"

// routersFail parks a step whose split is served once the routers could not be told the
// latest route for longer than anybody should wait for it.
func (d *decider) routersFail() bool {
	s := d.o.Split
	if s.Behind == "" || !d.r.Phase.settled() || d.r.Phase == PhaseReleasing {
		return false
	}
	until := s.BehindSince.Add(Patience)
	if d.now.Before(until) {
		d.wake(until)
		return false
	}
	d.park(RoutingError, fmt.Sprintf("the routers could not be told the latest route for %s: %s. The split stays at %d%%; wait and resume, or cancel", rounded(d.now.Sub(s.BehindSince)), s.Behind, d.r.Percent), nil)
	return true
}

// awaitRouters keeps the drain from beginning while the routers are behind the latest
// route: they may still send to a replica that is dead, or by the split before.
func (d *decider) awaitRouters() bool {
	behind := d.o.Split.Behind
	if behind == "" {
		if d.r.Waits != "" {
			d.r.Waits, d.changed = "", true
		}
		return false
	}
	if d.r.Waits == "" {
		d.r.Waits = behind
		e := d.r.event(d.now, EventDrainWaits, "the drain waits: the routers could not be told the latest route: %s", behind)
		e.Level = LevelWarn
		d.tell(e)
	}
	return true
}
