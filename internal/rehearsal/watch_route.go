package rehearsal

import (
	"math"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// routed checks a route as the first router takes it.
func (v *watch) routed(old, route rollout.Route) {
	before, after := v.w.routers.percent(old), v.w.routers.percent(route)
	held := old.Pair != nil && route.Pair != nil && old.Pair.RolloutID == route.Pair.RolloutID
	defer func() { v.last, v.glassLate = after, false }()
	reborn := len(old.Members) == 0 && !v.splitAt.IsZero() // the router died with the engine
	if !reborn && (before != after || !held && route.Pair != nil) {
		v.splitAt = v.w.engineNow()
	}
	if r := v.w.record; held && r.Edit == nil && r.State.Parked() && after > before && after != r.Percent {
		v.blame(7, "the split went from %d%% to %d%% in %s", before, after, r.State)
	}
	switch {
	case route.Pair != nil && old.Pair == nil && v.w.record.Edit == nil:
		v.holds(old, route)
	case held && old.Pair.Share != route.Pair.Share && route.Pair.Share != v.glassShare:
		v.blame(4, "the pair's share of the endpoint went from %v to %v", old.Pair.Share, route.Pair.Share)
	case route.Pair == nil && old.Pair != nil:
		v.released(old, route)
	}
}

// holds checks that taking hold of a split moves no traffic.
func (v *watch) holds(old, route rollout.Route) {
	if v.glassLate {
		return
	}
	if len(old.Members) == 0 { // the router had died
		if r := v.w.record; r.State.Parked() && route.Pair.Percent > max(r.Percent, v.last) {
			v.blame(7, "the split came back at %d%% in %s, the record says %d%%", route.Pair.Percent, r.State, r.Percent)
		}
		return
	}
	if v.w.power.meanwhile.Equal(v.w.now) || v.readyIn(old, v.w.source.id) != v.plan.Source || v.readyIn(old, v.w.target.id) != v.plan.Target {
		return // some went between the start and the hold: the share at the start counts
	}
	before, after := v.w.routers.percent(old), route.Pair.Percent
	if v.sameReady(old, route) && v.readyIn(old, v.w.source.id) > 0 && (after == 0 || v.readyIn(old, v.w.target.id) > 0) && absInt(before-after) > 1 {
		v.blame(2, "taking hold of the split moved it from %d%% to %d%%", before, after)
	}
	was, is := shares(old), shares(route)
	for id, share := range was {
		if v.sameReady(old, route) && v.readyIn(old, v.w.source.id) > 0 && id != v.w.source.id && id != v.w.target.id && math.Abs(share-is[id]) > 1e-6 {
			v.blame(4, "taking hold of the split moved the share of %s from %v to %v", id, share, is[id])
		}
	}
}

// released checks that standing weights keep the split, on the replicas that there are.
func (v *watch) released(old, route rollout.Route) {
	if v.glassShare != 0 && old.Pair.Share != v.glassShare {
		return // the routers had refused a part that somebody set by breaking the glass
	}
	if !v.sameReady(old, route) || v.readyIn(old, v.w.source.id) == 0 && old.Pair.Percent < 100 || v.readyIn(old, v.w.target.id) == 0 && old.Pair.Percent > 0 {
		return
	}
	was, is := shares(old), shares(route)
	for id, share := range was {
		if math.Abs(share-is[id]) > 1e-6 {
			v.blame(7, "the release moved the share of %s from %v to %v", id, share, is[id])
		}
	}
}

// sameReady reports whether two routes have as many ready replicas of each member.
func (v *watch) sameReady(a, b rollout.Route) bool {
	for _, s := range v.w.sides {
		if v.readyIn(a, s.id) != v.readyIn(b, s.id) {
			return false
		}
	}
	return true
}

func (v *watch) readyIn(r rollout.Route, id string) int {
	for _, m := range r.Members {
		if m.Deployment == id {
			return m.Ready()
		}
	}
	return 0
}

// shares are the parts of the endpoint's traffic by a route, 0 to 1.
func shares(r rollout.Route) map[string]float64 {
	mass, rest := map[string]float64{}, 0.0
	for _, m := range r.Members {
		if p := r.Pair; p != nil && (m.Deployment == p.Source || m.Deployment == p.Target) {
			continue
		}
		mass[m.Deployment] = m.Weight * float64(m.Ready())
		rest += mass[m.Deployment]
	}
	part := 1.0
	out := map[string]float64{}
	if p := r.Pair; p != nil {
		share := p.Share
		if rest == 0 {
			share = 1
		}
		out[p.Source], out[p.Target] = share*float64(100-p.Percent)/100, share*float64(p.Percent)/100
		part = 1 - share
	}
	for id, m := range mass {
		if rest > 0 {
			out[id] = part * m / rest
		} else {
			out[id] = 0
		}
	}
	return out
}

func absInt(n int) int { return max(n, -n) }

// splitting checks the pair's split as it is written, which is before any router hears.
func (v *watch) splitting(old, e rollout.Endpoint) {
	r := v.w.record
	if e.Pair == nil {
		v.releasing(old, r)
		return
	}
	if old.Pair != nil && *old.Pair == *e.Pair {
		return
	}
	if v.overEdit(r, e) {
		return
	}
	from, to := v.served(), e.Pair.Percent
	if route, ok := v.w.routers.Serving(e.ID); ok && route.Pair != nil && *route.Pair == *e.Pair {
		return // the record follows what the routers kept serving
	} else if !ok && to == r.Percent {
		return // or, where they serve nothing, what they served last
	}
	if r.State == rollout.Pending || r.State.Terminal() || r.State == rollout.Pausing {
		v.blame(7, "the split is set to %d%% in %s", to, r.State)
	}
	if to > from {
		v.raising(r, from, to)
	} else if to < from && !v.splitIsNew() {
		v.lowering(r, from, to)
	}
}

// raising checks a shift: the step's own percent, and a target that has been seen with
// what it needs.
func (v *watch) raising(r rollout.Rollout, from, to int) {
	if r.State != rollout.Running && r.State != rollout.Stabilizing {
		v.blame(7, "the split is raised from %d%% to %d%% in %s", from, to, r.State)
		return
	}
	rung := v.plan.Rungs[min(r.Step, len(v.plan.Rungs)-1)]
	if to <= v.plan.Seed && v.splitIsNew() {
		return // it is held as it stood
	}
	seen := v.w.fleets.seen[r.Spec.Target].Ready
	if v.forNow(r, to) {
		if n := min(seen, v.w.deployments[r.Spec.Target].Bounds.Max); n < v.needTarget(to) {
			v.blame(2, "the split goes to %d%% for now with %d target replica(s) ready of %d", to, n, v.needTarget(to))
		}
		return
	}
	if to != rung.Percent {
		v.blame(2, "the split goes to %d%%, step %d is %d%%", to, r.Step+1, rung.Percent)
	}
	if seen < rung.Need || seen < v.needTarget(to) {
		v.blame(2, "the split goes to %d%% with %d target replica(s) ready, step %d needs %d", to, seen, r.Step+1, max(rung.Need, v.needTarget(to)))
	}
}

// splitIsNew reports whether no rollout holds the split yet.
func (v *watch) splitIsNew() bool { return v.w.endpoint.Pair == nil }

// lowering checks a hold: the largest split that both sides can carry.
func (v *watch) lowering(r rollout.Rollout, from, to int) {
	if r.State == rollout.Running || r.State == rollout.Stabilizing {
		if to == v.plan.Rungs[min(r.Step, len(v.plan.Rungs)-1)].Percent {
			return // a split that stood above the step's
		}
		v.blame(3, "the split is lowered from %d%% to %d%% in %s", from, to, r.State)
		return
	}
	if r.Trip != nil && to == v.plan.Seed {
		return // the circuit breaker's, whatever the source can carry
	}
	if v.w.power.slow > 0 || r.Hold != nil && *r.Hold == to && !v.heldAt.Equal(v.w.engineNow()) {
		return // what was decided on may have changed before it is done: a store may be slow, a crash come between
	}
	for p := from; p > to; p-- {
		if v.strictlyServable(p) {
			v.blame(3, "the split is held at %d%%, and %d%% could be served", to, p)
			return
		}
	}
}

// releasing checks the end of the pair.
func (v *watch) releasing(old rollout.Endpoint, r rollout.Rollout) {
	if old.Pair == nil {
		return
	}
	if route, _ := v.w.routers.Serving(old.ID); route.Pair == nil {
		return // the routers had refused to hold it
	}
	if r.State != rollout.Cancelling && r.Phase != rollout.PhaseReleasing {
		v.blame(7, "the split is released in %s of %s", r.Phase, r.State)
	}
}
