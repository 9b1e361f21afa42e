package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func (s *Server) createEndpoint(ctx context.Context, c *call) (any, error) {
	in, err := decode[api.CreateEndpoint](c)
	if err != nil {
		return nil, err
	}
	visibility, err := checkVisibility(in.Visibility)
	if err != nil {
		return nil, err
	}
	by, err := c.creator()
	if err != nil {
		return nil, err
	}
	ep, err := s.Engine.CreateEndpoint(ctx, by, in.Name, visibility)
	if err != nil {
		return nil, err
	}
	return s.viewEndpoint(ctx, ep)
}

func checkVisibility(v string) (string, error) {
	switch v {
	case "":
		return api.VisibilityPrivate, nil
	case api.VisibilityPrivate, api.VisibilityInternal:
		return v, nil
	}
	return "", badRequest("visibility", fmt.Sprintf("visibility %q is unknown; use %s or %s", v, api.VisibilityPrivate, api.VisibilityInternal))
}

func (s *Server) getEndpoint(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.viewEndpoint(ctx, ep)
}

// endpoint reads the endpoint of the path; the id or the (qualified) name will do.
func (s *Server) endpoint(ctx context.Context, c *call) (rollout.Endpoint, error) {
	ep, err := s.Engine.Endpoint(ctx, c.PathValue("endpoint"))
	if err == nil && ep.ProjectID != c.key.ProjectID {
		return ep, notFound("endpoint", ep.ID)
	}
	return ep, err
}

func (s *Server) updateEndpoint(ctx context.Context, c *call) (any, error) {
	in, err := decode[api.UpdateEndpoint](c)
	if err != nil {
		return nil, err
	}
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	set, err := endpointChange(in, c.updateMask())
	if err != nil {
		return nil, err
	}
	if in.Name != nil && *in.Name != ep.Name && *in.Name != s.Engine.QualifiedName(ep) {
		return nil, badRequest("name", "an endpoint cannot be renamed: clients call it by its name")
	}
	if in.Sluice != nil && in.Sluice.Owner != nil {
		return s.changeOwner(ctx, c, ep, in, set)
	}
	if in.Sluice != nil && in.Sluice.BreakGlass != nil {
		if err := mayBreakGlass(c.key); err != nil {
			return nil, err
		}
		set.BreakGlass = &engine.BreakGlass{Reason: in.Sluice.BreakGlass.Reason}
	}
	ep, err = s.Engine.UpdateEndpoint(ctx, c.caller(), ep.ID, in.ETag, set)
	if err != nil {
		return nil, err
	}
	return s.viewEndpoint(ctx, ep)
}

// changeOwner claims or releases an endpoint, and does nothing else in the same request.
func (s *Server) changeOwner(ctx context.Context, c *call, ep rollout.Endpoint, in api.UpdateEndpoint, set engine.EndpointChange) (any, error) {
	if set.Split != nil || set.Visibility != nil || in.Sluice.BreakGlass != nil {
		return nil, badRequest("sluice.owner", "an owner is changed alone; send the other fields in a request of their own")
	}
	change := engine.OwnerChange{Claim: in.Sluice.Owner.Claim, Release: in.Sluice.Owner.Release}
	if f := in.Sluice.Owner.Force; f != nil {
		if err := mayBreakGlass(c.key); err != nil {
			return nil, err
		}
		change.Force = &engine.Force{Reason: f.Reason}
	}
	ep, err := s.Engine.ChangeOwner(ctx, c.caller(), ep.ID, in.ETag, change)
	if err != nil {
		return nil, err
	}
	return s.viewEndpoint(ctx, ep)
}

// mayBreakGlass refuses a key without the scope of its own that an edit of a locked
// split, or of another's ownership, takes; an administrator's key does not have it either.
func mayBreakGlass(key rollout.Key) error {
	if key.Allows(rollout.ScopeBreakGlass) {
		return nil
	}
	return &api.Error{Status: http.StatusForbidden, Code: api.CodePermissionDenied, Message: "key " + key.Name + " lacks the scope " + string(rollout.ScopeBreakGlass) + ", which no other scope includes; make a key for it with: sluice keys create NAME --scopes operate,break-glass"}
}

// endpointChange applies an update mask: without one the populated fields are set,
// with one exactly the named ones, absent meaning empty.
func endpointChange(in api.UpdateEndpoint, m mask) (engine.EndpointChange, error) {
	var set engine.EndpointChange
	if err := m.check("name", "visibility", "trafficSplit"); err != nil {
		return set, err
	}
	if m.has("visibility") || m == nil && in.Visibility != nil {
		v := ""
		if in.Visibility != nil {
			v = *in.Visibility
		}
		v, err := checkVisibility(v)
		if err != nil {
			return set, err
		}
		set.Visibility = &v
	}
	if m.has("trafficSplit") || m == nil && in.TrafficSplit != nil && len(*in.TrafficSplit) > 0 {
		split := []rollout.Weight{}
		if in.TrafficSplit != nil {
			for _, w := range *in.TrafficSplit {
				split = append(split, rollout.Weight{Deployment: w.DeploymentID, Weight: w.Weight})
			}
		}
		set.Split = &split
	}
	return set, nil
}

