package rehearsal

import (
	"math"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// breakGlass is a person's edit of a locked split, as somebody with the permission makes
// it. The other members keep their weights, and the pair its part of the traffic.
func (w *World) breakGlass(percent int, reason string) {
	if !w.open() {
		return
	}
	if w.power.applying { // whoever edits the split waits for a route that is on its way
		w.pending = append(w.pending, command{text: "break glass, after the route", at: w.now.Add(time.Millisecond), do: func(w *World) { w.breakGlass(percent, reason) }})
		w.inOrder()
		return
	}
	if w.engine == nil || w.power.dead {
		return
	}
	split := w.weightsFor(percent)
	w.ask("break glass", func() error {
		_, err := w.engine.UpdateEndpoint(w.ctx, ana, w.endpoint.ID, "", engine.EndpointChange{Split: &split, BreakGlass: &engine.BreakGlass{Reason: reason}})
		return err
	})
}

// weightsFor are the weights that give the target a percent of the pair, by the replicas
// that answer.
func (w *World) weightsFor(percent int) []rollout.Weight {
	now := w.engine.EffectiveSplit(w.ctx, w.endpoint)
	var mass float64
	var out []rollout.Weight
	for _, weight := range now {
		if weight.Deployment == w.source.id || weight.Deployment == w.target.id {
			mass += weight.Weight * float64(max(1, w.ready(w.sideOf(weight.Deployment))))
			continue
		}
		out = append(out, weight)
	}
	mass = max(mass, 1)
	for _, part := range []struct {
		s       *side
		percent int
	}{{w.source, 100 - percent}, {w.target, percent}} {
		out = append(out, rollout.Weight{Deployment: part.s.id, Weight: math.Min(1e9, mass*float64(part.percent)/100/float64(max(1, w.ready(part.s))))})
	}
	return out
}

func (w *World) sideOf(id string) *side {
	for _, s := range w.sides {
		if s.id == id {
			return s
		}
	}
	return w.source
}
