package engine

import (
	"context"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// DeploymentState is where the replicas of a deployment are.
type DeploymentState string

// The states of a deployment, with the platform's words for them.
const (
	Provisioning DeploymentState = "PROVISIONING"
	Scaling      DeploymentState = "SCALING"
	Ready        DeploymentState = "READY"
	Degraded     DeploymentState = "DEGRADED"
	Stopping     DeploymentState = "STOPPING"
	Stopped      DeploymentState = "STOPPED"
)

// DeploymentView is a deployment with what the fleet sees of it.
type DeploymentView struct {
	rollout.Deployment
	Status  rollout.FleetStatus
	State   DeploymentState
	Message string
	Share   float64 // of the endpoint's traffic by the route that is served, 0 to 1
}

// View looks at one deployment.
func (e *Engine) View(ctx context.Context, d rollout.Deployment) (DeploymentView, error) {
	status, err := e.Fleet.Observe(ctx, d.ID)
	if err != nil {
		return DeploymentView{}, err
	}
	v := DeploymentView{Deployment: d, Status: status}
	v.State, v.Message = stateOf(d.Bounds, status)
	if _, ok := e.serving[d.Config]; !ok && !d.Bounds.Stopped() {
		v.State, v.Message = Degraded, "Config "+d.Config+" is no longer declared in the engine's configuration"
	}
	if route, ok := e.Router.Serving(d.EndpointID); ok {
		v.Share = Shares(route)[d.ID]
	}
	return v, nil
}

func stateOf(b rollout.Bounds, s rollout.FleetStatus) (DeploymentState, string) {
	serving := s.Scheduled - s.Draining
	switch {
	case b.Stopped() && s.Scheduled == 0:
		return Stopped, "Stopped"
	case b.Stopped():
		return Stopping, "Stopping replicas"
	case s.Unplaced > 0:
		return Degraded, "Cannot place replicas: insufficient GPU capacity"
	case failing(s):
		return Degraded, s.Message
	case serving < s.Desired:
		return Provisioning, "Scheduling replicas"
	case s.Ready < s.Desired:
		return Scaling, "Starting replicas"
	case s.Draining > 0:
		return Scaling, "Scaling down"
	}
	return Ready, "All replicas ready"
}

func failing(s rollout.FleetStatus) bool {
	for _, r := range s.Replicas {
		if r.State == rollout.ReplicaFailed {
			return true
		}
	}
	return false
}

// Shares returns what part of an endpoint's traffic each deployment gets by a
// route, 0 to 1: weight × ready replicas, or exact shares of the pair that a
// rollout holds.
func Shares(r rollout.Route) map[string]float64 {
	out := make(map[string]float64, len(r.Members))
	held := func(id string) bool { return r.Pair != nil && (id == r.Pair.Source || id == r.Pair.Target) }
	var mass float64
	for _, m := range r.Members {
		if !held(m.Deployment) {
			mass += m.Weight * float64(m.Ready())
		}
	}
	rest := 1.0
	if p := r.Pair; p != nil {
		share := p.Share
		if mass == 0 {
			share = 1
		}
		rest = 1 - share
		out[p.Target] = share * float64(p.Percent) / 100
		out[p.Source] = share - out[p.Target]
	}
	if mass > 0 {
		for _, m := range r.Members {
			if !held(m.Deployment) {
				out[m.Deployment] = rest * m.Weight * float64(m.Ready()) / mass
			}
		}
	}
	return out
}