func (s *Server) deleteEndpoint(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Engine.DeleteEndpoint(ctx, c.caller(), ep.ID, c.URL.Query().Get("etag"))
}

func (s *Server) listEndpoints(ctx context.Context, c *call) (any, error) {
	keep, err := c.filter("name", "visibility", "created_at", "updated_at")
	if err != nil {
		return nil, err
	}
	return s.endpoints(ctx, c, func(ep rollout.Endpoint) bool { return ep.ProjectID == c.key.ProjectID && keep(fieldsOf(ep)) })
}

func fieldsOf(ep rollout.Endpoint) fields {
	return fields{"name": ep.Name, "visibility": ep.Visibility, "created_at": stamp(ep.CreatedAt), "updated_at": stamp(ep.UpdatedAt)}
}

// endpoints is a page of those that are kept.
func (s *Server) endpoints(ctx context.Context, c *call, keep func(rollout.Endpoint) bool) (any, error) {
	all, err := s.Engine.Store.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	var mine []rollout.Endpoint
	for _, ep := range all {
		if keep(ep) {
			mine = append(mine, ep)
		}
	}
	by, o, err := c.orderBy()
	if err != nil {
		return nil, err
	}
	items, next, err := paged(c, mine, func(ep rollout.Endpoint) place {
		return place{pick(by, ep.CreatedAt, ep.UpdatedAt), ep.ID}
	}, o)
	if err != nil {
		return nil, err
	}
	return page(items, next, func(ep rollout.Endpoint) (api.Endpoint, error) { return s.viewEndpoint(ctx, ep) })
}

// listOrganization lists what the organization shares; this engine has one.
func (s *Server) listOrganization(ctx context.Context, c *call) (any, error) {
	if c.PathValue("organization") != s.Engine.Project.Organization {
		return nil, notFound("organization", c.PathValue("organization"))
	}
	keep, err := c.filter("name", "visibility", "created_at", "updated_at")
	if err != nil {
		return nil, err
	}
	return s.endpoints(ctx, c, func(ep rollout.Endpoint) bool { return ep.Visibility == api.VisibilityInternal && keep(fieldsOf(ep)) })
}

func pick(by updateOrder, created, updated time.Time) time.Time {
	if by == byChange {
		return updated
	}
	return created
}

// embedded is how many deployments an endpoint shows; all of them are in the
// deployments list.
const embedded = 10

func (s *Server) viewEndpoint(ctx context.Context, ep rollout.Endpoint) (api.Endpoint, error) {
	deployments, err := s.Engine.Store.Deployments(ctx, ep.ID)
	if err != nil {
		return api.Endpoint{}, err
	}
	out := api.Endpoint{
		ID: ep.ID, Name: s.Engine.QualifiedName(ep), ProjectID: ep.ProjectID, EndpointType: api.EndpointDedicated,
		Visibility: ep.Visibility, TrafficSplit: []api.TrafficWeight{}, Deployments: []api.DeploymentSummary{},
		ActiveRolloutID: ep.ActiveRollout, ETag: rollout.ETag(ep.Version), CreatedAt: api.At(ep.CreatedAt), UpdatedAt: api.At(ep.UpdatedAt),
		Sluice: &api.EndpointExtra{GatewayURL: s.GatewayURL},
	}
	if ep.Owner != nil {
		out.Sluice.Owner = &api.Owner{ID: ep.Owner.ID, At: api.At(ep.Owner.At)}
	}
	for _, w := range s.Engine.EffectiveSplit(ctx, ep) {
		out.TrafficSplit = append(out.TrafficSplit, api.TrafficWeight{DeploymentID: w.Deployment, Weight: w.Weight})
	}
	rps, ids := 0.0, make([]string, 0, len(deployments))
	for _, d := range deployments {
		ids = append(ids, d.ID)
	}
	rates := s.Engine.Rates(time.Minute, ids...)
	for i, d := range deployments {
		v, err := s.Engine.View(ctx, d)
		if err != nil {
			return out, err
		}
		rate := rates[i]
		rps += rate.PerSecond
		out.Sluice.Serving = append(out.Sluice.Serving, api.ServedPart{DeploymentID: d.ID, SetShare: v.Share, Requests: rate.Requests, ReadyReplicas: v.Status.Ready})
		if i < embedded {
			out.Deployments = append(out.Deployments, s.summary(v, ep))
		}
	}
	out.Sluice.RequestsPerSecond = &rps
	return out, nil
}
