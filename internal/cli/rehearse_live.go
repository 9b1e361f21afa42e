package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rehearsal"
)

// liveFacts asks an engine what stands: replicas, bounds and shares of the endpoint's
// deployments, what fits on their hardware, its traffic, and the engine's waits. notes
// say what it could not tell.
func (a *app) liveFacts(ctx context.Context, set declaration.Set, r declaration.Rollout) (rehearsal.Facts, []string, error) {
	c, err := a.client()
	if err != nil {
		return rehearsal.Facts{}, nil, err
	}
	f := rehearsal.Facts{From: "the engine at " + c.URL(), Deployments: map[string]rehearsal.DeploymentFacts{}, Hardware: map[string]rehearsal.PoolFacts{}}
	who, err := c.WhoAmI(ctx)
	if err != nil {
		return f, nil, err
	}
	var notes []string
	if x := who.Sluice; x != nil && x.Timings != nil {
		f.Timings = rehearsal.TimingsOf(*x.Timings)
	} else {
		notes = append(notes, "this engine does not tell its waits: the published ones are played")
	}
	ep, err := rehearsedEndpoint(ctx, c, set, r)
	var absent *absentError
	if errors.As(err, &absent) { // before the first apply
		return f, append(notes, "the endpoint does not stand yet: what is declared is played"), hardwareFacts(ctx, c, f)
	}
	if err != nil {
		return f, nil, err
	}
	if f.Holder = ep.ActiveRolloutID; f.Holder != "" {
		notes = append(notes, heldNote(f.Holder))
	}
	if ep.Sluice != nil {
		f.EndpointRate = ep.Sluice.RequestsPerSecond
	}
	for d, err := range c.Deployments(ctx, ep.ID, engineclient.ListOptions{}) {
		if err != nil {
			return f, nil, err
		}
		f.Deployments[declaredName(set, ep, d)] = deploymentFacts(d)
	}
	if err := budgets(ctx, c, set, ep, f); err != nil {
		return f, nil, err
	}
	measured, err := a.measured(ctx, c, set, ep, f)
	if err != nil {
		notes = append(notes, "this engine does not tell latencies: "+err.Error())
	} else if measured < len(f.Deployments) {
		notes = append(notes, fmt.Sprintf("latencies of %d of %d deployments of %s are known from their own traffic", measured, len(f.Deployments), ep.Name))
	}
	return f, notes, hardwareFacts(ctx, c, f)
}

// heldNote says that a rollout stands in the way of the one that is rehearsed.
func heldNote(id string) string {
	return fmt.Sprintf("rollout %s holds the endpoint: this one is rehearsed from where the split stands now", id)
}

// budgets puts in how long the cold start of each deployment may take, which an engine
// tells in a preview with it as the target. One that tells none leaves it unknown, and so do
// deployments beyond those that an endpoint lists.
func budgets(ctx context.Context, c *engineclient.Client, set declaration.Set, ep api.Endpoint, f rehearsal.Facts) error {
	for _, target := range ep.Deployments {
		for _, source := range ep.Deployments {
			if source.ID == target.ID {
				continue
			}
			p, err := c.PreviewRollout(ctx, ep.ID, api.RolloutSpec{SourceDeploymentID: source.ID, TargetDeploymentID: target.ID, BlueGreen: &api.BlueGreen{}})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			name := declaredName(set, ep, api.Deployment{ID: target.ID, Name: target.Name})
			if known, ok := f.Deployments[name]; ok && err == nil && p.Sluice != nil && p.Sluice.ColdStart > 0 {
				budget := time.Duration(p.Sluice.ColdStart)
				known.Budget = &budget
				f.Deployments[name] = known
			}
			break
		}
	}
	return nil
}

