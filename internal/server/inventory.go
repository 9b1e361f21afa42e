package server

import (
	"context"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func (s *Server) whoami(_ context.Context, c *call) (any, error) {
	p := s.Engine.Project
	t := wire.TimingsToAPI(s.Engine.Timings)
	scopes := make([]string, 0, len(c.key.Scopes))
	for _, sc := range c.key.Scopes {
		scopes = append(scopes, string(sc))
	}
	return api.WhoAmI{
		APIKeyID: c.key.ID, OrganizationID: p.Organization, OrganizationName: p.Organization,
		ProjectID: p.ID, ProjectName: p.Name, ProjectSlug: p.Slug,
		Sluice: &api.WhoAmIExtra{Version: s.Version, Capabilities: capabilities(), Scopes: scopes, Timings: &t},
	}, nil
}

// capabilities are what this engine can do beyond the platform.
func capabilities() []string {
	return []string{"event-stream", "idempotency-keys", "keys", "spec-echo", api.CapabilityHoldSource, api.CapabilityCircuitBreaker, api.CapabilityBreakGlass, api.CapabilityOwner}
}

// none answers a list of something that this engine never has.
func (s *Server) none(_ context.Context, _ *call) (any, error) {
	return api.Page[struct{}]{Object: "list", Data: []struct{}{}}, nil
}

func (s *Server) listHardware(ctx context.Context, c *call) (any, error) {
	all, err := s.Engine.Fleet.Hardware(ctx)
	if err != nil {
		return nil, err
	}
	out := api.Page[api.InstanceType]{Object: "list", Data: []api.InstanceType{}}
	for _, h := range all {
		out.Data = append(out.Data, instanceType(h))
	}
	return out, nil
}

func (s *Server) getHardware(ctx context.Context, c *call) (any, error) {
	all, err := s.Engine.Fleet.Hardware(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(h rollout.Hardware) bool { return h.ID == c.PathValue("id") })
	if i < 0 {
		return nil, notFound("instance type", c.PathValue("id"))
	}
	return instanceType(all[i]), nil
}

func instanceType(h rollout.Hardware) api.InstanceType {
	region := api.Region{Name: h.Region}
	if region.Name == "" {
		region.Name = "local"
	}
	if h.Free >= 0 {
		free := h.Free
		region.Headroom = &api.Headroom{Relation: "RELATION_EQ", Value: &free}
	}
	extra := &api.InstanceExtra{}
	if h.Capacity >= 0 {
		extra.Capacity = &h.Capacity
	}
	return api.InstanceType{
		Sluice: extra, ID: h.ID, Name: h.Name, Description: h.Description, GPUType: h.GPUType, GPUCount: h.GPUCount,
		GPUMemoryGiB: h.GPUMemoryGiB, PriceCentsPerHour: h.PriceCentsPerHour, Regions: []api.Region{region},
	}
}

func (s *Server) listConfigs(_ context.Context, c *call) (any, error) {
	v := c.URL.Query()
	model := bare(v.Get("referenceModel"), "models")
	if model == "" {
		model = v.Get("referenceModelId")
	}
	out := api.Page[api.Config]{Object: "list", Data: []api.Config{}}
	for _, sc := range s.Engine.Serving {
		if model == "" || sc.Serves(model) {
			out.Data = append(out.Data, s.config(sc))
		}
	}
	return out, nil
}

func (s *Server) getConfig(_ context.Context, c *call) (any, error) {
	for _, sc := range s.Engine.Serving {
		if sc.ID == c.PathValue("id") {
			return s.config(sc), nil
		}
	}
	return nil, notFound("config", c.PathValue("id"))
}

func (s *Server) config(sc rollout.ServingConfig) api.Config {
	reference := ""
	if len(sc.Models) > 0 {
		reference = sc.Models[0]
	}
	return api.Config{
		ID: sc.ID, Name: sc.Name, ProjectID: s.Engine.Project.ID, ReferenceModel: reference, ReferenceModelID: reference,
		Selectors: []api.Selector{{Key: "accelerator_type", Value: sc.Hardware}}, Certifications: []string{},
		Sluice: &api.ConfigExtra{Models: sc.Models},
	}
}

func (s *Server) listKeys(ctx context.Context, _ *call) (any, error) {
	keys, err := s.Engine.Store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return page(keys, nil, func(k rollout.Key) (api.Key, error) { return viewKey(k), nil })
}

func (s *Server) createKey(ctx context.Context, c *call) (any, error) {
	in, err := decode[api.CreateKey](c)
	if err != nil {
		return nil, err
	}
	scopes := make([]rollout.Scope, 0, len(in.Scopes))
	for _, sc := range in.Scopes {
		scopes = append(scopes, rollout.Scope(sc))
	}
	k, secret, err := s.Engine.NewKey(in.Name, scopes)
	if err != nil {
		return nil, err
	}
	if err := s.Engine.SaveKey(ctx, k); err != nil {
		return nil, err
	}
	out := viewKey(k)
	out.Secret = secret
	return out, nil
}

func (s *Server) deleteKey(ctx context.Context, c *call) (any, error) {
	return struct{}{}, s.Engine.DeleteKey(ctx, c.PathValue("id"))
}

func viewKey(k rollout.Key) api.Key {
	out := api.Key{ID: k.ID, Name: k.Name, ProjectID: k.ProjectID, CreatedAt: api.At(k.CreatedAt)}
	for _, sc := range k.Scopes {
		out.Scopes = append(out.Scopes, string(sc))
	}
	return out
}
