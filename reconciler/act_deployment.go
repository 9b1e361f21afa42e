package reconciler

import (
	"context"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

const boundsMask = "autoscaling.minReplicas,autoscaling.maxReplicas"

func (a *act) deployment(ctx context.Context) (Done, error) {
	switch a.change.Action {
	case planning.NoOp:
		return a.done(), nil
	case planning.Create:
		return a.createDeployment(ctx)
	case planning.Update:
		return a.updateDeployment(ctx)
	case planning.Delete:
		return a.deleteDeployment(ctx)
	case planning.Replace:
		if done, err := a.deleteDeployment(ctx); err != nil || done.Again {
			return done, err
		}
		return a.createDeployment(ctx)
	case planning.Start, planning.Steer:
	}
	return Done{}, a.impossible()
}

// Settled reports whether a deployment has what its floor asks for, or never will. A door
// that waits for replicas waits for this; a rollout from a source that is not READY is
// refused until it is.
func Settled(d api.Deployment) bool {
	low := 0
	if d.Autoscaling.MinReplicas != nil {
		low = *d.Autoscaling.MinReplicas
	}
	return low == 0 || d.Status.State == api.DeploymentReady || d.Status.State == api.DeploymentFailed
}

func (a *act) createDeployment(ctx context.Context) (Done, error) {
	d := a.change.Declared.Deployment
	endpoint, err := a.resolve(d.Endpoint, "endpoint")
	if err != nil {
		return Done{}, err
	}
	if d.Name.Unknown || d.Model.Unknown || d.Config.Unknown || d.MinReplicas.Unknown || d.MaxReplicas.Unknown || d.InitialTrafficWeight.Unknown {
		return Done{}, a.notKnown("name, model, config, bounds or weight")
	}
	if d.InitialTrafficWeight.Value > 0 { // refused before anything is made, not after
		e, err := a.client.GetEndpoint(ctx, endpoint)
		if err != nil {
			return Done{}, err
		}
		if e.ActiveRolloutID != "" {
			return Done{}, a.heldBy(ctx, endpoint)
		}
	}
	made, err := a.client.CreateDeployment(ctx, endpoint, api.CreateDeployment{
		Name: d.Name.Value, Model: d.Model.Value, Config: d.Config.Value, Autoscaling: declaredBounds(*d),
	}, onceKey())
	adopted := isTaken(err)
	if adopted {
		made, err = a.adoptDeployment(ctx, endpoint, *d, err)
	}
	if err != nil {
		return Done{}, err
	}
	done := Done{ID: made.ID, EndpointID: endpoint, Deployment: &made, Adopted: adopted}
	if d.InitialTrafficWeight.Value > 0 {
		_, err = a.client.SetWeight(ctx, endpoint, made.ID, d.InitialTrafficWeight.Value)
	}
	return done, err
}

func declaredBounds(d declaration.Deployment) api.Autoscaling {
	low, high := d.MinReplicas.Value, d.MaxReplicas.Value
	return api.Autoscaling{MinReplicas: &low, MaxReplicas: &high}
}

// adoptDeployment finds the deployment that has the name, when it serves what is declared.
func (a *act) adoptDeployment(ctx context.Context, endpoint string, d declaration.Deployment, taken error) (api.Deployment, error) {
	for live, err := range a.client.Deployments(ctx, endpoint, engineclient.ListOptions{PageSize: api.MaxPageSize}) {
		if err != nil {
			return api.Deployment{}, err
		}
		if planning.BareName(live.Name) != d.Name.Value {
			continue
		}
		if !planning.Serves(live, d) {
			return live, &Taken{ID: live.ID, What: fmt.Sprintf("it serves %s by %s", planning.ResourceName(live.Model, "models"), planning.ResourceName(live.Config, "configs"))}
		}
		return live, nil
	}
	return api.Deployment{}, &Unlisted{taken}
}

// updateDeployment writes the bounds, or the weight that a create was cut off before, if
// they are not what is declared.
func (a *act) updateDeployment(ctx context.Context) (Done, error) {
	live, err := a.client.GetDeployment(ctx, a.change.EndpointID, a.change.ID)
	if err != nil {
		return Done{}, err
	}
	d := a.change.Declared.Deployment
	done := Done{ID: live.ID, EndpointID: live.EndpointID, Deployment: &live, Adopted: true}
	for _, f := range a.change.Fields {
		if f.Unknown {
			return done, a.notKnown(f.Path)
		}
		if f.Path == "initial_traffic_weight" {
			done.Adopted = false
			if _, err := a.client.SetWeight(ctx, live.EndpointID, live.ID, d.InitialTrafficWeight.Value); err != nil {
				return done, err
			}
		}
	}
	if planning.HasBounds(live, d.MinReplicas.Value, d.MaxReplicas.Value) || !changes(a.change, "autoscaling.min_replicas", "autoscaling.max_replicas") {
		return done, nil
	}
	bounds := declaredBounds(*d)
	live, err = a.client.UpdateDeployment(ctx, live.EndpointID, live.ID, boundsMask, api.UpdateDeployment{ETag: live.ETag, Autoscaling: &bounds})
	done.Adopted = false
	return done, err
}

func changes(c planning.Change, paths ...string) bool {
	for _, f := range c.Fields {
		for _, p := range paths {
			if f.Path == p {
				return true
			}
		}
	}
	return false
}

// deleteDeployment keeps the order in which no request loses its replica: out of the
// split, then drained, then gone. It does what can be done now; Again says that replicas
// still finish what they hold.
func (a *act) deleteDeployment(ctx context.Context) (Done, error) {
	endpoint, id := a.change.EndpointID, a.change.ID
	done := Done{ID: id, EndpointID: endpoint}
	live, err := a.client.GetDeployment(ctx, endpoint, id)
	if engineclient.IsNotFound(err) {
		done.Adopted = true
		return done, nil
	}
	if err != nil {
		return done, err
	}
	if r, found, err := a.client.ActiveRollout(ctx, endpoint); err != nil || found && (r.SourceDeploymentID == id || r.TargetDeploymentID == id) {
		if err == nil {
			err = &Held{EndpointID: endpoint, By: r}
		}
		return done, err
	}
	if _, err := a.client.SetWeight(ctx, endpoint, id, 0); err != nil {
		return done, err
	}
	if !planning.HasBounds(live, 0, 0) {
		zero := 0
		if live, err = a.client.UpdateDeployment(ctx, endpoint, id, boundsMask, api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &zero, MaxReplicas: &zero}}); err != nil {
			return done, err
		}
	}
	if live.Status.State != api.DeploymentStopped && (live.Status.State != api.DeploymentFailed || live.Status.ScheduledReplicas > 0) {
		done.Again = true
		return done, nil
	}
	err = a.client.DeleteDeployment(ctx, endpoint, id, live.ETag)
	switch {
	case engineclient.IsNotFound(err):
		return done, nil
	case engineclient.IsStale(err): // something else of the endpoint was written
		done.Again = true
		return done, nil
	}
	return done, err
}