// rehearsedEndpoint is the endpoint of a declared rollout, as it stands.
func rehearsedEndpoint(ctx context.Context, c *engineclient.Client, set declaration.Set, r declaration.Rollout) (api.Endpoint, error) {
	if r.Endpoint.ID != "" {
		return c.GetEndpoint(ctx, r.Endpoint.ID)
	}
	for _, e := range set.Endpoints {
		if r.Endpoint.To != nil && r.Endpoint.To.Address == e.Address {
			return findEndpoint(ctx, c, e.Name.Value)
		}
	}
	return api.Endpoint{}, fmt.Errorf("%s: its endpoint_id follows from what is not read here, such as a data source; take it from a variable and give that: --var endpoint_id=ep_…", r.Address)
}

// declaredName is a deployment's address where it is declared, else its id.
func declaredName(set declaration.Set, ep api.Endpoint, d api.Deployment) string {
	for _, have := range set.Deployments {
		if ep.Name+"/"+have.Name.Value == d.Name {
			return have.Address.String()
		}
	}
	return d.ID
}

// deploymentFacts counts replicas up to the floor as there: those that are still on their
// way stand when the rollout begins.
func deploymentFacts(d api.Deployment) rehearsal.DeploymentFacts {
	replicas := d.Status.ReadyReplicas
	if low := d.Autoscaling.MinReplicas; low != nil {
		replicas = max(replicas, *low)
	}
	share := 0.0
	if d.EstimatedEffectiveTrafficShare != nil {
		share = *d.EstimatedEffectiveTrafficShare
	}
	return rehearsal.DeploymentFacts{
		Replicas: &replicas, Min: d.Autoscaling.MinReplicas, Max: d.Autoscaling.MaxReplicas, EndpointShare: &share, Hardware: d.Hardware,
	}
}

// lookBack is how far back latencies are asked for.
const lookBack = time.Hour

// fewest requests from which a latency is taken.
const fewest = 20

// measured puts in the latencies and error rates of deployments with traffic, and counts
// them.
func (a *app) measured(ctx context.Context, c *engineclient.Client, set declaration.Set, ep api.Endpoint, f rehearsal.Facts) (int, error) {
	now := time.Now()
	all, err := c.Analytics(ctx, ep.ID, now.Add(-lookBack), now)
	if err != nil {
		return 0, err
	}
	names := map[string]string{}
	for d, err := range c.Deployments(ctx, ep.ID, engineclient.ListOptions{}) {
		if err != nil {
			return 0, err
		}
		names[d.ID] = declaredName(set, ep, d)
	}
	count := 0
	for _, d := range all.DeploymentAnalytics {
		m := d.Metrics
		var requests int
		if _, err := fmt.Sscanf(m.RequestMetrics.TotalRequests, "%d", &requests); err != nil || requests < fewest || m.LatencyMetrics == nil {
			continue
		}
		curve, err := rehearsal.ParseCurve(fmt.Sprintf("p50=%.3fms p99=%.3fms", m.LatencyMetrics.LatencyP50Ms, m.LatencyMetrics.LatencyP99Ms))
		known, ok := f.Deployments[names[d.DeploymentID]]
		if err != nil || !ok {
			continue
		}
		known.Latency, known.ErrorRate = &curve, &m.ErrorMetrics.ErrorRate
		f.Deployments[names[d.DeploymentID]] = known
		count++
	}
	return count, nil
}

// hardwareFacts puts in what fits beside what runs.
func hardwareFacts(ctx context.Context, c *engineclient.Client, f rehearsal.Facts) error {
	for h, err := range c.Hardware(ctx) {
		if err != nil {
			return err
		}
		p := rehearsal.PoolFacts{GPUs: &h.GPUCount}
		free, told := 0, false
		for _, region := range h.Regions {
			if room := region.Headroom; room != nil && room.Relation == "RELATION_EQ" && room.Value != nil {
				free, told = free+*room.Value, true
			}
		}
		if told {
			p.Free = &free
		}
		f.Hardware[h.ID] = p
	}
	return nil
}
