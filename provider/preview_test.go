package provider

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func pointer[T any](v T) *T { return &v }

// pairHouse is an endpoint whose two replicas of dep_a are to move to a stopped dep_b
// on a machine of another price.
func pairHouse(t *testing.T) *toldEngine {
	t.Helper()
	e := newToldEngine(t)
	bounds := func(low, high int) api.Autoscaling { return api.Autoscaling{MinReplicas: &low, MaxReplicas: &high} }
	e.endpoints = []api.Endpoint{{ID: "ep_1", Name: "acme/chat", TrafficSplit: []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 1}}, Deployments: []api.DeploymentSummary{
		{ID: "dep_a", Name: "acme/chat/a", EstimatedEffectiveTrafficShare: 1, Autoscaling: bounds(2, 2), DesiredReplicas: 2, ReadyReplicas: 2},
		{ID: "dep_b", Name: "acme/chat/b", Autoscaling: bounds(0, 0)},
	}}}
	e.deployments["ep_1"] = []api.Deployment{
		{ID: "dep_a", EndpointID: "ep_1", Hardware: "1xa", Autoscaling: bounds(2, 2), DesiredReplicas: pointer(2), Status: api.DeploymentStatus{ReadyReplicas: 2}},
		{ID: "dep_b", EndpointID: "ep_1", Hardware: "2xb", Autoscaling: bounds(0, 0), DesiredReplicas: pointer(0)},
	}
	e.hardware = []api.InstanceType{{ID: "1xa", GPUCount: 1, PriceCentsPerHour: 100}, {ID: "2xb", GPUCount: 2, PriceCentsPerHour: 300}}
	e.preview = api.Preview{SourceReplicas: 2, Warnings: []api.Warning{}, Sluice: &api.PreviewExtra{
		PeakReplicas: 4, Feasible: true, ColdStart: api.Duration(time.Minute), Timings: wire.TimingsToAPI(rollout.DefaultTimings()), SourceRequestsPerSecond: 2,
		Ladder: []api.LadderRung{{TrafficPercent: 10, TargetReplicas: 1, SourceReplicas: 2}, {TrafficPercent: 100, TargetReplicas: 2}},
	}}
	return e
}

var askedOfPair = map[string]any{
	"endpoint_id": "ep_1", "target_deployment_id": "dep_b",
	"canary": map[string]any{"steps": []any{map[string]any{"traffic": 10}, map[string]any{"traffic": 100}}},
	"metrics": []any{map[string]any{"name": "router_latency", "stat": "PERCENTILE", "percentile": 95, "window": "60s",
		"regression_check": map[string]any{"direction": "HIGHER_IS_WORSE", "max_regression_percent": 25.0}}},
}

func TestAPreviewTellsLoadLimitsPriceAndSamples(t *testing.T) {
	e := pairHouse(t)
	got, words := newProtocol(t, e).data(t, "sluice_rollout_preview", askedOfPair)
	require.Empty(t, words)
	require.Equal(t, "dep_a", got["source_deployment_id"], "inferred")
	require.Equal(t, []any{map[string]any{"deployment_id": "dep_a", "weight": 1.0, "share": 1.0}}, got["traffic_split"])
	steps := got["journey"].([]any)
	first, last := steps[0].(map[string]any), steps[1].(map[string]any)
	require.Equal(t, []any{3.0, 4.0, 2.0}, []any{first["peak_replicas"], first["peak_gpus"], first["overlap_gpus"]}, "2 of 1 GPU and 1 of 2")
	require.Equal(t, []any{4.0, 6.0, 4.0}, []any{last["peak_replicas"], last["peak_gpus"], last["overlap_gpus"]})
	require.Equal(t, first["least_seconds"].(float64)+60, first["expected_seconds"])
	require.Equal(t, []any{6.0, 4.0}, []any{got["peak_gpus"], got["overlap_gpus"]})
	hours := first["expected_seconds"].(float64) / 3600
	require.InDelta(t, (2+4)*hours, got["overlap_gpu_hours"], 1e-6)
	require.InDelta(t, (300+600)*hours, got["overlap_cost_cents"], 1e-6, "each side at its own price")
	require.Equal(t, 100.0, got["source_hardware"].(map[string]any)["price_cents_per_hour"])
	facts := got["facts"].(map[string]any)
	require.Equal(t, facts["least_duration_seconds"].(float64)+120, facts["expected_duration_seconds"])
	require.Equal(t, []any{
		map[string]any{"side": "source", "deployment_id": "dep_a", "asked_replicas": 2.0, "final_replicas": 0.0, "min_replicas": 2.0, "max_replicas": 2.0, "desired_replicas": 2.0, "ready_replicas": 2.0, "lifts_ceiling": false},
		map[string]any{"side": "target", "deployment_id": "dep_b", "asked_replicas": 2.0, "final_replicas": 2.0, "min_replicas": 0.0, "max_replicas": 0.0, "desired_replicas": 0.0, "ready_replicas": 0.0, "lifts_ceiling": true},
	}, got["limits"])
	require.Equal(t, []any{map[string]any{"metric": "router_latency p95", "window_seconds": 60.0, "samples_needed": 20.0, "samples_expected_at_step": []any{12.0, nil}, "enough": false}}, got["gates"])
	require.Contains(t, got["summary"], "fits now, peak 4 replicas, 2 stand, at least 7m6s, 9m6s with cold starts, at most")
	require.Nil(t, got["drift"])
}

// An engine that tells nothing beyond the platform's fields leaves nulls, not errors.
func TestAPreviewOfAHostedEngineIsNullWhereItDoesNotTell(t *testing.T) {
	e := pairHouse(t)
	e.hosted, e.preview.Sluice, e.hardware = true, nil, nil
	got, words := newProtocol(t, e).data(t, "sluice_rollout_preview", askedOfPair)
	require.Empty(t, words)
	for _, name := range []string{"feasible", "shortfall", "cold_start_seconds", "requests_per_second", "peak_gpus", "overlap_gpus", "overlap_gpu_hours", "overlap_cost_cents", "hardware", "source_hardware", "drift"} {
		require.Nil(t, got[name], name)
	}
	require.Equal(t, 4.0, got["peak_replicas"], "that follows from what stands")
	step := got["journey"].([]any)[0].(map[string]any)
	require.Equal(t, 3.0, step["peak_replicas"])
	require.Nil(t, step["expected_seconds"])
	require.Equal(t, []any{map[string]any{"metric": "router_latency p95", "window_seconds": 60.0, "samples_needed": 20.0, "samples_expected_at_step": []any{nil, nil}, "enough": nil}}, got["gates"])
	require.Equal(t, 2.0, got["limits"].([]any)[0].(map[string]any)["max_replicas"])
	require.Contains(t, got["summary"], "whether it fits is not told, peak 4 replicas, 2 stand")
	require.NotNil(t, got["plan_digest"])
}
