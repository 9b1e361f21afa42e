package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

func TestDataEndpointByIDAndByName(t *testing.T) {
	e := twoEndpoints(t)
	rps := 2.5
	e.endpoints[0].Sluice = &api.EndpointExtra{GatewayURL: "http://gateway", RequestsPerSecond: &rps, Serving: []api.ServedPart{
		{DeploymentID: "dep_a", SetShare: 0.9, Requests: 85, ReadyReplicas: 2}, {DeploymentID: "dep_b", SetShare: 0.1, Requests: 15, ReadyReplicas: 1},
	}}
	p := newProtocol(t, e)
	e.asked()
	byID, words := p.data(t, "sluice_endpoint", map[string]any{"id": "ep_1"})
	require.Empty(t, words)
	require.Equal(t, []string{"GET /endpoints/ep_1", "GET /endpoints/ep_1/rollouts/rol_2"}, e.asked())
	require.Equal(t, "chat", byID["name"])
	require.Equal(t, 2.5, byID["requests_per_second"])
	require.Equal(t, []any{map[string]any{"deployment_id": "dep_a", "weight": 1.0}}, byID["traffic_split"], "weight 0 is equal to absent")
	require.Equal(t, map[string]any{"deployment_id": "dep_a", "set_share": 0.9, "actual_share": 0.85, "requests": 85.0, "ready_replicas": 2.0}, byID["serving"].([]any)[0])
	require.Equal(t, map[string]any{"rollout_id": "rol_2", "state": "SYSTEM_PAUSED", "source_deployment_id": "dep_a", "target_deployment_id": "dep_b", "traffic_percent": 10.0}, byID["active_rollout"])
	require.Len(t, byID["deployments"], 3)
	for _, name := range []string{"chat", "acme/chat"} {
		byName, words := p.data(t, "sluice_endpoint", map[string]any{"name": name})
		require.Empty(t, words)
		require.Equal(t, []string{"GET /endpoints?limit=500", "GET /endpoints/ep_1/rollouts/rol_2"}, e.asked())
		byName["name"] = "chat"
		require.Equal(t, byID, byName)
	}
	_, words = p.data(t, "sluice_endpoint", map[string]any{"name": "nowhere"})
	require.Contains(t, words, `has the name "nowhere"`)
	_, words = p.data(t, "sluice_endpoint", map[string]any{"name": "chat", "id": "ep_1"})
	require.Contains(t, words, "Invalid Attribute Combination")
	_, words = p.data(t, "sluice_endpoint", map[string]any{"id": "ep_9"})
	require.Contains(t, words, "HTTP 404")
}

// A hosted engine does not say what only ours says: null, and no error.
func TestDataOfAHostedEngineIsNullWhereItDoesNotTell(t *testing.T) {
	e := twoEndpoints(t)
	e.hosted = true
	e.hardware = []api.InstanceType{{ID: "1xh100", GPUCount: 1, Regions: []api.Region{{Name: "eu"}}}}
	e.events = []api.Event{{ID: "ev_1", Type: "rollout.started", Level: "LEVEL_INFO"}}
	p := newProtocol(t, e)
	for name, c := range map[string]struct {
		config map[string]any
		null   []string
	}{
		"sluice_endpoint":   {map[string]any{"id": "ep_1"}, []string{"gateway_url", "requests_per_second", "serving"}},
		"sluice_deployment": {map[string]any{"endpoint_id": "ep_1", "id": "dep_a"}, []string{"replicas", "desired_replicas", "traffic_share", "message"}},
		"sluice_rollout":    {map[string]any{"endpoint_id": "ep_1"}, []string{"phase", "next_event", "next_at", "wait_seconds", "actual_share", "spec_digest", "origin", "condition"}},
	} {
		got, words := p.data(t, name, c.config)
		require.Empty(t, words)
		for _, attribute := range c.null {
			require.Contains(t, got, attribute)
			require.Nil(t, got[attribute], "%s.%s", name, attribute)
		}
	}
	hardware, words := p.data(t, "sluice_hardware", nil)
	require.Empty(t, words)
	entry := hardware["types"].([]any)[0].(map[string]any)
	require.Nil(t, entry["capacity"])
	require.Nil(t, entry["free"])
	require.Nil(t, entry["free_is_exact"])
	events, words := p.data(t, "sluice_events", map[string]any{"endpoint_id": "ep_1"})
	require.Empty(t, words)
	event := events["events"].([]any)[0].(map[string]any)
	require.Nil(t, event["actor"])
	require.Nil(t, event["paths"], "no edit is not an edit of nothing")
}

