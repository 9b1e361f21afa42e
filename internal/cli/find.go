package cli

import (
	"context"
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
	return api.Deployment{}, fmt.Errorf("no deployment %q; \"sluice get ENDPOINT\" lists an endpoint's", ref)
}

// findRollout reads a rollout by its id, or the one that an endpoint's id, name or
// a deployment's id stands for: the active one, else the newest.
func findRollout(ctx context.Context, c *engineclient.Client, ref string) (api.Rollout, error) {
	if strings.HasPrefix(ref, "rol_") {
		return scanRollout(ctx, c, ref)
	}
	endpoint := ref
	if strings.HasPrefix(ref, "dep_") {
		d, err := findDeployment(ctx, c, ref)
		if err != nil {
			return api.Rollout{}, err
		}
		endpoint = d.EndpointID
	} else if !strings.HasPrefix(ref, "ep_") {
		ep, err := findEndpoint(ctx, c, ref)
		if err != nil {
			return api.Rollout{}, err
		}
		endpoint = ep.ID
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
