package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// findEndpoint reads an endpoint by id, name or qualified name.
func findEndpoint(ctx context.Context, c *engineclient.Client, ref string) (api.Endpoint, error) {
	if strings.HasPrefix(ref, "ep_") {
		return c.GetEndpoint(ctx, ref)
	}
	for ep, err := range c.Endpoints(ctx, engineclient.ListOptions{}) {
		if err != nil {
			return ep, err
		}
		if ep.Name == ref || strings.HasSuffix(ep.Name, "/"+ref) {
			return ep, nil
		}
	}
	return api.Endpoint{}, &absentError{fmt.Sprintf("no endpoint %q; \"sluice ls\" lists them", ref)}
}

// absentError is a name that stands for nothing.
type absentError struct{ message string }

func (e *absentError) Error() string { return e.message }

// findDeployment reads a deployment by id or name, looking through all endpoints. A
// short name that several deployments have is refused: a guess would change another
// endpoint's.
func findDeployment(ctx context.Context, c *engineclient.Client, ref string) (api.Deployment, error) {
	var named []api.Deployment
	for ep, err := range c.Endpoints(ctx, engineclient.ListOptions{}) {
		if err != nil {
			return api.Deployment{}, err
		}
		for d, err := range c.Deployments(ctx, ep.ID, engineclient.ListOptions{}) {
			if err != nil {
				return d, err
			}
			if d.ID == ref || d.Name == ref {
				return d, nil
			}
			if strings.HasSuffix(d.Name, "/"+ref) {
				named = append(named, d)
			}
		}
	}
	if len(named) == 1 {
		return named[0], nil
	}
	if len(named) > 1 {
		names := make([]string, 0, len(named))
		for _, d := range named {
			names = append(names, d.Name)
		}
		return api.Deployment{}, usagef("several deployments are called %q: give one of %s", ref, strings.Join(names, ", "))
	}
	return api.Deployment{}, &absentError{fmt.Sprintf("no deployment %q; \"sluice get ENDPOINT\" lists an endpoint's", ref)}
}

// thing is what an id or name stands for: one of the three, unless several says that
// an endpoint and a deployment have the name.
type thing struct {
	endpoint   *api.Endpoint
	deployment *api.Deployment
	rollout    *api.Rollout
	several    bool
}

// findThing reads whatever an id or a name stands for.
func findThing(ctx context.Context, c *engineclient.Client, ref string) (thing, error) {
	switch {
	case strings.HasPrefix(ref, "rol_"):
		r, err := findRollout(ctx, c, ref)
		return thing{rollout: &r}, err
	case strings.HasPrefix(ref, "dep_") || strings.Count(ref, "/") == 2:
		d, err := findDeployment(ctx, c, ref)
		return thing{deployment: &d}, err
	case strings.HasPrefix(ref, "ep_"):
		ep, err := c.GetEndpoint(ctx, ref)
		return thing{endpoint: &ep}, err
	}
	var t thing
	var absent *absentError
	if ep, err := findEndpoint(ctx, c, ref); err == nil {
		t.endpoint = &ep
	} else if !errors.As(err, &absent) {
		return t, err
	}
	d, err := findDeployment(ctx, c, ref)
	switch {
	case err == nil:
		t.deployment, t.several = &d, t.endpoint != nil
	case t.endpoint == nil && errors.As(err, &absent):
		return t, &absentError{fmt.Sprintf("no endpoint and no deployment %q; \"sluice ls\" lists the endpoints, \"sluice get ENDPOINT\" an endpoint's deployments", ref)}
	case t.endpoint == nil:
		return t, err
	}
	return t, nil // a name that an endpoint has is the endpoint's, whatever deployments have it
}

// findRollout reads a rollout by its id, or the one that an endpoint's id, name or
// a deployment's id or name stands for: the active one, else the newest.
func findRollout(ctx context.Context, c *engineclient.Client, ref string) (api.Rollout, error) {
	if strings.HasPrefix(ref, "rol_") {
		return scanRollout(ctx, c, ref)
	}
	endpoint := ref
	if !strings.HasPrefix(ref, "ep_") {
		t, err := findThing(ctx, c, ref)
		switch {
		case err != nil:
			return api.Rollout{}, err
		case t.endpoint != nil:
			endpoint = t.endpoint.ID
		default:
			endpoint = t.deployment.EndpointID
		}
	}
	if r, ok, err := c.ActiveRollout(ctx, endpoint); err != nil || ok {
		return r, err
	}
	for r, err := range c.Rollouts(ctx, endpoint, "") {
		return r, err
	}
	return api.Rollout{}, fmt.Errorf("endpoint %s has had no rollout", ref)
}

func scanRollout(ctx context.Context, c *engineclient.Client, id string) (api.Rollout, error) {
	for ep, err := range c.Endpoints(ctx, engineclient.ListOptions{}) {
		if err != nil {
			return api.Rollout{}, err
		}
		r, err := c.GetRollout(ctx, ep.ID, id)
		if err == nil || !engineclient.IsNotFound(err) {
			return r, err
		}
	}
	return api.Rollout{}, fmt.Errorf("no rollout %s in this project", id)
}
