package reconciler

import (
	"context"
	"crypto/rand"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

const prefixVisibility = "VISIBILITY_"

// onceKey is for the retries of one create within the client. Endpoints and deployments
// are told apart by their names, which the engine keeps unique: a later try finds them by
// those, and a key of their content would find what was deleted since.
func onceKey() string { return "sluice-" + rand.Text() }

func (a *act) endpoint(ctx context.Context) (Done, error) {
	switch a.change.Action {
	case planning.NoOp:
		return a.done(), nil
	case planning.Create:
		return a.createEndpoint(ctx)
	case planning.Update:
		return a.updateEndpoint(ctx)
	case planning.Delete:
		return a.deleteEndpoint(ctx)
	case planning.Replace:
		if done, err := a.deleteEndpoint(ctx); err != nil {
			return done, err
		}
		return a.createEndpoint(ctx)
	case planning.Start, planning.Steer:
	}
	return Done{}, a.impossible()
}

func (a *act) createEndpoint(ctx context.Context) (Done, error) {
	d := a.change.Declared.Endpoint
	if d.Name.Unknown || d.Visibility.Unknown {
		return Done{}, a.notKnown("name or visibility")
	}
	e, err := a.client.CreateEndpoint(ctx, api.CreateEndpoint{Name: d.Name.Value, Visibility: prefixVisibility + d.Visibility.Value}, onceKey())
	if isTaken(err) {
		return a.adoptEndpoint(ctx, err)
	}
	if err != nil {
		return Done{}, err
	}
	return Done{ID: e.ID, EndpointID: e.ID, Endpoint: &e}, nil
}

func (a *act) adoptEndpoint(ctx context.Context, taken error) (Done, error) {
	name := planning.BareName(a.change.Declared.Endpoint.Name.Value)
	for e, err := range a.client.Endpoints(ctx, engineclient.ListOptions{PageSize: api.MaxPageSize}) {
		if err != nil {
			return Done{}, err
		}
		if planning.BareName(e.Name) == name {
			return Done{ID: e.ID, EndpointID: e.ID, Endpoint: &e, Adopted: true}, nil
		}
	}
	return Done{}, &Unlisted{taken}
}

func (a *act) updateEndpoint(ctx context.Context) (Done, error) {
	e, err := a.client.GetEndpoint(ctx, a.change.ID)
	if err != nil {
		return Done{}, err
	}
	done := Done{ID: e.ID, EndpointID: e.ID, Endpoint: &e, Adopted: true}
	wanted := prefixVisibility + a.change.Declared.Endpoint.Visibility.Value
	if e.Visibility == wanted {
		return done, nil
	}
	e, err = a.client.UpdateEndpoint(ctx, e.ID, "visibility", api.UpdateEndpoint{ETag: e.ETag, Visibility: &wanted})
	done.Adopted = false
	return done, err
}

func (a *act) deleteEndpoint(ctx context.Context) (Done, error) {
	done := Done{ID: a.change.ID, EndpointID: a.change.ID}
	e, err := a.client.GetEndpoint(ctx, a.change.ID)
	if engineclient.IsNotFound(err) {
		done.Adopted = true
		return done, nil
	}
	if err != nil {
		return done, err
	}
	if e.ActiveRolloutID != "" {
		return done, a.heldBy(ctx, e.ID)
	}
	err = a.client.DeleteEndpoint(ctx, e.ID, e.ETag)
	if engineclient.IsNotFound(err) {
		err = nil
	}
	return done, err
}

// heldBy names the rollout that holds an endpoint.
func (a *act) heldBy(ctx context.Context, endpoint string) error {
	r, _, err := a.client.ActiveRollout(ctx, endpoint)
	if err != nil {
		return err
	}
	return &Held{EndpointID: endpoint, By: r}
}
