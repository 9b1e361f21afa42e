package rehearsal

import (
	"fmt"
	"strconv"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// weigh gives the sides their standing weights.
func (w *World) weigh(words []string) error {
	if len(words) > len(w.sides) {
		return fmt.Errorf("%d weights for %d deployments; a line such as \"other: 2 ready\" comes before", len(words), len(w.sides))
	}
	for i, word := range words {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("%q is not a weight", word)
		}
		w.sides[i].weight = v
	}
	return nil
}

// settleElsewhere makes the endpoints that only serve: one deployment of the source's
// model with one replica each.
func (w *World) settleElsewhere() error {
	for i := range w.elsewhere {
		ep, err := w.engine.CreateEndpoint(w.ctx, ana, fmt.Sprintf("other-%d", i+1), "VISIBILITY_PRIVATE")
		if err != nil {
			return err
		}
		d, err := w.engine.CreateDeployment(w.ctx, ana, ep.ID, engine.DeploymentSpec{Name: "only", Model: "m/source", Bounds: rollout.Bounds{Min: 1, Max: 1}}, engine.ForReal)
		if err != nil {
			return err
		}
		w.fleet.Step(w.now)
		split := []rollout.Weight{{Deployment: d.ID, Weight: 1}}
		if _, err := w.engine.UpdateEndpoint(w.ctx, ana, ep.ID, "", engine.EndpointChange{Split: &split}); err != nil {
			return err
		}
	}
	return nil
}

// others are the routes of the endpoints that only serve.
type others map[string]rollout.Route

// take keeps a route if it is one of theirs.
func (o others) take(w *World, route rollout.Route) bool {
	if w.endpoint.ID == "" || route.EndpointID == w.endpoint.ID {
		return false
	}
	o[route.EndpointID] = route
	return true
}
