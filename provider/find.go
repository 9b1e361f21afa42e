package provider

import (
	"context"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// The API has no way to read a deployment or a rollout without its endpoint. An id
// alone is looked for in the endpoints of the project, which costs calls: as few as
// the list of endpoints tells, and never more than mostEndpoints.

const (
	mostEndpoints       = 200              // that are asked one by one for an id
	endpointsAPage      = api.MaxPageSize  // so that a list of them is mostly one call
	embeddedDeployments = 10               // deployments that an endpoint shows: the newest
	compositeForm       = "ENDPOINT_ID/%s" // of an import that needs no search
)

// everyEndpoint lists with one call for each 500.
func (e *engine) everyEndpoint(ctx context.Context) ([]api.Endpoint, error) {
	return engineclient.Collect(e.client.Endpoints(ctx, engineclient.ListOptions{PageSize: endpointsAPage}))
}

// endpointOfDeployment finds the endpoint that has a deployment: among those that
// each endpoint shows first, then one call for each endpoint that may have more.
func (e *engine) endpointOfDeployment(ctx context.Context, id string) (string, error) {
	all, err := e.everyEndpoint(ctx)
	if err != nil {
		return "", err
	}
	var ask []string
	for _, ep := range all {
		for _, d := range ep.Deployments {
			if d.ID == id {
				return ep.ID, nil
			}
		}
		if n := len(ep.Deployments); n == 0 || n >= embeddedDeployments {
			ask = append(ask, ep.ID)
		}
	}
	return oneOf(ask, "deployment", id, func(endpoint string) error {
		_, err := e.client.GetDeployment(ctx, endpoint, id)
		return err
	})
}

// endpointOfRollout finds the endpoint that has a rollout: an open one by what the
// endpoints show, any other by one call an endpoint.
func (e *engine) endpointOfRollout(ctx context.Context, id string) (string, error) {
	all, err := e.everyEndpoint(ctx)
	if err != nil {
		return "", err
	}
	ask := make([]string, 0, len(all))
	for _, ep := range all {
		if ep.ActiveRolloutID == id {
			return ep.ID, nil
		}
		ask = append(ask, ep.ID)
	}
	return oneOf(ask, "rollout", id, func(endpoint string) error {
		_, err := e.client.GetRollout(ctx, endpoint, id)
		return err
	})
}

// oneOf asks endpoints in turn until one has the thing.
func oneOf(endpoints []string, kind, id string, has func(endpoint string) error) (string, error) {
	form := fmt.Sprintf(compositeForm, id)
	for n, endpoint := range endpoints {
		if n == mostEndpoints {
			return "", fmt.Errorf("%s %s is in none of the first %d endpoints, and no more are asked. Name its endpoint: %s", kind, id, mostEndpoints, form)
		}
		switch err := has(endpoint); {
		case err == nil:
			return endpoint, nil
		case !engineclient.IsNotFound(err):
			return "", err
		}
	}
	return "", fmt.Errorf("%s %s is in none of the project's endpoints that this key reaches. Check the id, or name its endpoint: %s", kind, id, form)
}