// An endpoint shows the ten newest deployments only; the data source has all.
func TestDataEndpointWithManyDeploymentsListsThemAll(t *testing.T) {
	e := twoEndpoints(t)
	ep := &e.endpoints[1]
	for i := range 12 {
		d := api.Deployment{ID: fmt.Sprintf("dep_%d", i), Name: fmt.Sprintf("acme/embed/d%d", i), EndpointID: "ep_2"}
		e.deployments["ep_2"] = append(e.deployments["ep_2"], d)
		if i < embeddedDeployments {
			ep.Deployments = append(ep.Deployments, api.DeploymentSummary{ID: d.ID, Name: d.Name})
		}
	}
	p := newProtocol(t, e)
	e.asked()
	got, words := p.data(t, "sluice_endpoint", map[string]any{"id": "ep_2"})
	require.Empty(t, words)
	require.Len(t, got["deployments"], 12)
	require.Nil(t, got["active_rollout"])
	require.Equal(t, []string{"GET /endpoints/ep_2", "GET /endpoints/ep_2/deployments?limit=500"}, e.asked())
	found, words := p.data(t, "sluice_deployment", map[string]any{"id": "dep_11"})
	require.Empty(t, words)
	require.Equal(t, "ep_2", found["endpoint_id"])
	require.Equal(t, []string{"GET /endpoints?limit=500", "GET /endpoints/ep_2/deployments/dep_11", "GET /endpoints/ep_2/deployments/dep_11"}, e.asked())
}

func TestDataDeploymentByIDByNameAndByIDAlone(t *testing.T) {
	e := twoEndpoints(t)
	p := newProtocol(t, e)
	e.asked()
	want, words := p.data(t, "sluice_deployment", map[string]any{"endpoint_id": "ep_1", "id": "dep_a"})
	require.Empty(t, words)
	require.Equal(t, []string{"GET /endpoints/ep_1/deployments/dep_a"}, e.asked())
	require.Equal(t, "old", want["name"])
	require.Equal(t, "demo/old", want["model"])
	require.Equal(t, 2.0, want["ready_replicas"])
	byName, words := p.data(t, "sluice_deployment", map[string]any{"endpoint_id": "ep_1", "name": "old"})
	require.Empty(t, words)
	require.Equal(t, []string{"GET /endpoints/ep_1/deployments?limit=500"}, e.asked())
	require.Equal(t, want, byName)
	byID, words := p.data(t, "sluice_deployment", map[string]any{"id": "dep_a"})
	require.Empty(t, words)
	require.Equal(t, []string{"GET /endpoints?limit=500", "GET /endpoints/ep_1/deployments/dep_a"}, e.asked())
	require.Equal(t, want, byID)
	_, words = p.data(t, "sluice_deployment", map[string]any{"name": "old"})
	require.Contains(t, words, "endpoint_id")
	_, words = p.data(t, "sluice_deployment", map[string]any{"id": "dep_x"})
	require.Contains(t, words, "ENDPOINT_ID/dep_x")
	_, words = p.data(t, "sluice_deployment", map[string]any{"endpoint_id": "ep_1", "name": "x"})
	require.Contains(t, words, `endpoint ep_1 has no deployment "x"`)
}

func TestDataRolloutByIDOrTheActiveOneOrNone(t *testing.T) {
	e := twoEndpoints(t)
	at, soak, share := api.At(time.Date(2026, 9, 16, 20, 39, 45, 0, time.UTC)), api.Duration(390*time.Second), 0.109
	r := &e.rollouts["ep_1"][0]
	r.StartedAt, r.PauseInfo = &at, &api.PauseInfo{PausedAt: at, Reason: "regression"}
	r.Status.Condition = &api.Condition{Category: "ROLLOUT_FAILURE_CATEGORY_METRIC_REGRESSION", Message: "worse", ObservedAt: at}
	r.Sluice = &api.RolloutExtra{Phase: "gate", Soak: &soak, ActualShare: &share, Digest: "sha256:1", Origin: "terraform"}
	p := newProtocol(t, e)
	e.asked()
	got, words := p.data(t, "sluice_rollout", map[string]any{"endpoint_id": "ep_1"})
	require.Empty(t, words)
	require.Equal(t, []string{"GET /endpoints/ep_1/rollouts"}, e.asked())
	require.Equal(t, "rol_2", got["id"])
	require.Equal(t, 1.0, got["current_step"])
	require.Equal(t, 390.0, got["wait_seconds"])
	require.Equal(t, "2026-09-16T20:39:45Z", got["paused_at"])
	require.Equal(t, "METRIC_REGRESSION", got["condition"].(map[string]any)["category"])
	require.Equal(t, map[string]any{"step": 1.0, "traffic_percent": 10.0, "state": "PAUSED", "started_at": nil, "completed_at": nil, "failure_reason": nil}, got["steps"].([]any)[0])
	over, words := p.data(t, "sluice_rollout", map[string]any{"endpoint_id": "ep_1", "id": "rol_1"})
	require.Empty(t, words)
	require.Equal(t, []string{"GET /endpoints/ep_1/rollouts/rol_1"}, e.asked())
	require.Equal(t, "COMPLETED", over["state"])
	none, words := p.data(t, "sluice_rollout", map[string]any{"endpoint_id": "ep_2"})
	require.Empty(t, words)
	for name, v := range none {
		if name != "endpoint_id" {
			require.Nil(t, v, name)
		}
	}
}

