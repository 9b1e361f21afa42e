package engineclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// CreateDeployment makes a deployment. key makes a second try find the first.
func (c *Client) CreateDeployment(ctx context.Context, endpoint string, body api.CreateDeployment, key string) (api.Deployment, error) {
	var out api.Deployment
	path, err := c.inProject(ctx, "endpoints", endpoint, "deployments")
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodPost, Path: path, IdempotencyKey: key}, body, &out)
}

// GetDeployment reads a deployment.
func (c *Client) GetDeployment(ctx context.Context, endpoint, id string) (api.Deployment, error) {
	var out api.Deployment
	path, err := c.inProject(ctx, "endpoints", endpoint, "deployments", id)
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodGet, Path: path}, nil, &out)
}

// Deployments lists an endpoint's deployments, all of them: the endpoint itself
// embeds the ten newest only.
func (c *Client) Deployments(ctx context.Context, endpoint string, o ListOptions) iter.Seq2[api.Deployment, error] {
	path, err := c.inProject(ctx, "endpoints", endpoint, "deployments")
	if err != nil {
		return failed[api.Deployment](err)
	}
	return pages[api.Deployment](ctx, c, path, o.query())
}

// UpdateDeployment changes the fields that mask names, comma-joined and dotted;
// empty for the populated ones.
func (c *Client) UpdateDeployment(ctx context.Context, endpoint, id, mask string, body api.UpdateDeployment) (api.Deployment, error) {
	var out api.Deployment
	path, err := c.inProject(ctx, "endpoints", endpoint, "deployments", id)
	if err != nil {
		return out, err
	}
	q := url.Values{}
	set(q, "updateMask", mask)
	return out, c.call(ctx, Request{Method: http.MethodPatch, Path: path, Query: q}, body, &out)
}

// DeleteDeployment deletes a stopped deployment that has no weight; etag may be
// empty.
func (c *Client) DeleteDeployment(ctx context.Context, endpoint, id, etag string) error {
	path, err := c.inProject(ctx, "endpoints", endpoint, "deployments", id)
	if err != nil {
		return err
	}
	q := url.Values{}
	set(q, "etag", etag)
	return c.call(ctx, Request{Method: http.MethodDelete, Path: path, Query: q}, nil, nil)
}
