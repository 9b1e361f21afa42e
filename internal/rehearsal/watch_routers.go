package rehearsal

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// mostBehind is how long the routers may be behind before a step that is served parks.
const mostBehind = time.Minute

// settled are the phases in which a step's split is served, and has to be.
func settled(p rollout.Phase) bool {
	switch p {
	case rollout.PhasePropagating, rollout.PhaseDraining, rollout.PhaseSoaking, rollout.PhaseGating, rollout.PhaseConfirming:
		return true
	default:
		return false
	}
}

// restsBehind checks that no step goes on for long on a route that is not the latest.
func (v *watch) restsBehind(r rollout.Rollout) {
	w := v.w
	only := !w.store.down && w.store.fails+w.store.loses == 0 && w.power.slow == 0 && !w.fleets.down && !w.fleets.deaf && w.retry.IsZero()
	if !only || w.skew != 0 || w.routers.behind.IsZero() || !working(r) || !settled(r.Phase) || w.now.Sub(v.lastFault) < w.poll+20*time.Second {
		return
	}
	if since := w.engineNow().Sub(w.routers.behind); since > mostBehind+w.poll+20*time.Second {
		v.blame(7, "%s goes on while the routers refuse the latest route for %v", r.Phase, since)
	}
}

// parksOnRouters checks that a step which is served parks on routers only after they have
// been behind for long enough.
func (v *watch) parksOnRouters(old rollout.Rollout) {
	if !settled(old.Phase) || v.w.skew != 0 || v.w.power.slow > 0 {
		return
	}
	if b := v.w.routers.behind; b.IsZero() || v.w.engineNow().Sub(b) < mostBehind {
		v.blame(5, "parked in %s on routers that are behind since %s", old.Phase, clock(b))
	}
}