func TestDataRolloutsOfOneEndpointAndOfAllWithFilters(t *testing.T) {
	e := twoEndpoints(t)
	p := newProtocol(t, e)
	ids := func(config map[string]any) []string {
		got, words := p.data(t, "sluice_rollouts", config)
		require.Empty(t, words)
		out := []string{}
		for _, r := range got["rollouts"].([]any) {
			out = append(out, r.(map[string]any)["id"].(string))
		}
		return out
	}
	e.asked()
	require.Equal(t, []string{"rol_2", "rol_1"}, ids(nil))
	require.Equal(t, []string{"GET /endpoints?limit=500", "GET /endpoints/ep_1/rollouts", "GET /endpoints/ep_2/rollouts"}, e.asked())
	require.Equal(t, []string{"rol_2"}, ids(map[string]any{"endpoint_id": "ep_1", "active": true}))
	require.Equal(t, []string{"GET /endpoints/ep_1/rollouts"}, e.asked())
	require.Equal(t, []string{"rol_1"}, ids(map[string]any{"states": []any{"COMPLETED"}}))
	require.Equal(t, []string{"rol_1"}, ids(map[string]any{"target_deployment_id": "dep_c"}))
	require.Empty(t, ids(map[string]any{"endpoint_id": "ep_2"}))
	_, words := p.data(t, "sluice_rollouts", map[string]any{"states": []any{"MOVING"}})
	require.Contains(t, words, "MOVING")
}

func TestDataHardwareAddsUpWhatIsKnown(t *testing.T) {
	e := newToldEngine(t)
	room := func(relation string, n int) *api.Headroom {
		return &api.Headroom{Relation: relation, Value: &n}
	}
	e.hardware = []api.InstanceType{
		{ID: "1xh100", GPUType: "h100", GPUCount: 1, PriceCentsPerHour: 249, Sluice: &api.InstanceExtra{Capacity: number(8)}, Regions: []api.Region{{Name: "eu", Headroom: room("RELATION_EQ", 3)}, {Name: "us", Headroom: room("RELATION_GTE", 4)}}},
		{ID: "cpu", Regions: []api.Region{{Name: "eu", Headroom: room("RELATION_EQ", 0)}}},
	}
	p := newProtocol(t, e)
	e.asked()
	got, words := p.data(t, "sluice_hardware", nil)
	require.Empty(t, words)
	require.Equal(t, []string{"GET /v2/public/inference-instance-types"}, e.asked())
	first, second := got["types"].([]any)[0].(map[string]any), got["types"].([]any)[1].(map[string]any)
	require.Equal(t, []any{8.0, 7.0, false, 249.0}, []any{first["capacity"], first["free"], first["free_is_exact"], first["price_cents_per_hour"]})
	require.Equal(t, []any{nil, 0.0, true, nil}, []any{second["capacity"], second["free"], second["free_is_exact"], second["gpu_type"]}, "no room is not an unknown room")
	got, words = p.data(t, "sluice_hardware", map[string]any{"gpu_type": "h100", "id": "cpu"})
	require.Empty(t, words)
	require.Equal(t, []any{}, got["types"])
}

func TestDataEventsSendTheFiltersAndReadOneCallsWorth(t *testing.T) {
	e := twoEndpoints(t)
	for i := range 150 {
		e.events = append(e.events, api.Event{ID: fmt.Sprintf("ev_%d", i), Type: "endpoint.updated", Level: "LEVEL_INFO", Paths: []string{"trafficSplit"}, Sluice: &api.EventExtra{Actor: "ops", Step: number(0)}})
	}
	p := newProtocol(t, e)
	e.asked()
	got, words := p.data(t, "sluice_events", map[string]any{
		"endpoint_id": "ep_1", "types": []any{"endpoint.updated", "rollout.paused"}, "subject_id": "rol_1", "deployment_ids": []any{"dep_a"},
		"since": "2026-09-16T22:00:00+02:00", "until": "2026-09-17T00:00:00Z", "min_level": "WARN", "limit": 20,
	})
	require.Empty(t, words)
	require.Len(t, got["events"], 20)
	require.Equal(t, []any{"ops", 1.0, []any{"trafficSplit"}}, []any{got["events"].([]any)[0].(map[string]any)["actor"], got["events"].([]any)[0].(map[string]any)["step"], got["events"].([]any)[0].(map[string]any)["paths"]})
	calls := e.asked()
	require.Len(t, calls, 1)
	for _, part := range []string{"types=endpoint.updated%2Crollout.paused", "subjectId=rol_1", "deploymentIds=dep_a", "since=2026-09-16T20%3A00%3A00Z", "until=2026-09-17T00%3A00%3A00Z", "minLevel=LEVEL_WARN", "limit=20"} {
		require.Contains(t, calls[0], part)
	}
	got, words = p.data(t, "sluice_events", map[string]any{"endpoint_id": "ep_1"})
	require.Empty(t, words)
	require.Len(t, got["events"], defaultEvents)
	require.Len(t, e.asked(), 1)
	for name, bad := range map[string]any{"since": "yesterday", "until": "2026-09-17", "min_level": "LOUD", "limit": tftypes.NewValue(tftypes.Number, 10001)} {
		_, words := p.data(t, "sluice_events", map[string]any{"endpoint_id": "ep_1", name: bad})
		require.Contains(t, words, name, words)
		require.True(t, strings.Contains(words, "ERROR"), words)
	}
}
