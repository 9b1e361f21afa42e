package engineclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// CreateEndpoint makes an endpoint. key makes a second try find the first.
func (c *Client) CreateEndpoint(ctx context.Context, body api.CreateEndpoint, key string) (api.Endpoint, error) {
	var out api.Endpoint
	path, err := c.inProject(ctx, "endpoints")
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodPost, Path: path, IdempotencyKey: key}, body, &out)
}

// GetEndpoint reads an endpoint.
func (c *Client) GetEndpoint(ctx context.Context, id string) (api.Endpoint, error) {
	var out api.Endpoint
	path, err := c.inProject(ctx, "endpoints", id)
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodGet, Path: path}, nil, &out)
}

// Endpoints lists the project's endpoints.
func (c *Client) Endpoints(ctx context.Context, o ListOptions) iter.Seq2[api.Endpoint, error] {
	path, err := c.inProject(ctx, "endpoints")
	if err != nil {
		return failed[api.Endpoint](err)
	}
	return pages[api.Endpoint](ctx, c, path, o.query())
}

// UpdateEndpoint changes the fields that mask names, comma-joined; empty for the
// populated ones. With an etag in the body a change in between is refused.
func (c *Client) UpdateEndpoint(ctx context.Context, id, mask string, body api.UpdateEndpoint) (api.Endpoint, error) {
	var out api.Endpoint
	path, err := c.inProject(ctx, "endpoints", id)
	if err != nil {
		return out, err
	}
	q := url.Values{}
	set(q, "updateMask", mask)
	return out, c.call(ctx, Request{Method: http.MethodPatch, Path: path, Query: q}, body, &out)
}

// DeleteEndpoint deletes an endpoint without deployments; etag may be empty.
func (c *Client) DeleteEndpoint(ctx context.Context, id, etag string) error {
	path, err := c.inProject(ctx, "endpoints", id)
	if err != nil {
		return err
	}
	q := url.Values{}
	set(q, "etag", etag)
	return c.call(ctx, Request{Method: http.MethodDelete, Path: path, Query: q}, nil, nil)
}

// maxMerges bounds how often a split edit is made again on a newer endpoint.
const maxMerges = 6

// SetWeight puts one deployment's weight into an endpoint's split and keeps the
// other entries; weight 0 takes the deployment out. The etag makes a concurrent
// edit of another entry a retry instead of a loss.
func (c *Client) SetWeight(ctx context.Context, endpoint, deployment string, weight float64) (api.Endpoint, error) {
	return c.mergeWeight(ctx, endpoint, deployment, weight, nil)
}

// BreakGlass is SetWeight although a rollout holds the split. It takes a key with the
// scope break-glass, and an engine of Sluice's own; the reason is told in the feed.
func (c *Client) BreakGlass(ctx context.Context, endpoint, deployment string, weight float64, reason string) (api.Endpoint, error) {
	return c.mergeWeight(ctx, endpoint, deployment, weight, &api.EndpointEdit{BreakGlass: &api.BreakGlass{Reason: reason}})
}

// ClaimEndpoint makes somebody the owner of an endpoint, the one who reconciles it: a
// conflict while another one is. Claiming what is one's own changes nothing. It takes the
// capability owner.
func (c *Client) ClaimEndpoint(ctx context.Context, id, owner string) (api.Endpoint, error) {
	return c.editOwner(ctx, id, api.OwnerEdit{Claim: owner})
}

// ReleaseEndpoint gives an endpoint back: a conflict when another one owns it.
func (c *Client) ReleaseEndpoint(ctx context.Context, id, owner string) (api.Endpoint, error) {
	return c.editOwner(ctx, id, api.OwnerEdit{Release: owner})
}

// TakeEndpoint claims an endpoint from its owner. It takes a key with the scope
// break-glass; the reason is told in the feed.
func (c *Client) TakeEndpoint(ctx context.Context, id, owner, reason string) (api.Endpoint, error) {
	return c.editOwner(ctx, id, api.OwnerEdit{Claim: owner, Force: &api.Force{Reason: reason}})
}

// FreeEndpoint takes an endpoint from its owner and gives it to nobody, under the terms of
// TakeEndpoint. It names another id than the owner's: a release by the owner itself would
// tell no reason.
func (c *Client) FreeEndpoint(ctx context.Context, id, reason string) (api.Endpoint, error) {
	return c.editOwner(ctx, id, api.OwnerEdit{Release: "nobody", Force: &api.Force{Reason: reason}})
}

func (c *Client) editOwner(ctx context.Context, id string, edit api.OwnerEdit) (api.Endpoint, error) {
	return c.UpdateEndpoint(ctx, id, "", api.UpdateEndpoint{Sluice: &api.EndpointEdit{Owner: &edit}})
}

func (c *Client) mergeWeight(ctx context.Context, endpoint, deployment string, weight float64, edit *api.EndpointEdit) (api.Endpoint, error) {
	for try := 1; ; try++ {
		e, err := c.GetEndpoint(ctx, endpoint)
		if err != nil {
			return api.Endpoint{}, err
		}
		split, same := withWeight(e.TrafficSplit, deployment, weight)
		if same {
			return e, nil
		}
		e, err = c.UpdateEndpoint(ctx, endpoint, "trafficSplit", api.UpdateEndpoint{ETag: e.ETag, TrafficSplit: &split, Sluice: edit})
		if !IsStale(err) || try >= maxMerges {
			return e, err
		}
	}
}

// withWeight returns the split with one entry set, and whether it was so already.
func withWeight(split []api.TrafficWeight, deployment string, weight float64) ([]api.TrafficWeight, bool) {
	out := slices.Clone(split)
	at := slices.IndexFunc(out, func(w api.TrafficWeight) bool { return w.DeploymentID == deployment })
	switch {
	case at < 0 && weight == 0:
		return out, true
	case at < 0:
		return append(out, api.TrafficWeight{DeploymentID: deployment, Weight: weight}), false
	case weight == 0:
		return slices.Delete(out, at, at+1), false
	case out[at].Weight == weight:
		return out, true
	}
	out[at].Weight = weight
	return out, false
}
