package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func (s *Server) createDeployment(ctx context.Context, c *call) (any, error) {
	in, err := decode[api.CreateDeployment](c)
	if err != nil {
		return nil, err
	}
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	by, err := c.creator()
	if err != nil {
		return nil, err
	}
	spec := deploymentSpec(in)
	dry := engine.ForReal
	if c.URL.Query().Get("validateOnly") == "true" {
		dry = engine.OnlyValidate
	}
	d, err := s.Engine.CreateDeployment(ctx, by, ep.ID, spec, dry)
	if err != nil {
		return nil, err
	}
	return s.viewDeployment(ctx, d)
}

// deploymentSpec reads the names of a create: resource names carry the project and
// a revision, bare ones do not.
func deploymentSpec(in api.CreateDeployment) engine.DeploymentSpec {
	out := engine.DeploymentSpec{Name: in.Name, Autoscaling: autoscalingOf(in.Autoscaling), EnableLora: in.EnableLora}
	out.Model, out.RevisionID = splitRevision(bare(in.Model, "models"))
	if out.Model == "" {
		out.Model = in.ModelID
	}
	if out.RevisionID == "" {
		out.RevisionID = in.ModelRevisionID
	}
	if out.Config = bare(in.Config, "configs"); out.Config == "" {
		out.Config = in.ConfigID
	}
	low, high := in.Autoscaling.MinReplicas, in.Autoscaling.MaxReplicas
	switch {
	case low == nil && high == nil:
		out.Bounds = rollout.Bounds{Min: 1, Max: 1}
	case low == nil:
		out.Bounds = rollout.Bounds{Min: min(1, *high), Max: *high}
	case high == nil:
		out.Bounds = rollout.Bounds{Min: *low, Max: *low}
	default:
		out.Bounds = rollout.Bounds{Min: *low, Max: *high}
	}
	return out
}

// bare cuts "projects/{p}/{collection}/" off a resource name.
func bare(name, collection string) string {
	if !strings.HasPrefix(name, "projects/") {
		return name
	}
	if _, rest, ok := strings.Cut(name, "/"+collection+"/"); ok {
		return rest
	}
	return name
}

func splitRevision(name string) (model, revision string) {
	model, revision, _ = strings.Cut(name, "/revisions/")
	return model, revision
}

func autoscalingOf(in api.Autoscaling) rollout.Autoscaling {
	out := rollout.Autoscaling{ScaleUpWindow: span(in.ScaleUpWindow), ScaleDownWindow: span(in.ScaleDownWindow), ScaleToZeroWindow: span(in.ScaleToZeroWindow)}
	for _, m := range in.ScalingMetrics {
		out.Metrics = append(out.Metrics, rollout.ScalingMetric(m))
	}
	return out
}

func span(d *api.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	v := time.Duration(*d)
	return &v
}

func wireSpan(d *time.Duration) *api.Duration {
	if d == nil {
		return nil
	}
	v := api.Duration(*d)
	return &v
}

// deployment reads the deployment of the path.
func (s *Server) deployment(ctx context.Context, c *call) (rollout.Deployment, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return rollout.Deployment{}, err
	}
	return s.Engine.Deployment(ctx, ep.ID, c.PathValue("deployment"))
}

func (s *Server) getDeployment(ctx context.Context, c *call) (any, error) {
	d, err := s.deployment(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.viewDeployment(ctx, d)
}

func (s *Server) updateDeployment(ctx context.Context, c *call) (any, error) {
	in, err := decode[api.UpdateDeployment](c)
	if err != nil {
		return nil, err
	}
	d, err := s.deployment(ctx, c)
	if err != nil {
		return nil, err
	}
	if in.Name != nil && *in.Name != d.Name && !strings.HasSuffix(*in.Name, "/"+d.Name) {
		return nil, badRequest("name", "a deployment cannot be renamed: clients may pin it by its name")
	}
	set, err := deploymentChange(in, c.updateMask(), d.Autoscaling)
	if err != nil {
		return nil, err
	}
	if d, err = s.Engine.UpdateDeployment(ctx, c.caller(), d.EndpointID, d.ID, in.ETag, set); err != nil {
		return nil, err
	}
	return s.viewDeployment(ctx, d)
}

// deploymentChange applies an update mask, field by field: what is not named, or
// without a mask not sent, stays as it stands.
func deploymentChange(in api.UpdateDeployment, m mask, stands rollout.Autoscaling) (engine.DeploymentChange, error) {
	var set engine.DeploymentChange
	if err := m.check("name", "autoscaling.minReplicas", "autoscaling.maxReplicas", "autoscaling.scaleUpWindow", "autoscaling.scaleDownWindow", "autoscaling.scaleToZeroWindow", "autoscaling.scalingMetrics"); err != nil {
		return set, err
	}
	if in.Autoscaling == nil {
		if slices.ContainsFunc(m, func(p string) bool { return strings.HasPrefix(p, "autoscaling") }) {
			return set, badRequest("autoscaling", "updateMask names autoscaling, and the body has none")
		}
		return set, nil
	}
	a := *in.Autoscaling
	if m == nil || m.has("autoscaling.minReplicas") {
		set.Min = a.MinReplicas
	}
	if m == nil || m.has("autoscaling.maxReplicas") {
		set.Max = a.MaxReplicas
	}
	sent, next, touched := autoscalingOf(a), stands, false
	for _, f := range []struct {
		path string
		sent bool
		set  func()
	}{
		{"autoscaling.scaleUpWindow", sent.ScaleUpWindow != nil, func() { next.ScaleUpWindow = sent.ScaleUpWindow }},
		{"autoscaling.scaleDownWindow", sent.ScaleDownWindow != nil, func() { next.ScaleDownWindow = sent.ScaleDownWindow }},
		{"autoscaling.scaleToZeroWindow", sent.ScaleToZeroWindow != nil, func() { next.ScaleToZeroWindow = sent.ScaleToZeroWindow }},
		{"autoscaling.scalingMetrics", sent.Metrics != nil, func() { next.Metrics = sent.Metrics }},
	} {
		if m.has(f.path) || m == nil && f.sent {
			f.set()
			touched = true
		}
	}
	if touched {
		set.Autoscaling = &next
	}
	return set, nil
}

func (s *Server) deleteDeployment(ctx context.Context, c *call) (any, error) {
	d, err := s.deployment(ctx, c)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Engine.DeleteDeployment(ctx, c.caller(), d.EndpointID, d.ID, c.URL.Query().Get("etag"))
}

func (s *Server) listDeployments(ctx context.Context, c *call) (any, error) {
	keep, err := c.filter("name", "state", "model", "created_at", "updated_at")
	if err != nil {
		return nil, err
	}
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err := s.Engine.Store.Deployments(ctx, ep.ID)
	if err != nil {
		return nil, err
	}
	var kept []rollout.Deployment
	for _, d := range all {
		v, err := s.Engine.View(ctx, d)
		if err != nil {
			return nil, err
		}
		fields := fields{"name": d.Name, "state": deploymentState(v.State), "model": d.Model, "created_at": stamp(d.CreatedAt), "updated_at": stamp(d.UpdatedAt)}
		if keep(fields) {
			kept = append(kept, d)
		}
	}
	by, o, err := c.orderBy()
	if err != nil {
		return nil, err
	}
	items, next, err := paged(c, kept, func(d rollout.Deployment) place { return place{pick(by, d.CreatedAt, d.UpdatedAt), d.ID} }, o)
	if err != nil {
		return nil, err
	}
	return page(items, next, func(d rollout.Deployment) (api.Deployment, error) { return s.viewDeployment(ctx, d) })
}

func deploymentState(st engine.DeploymentState) string { return "DEPLOYMENT_STATE_" + string(st) }

func (s *Server) viewDeployment(ctx context.Context, d rollout.Deployment) (api.Deployment, error) {
	v, err := s.Engine.View(ctx, d)
	if err != nil {
		return api.Deployment{}, err
	}
	name := d.Name
	if ep, err := s.Engine.Endpoint(ctx, d.EndpointID); err == nil {
		name = s.Engine.QualifiedName(ep) + "/" + d.Name
	}
	out := api.Deployment{
		ID: d.ID, Name: name, EndpointID: d.EndpointID, ProjectID: d.ProjectID, Autoscaling: autoscalingTo(d),
		Config: "projects/" + d.ProjectID + "/configs/" + d.Config, ConfigID: d.Config, Hardware: d.Hardware,
		Model: d.Model, ModelID: d.ModelID, ModelRevisionID: d.RevisionID, TrafficMode: api.TrafficModeLive,
		Status:          api.DeploymentStatus{State: deploymentState(v.State), Message: v.Message, ReadyReplicas: v.Status.Ready, ScheduledReplicas: v.Status.Scheduled},
		DesiredReplicas: &v.Status.Desired, EstimatedEffectiveTrafficShare: &v.Share, EnableLora: d.EnableLora,
		ETag: rollout.ETag(d.Version), CreatedAt: api.At(d.CreatedAt), UpdatedAt: api.At(d.UpdatedAt),
	}
	if len(v.Status.Replicas) > 0 {
		out.Sluice = &api.DeploymentExtra{}
		for _, r := range v.Status.Replicas {
			out.Sluice.Replicas = append(out.Sluice.Replicas, api.ReplicaStatus{ID: r.ID, State: string(r.State), Message: r.Message, Since: api.At(r.Since)})
		}
	}
	return out, nil
}

func autoscalingTo(d rollout.Deployment) api.Autoscaling {
	low, high := d.Bounds.Min, d.Bounds.Max
	out := api.Autoscaling{MinReplicas: &low, MaxReplicas: &high, ScaleUpWindow: wireSpan(d.Autoscaling.ScaleUpWindow),
		ScaleDownWindow: wireSpan(d.Autoscaling.ScaleDownWindow), ScaleToZeroWindow: wireSpan(d.Autoscaling.ScaleToZeroWindow)}
	for _, m := range d.Autoscaling.Metrics {
		out.ScalingMetrics = append(out.ScalingMetrics, api.ScalingMetric(m))
	}
	return out
}

func (s *Server) summary(v engine.DeploymentView, ep rollout.Endpoint) api.DeploymentSummary {
	return api.DeploymentSummary{
		ID: v.ID, Name: s.Engine.QualifiedName(ep) + "/" + v.Name, State: deploymentState(v.State), Autoscaling: autoscalingTo(v.Deployment),
		CreatedAt: api.At(v.CreatedAt), Model: v.Model, ModelID: v.ModelID, TrafficMode: api.TrafficModeLive,
		EstimatedEffectiveTrafficShare: v.Share, DesiredReplicas: v.Status.Desired, ReadyReplicas: v.Status.Ready, Hardware: v.Hardware,
	}
}
