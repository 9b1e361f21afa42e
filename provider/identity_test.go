package provider

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

func number(n int) *int { return &n }

// twoEndpoints is a project with a chat endpoint, on which a canary waits and one is
// over, and an endpoint without anything.
func twoEndpoints(t *testing.T) *toldEngine {
	t.Helper()
	e := newToldEngine(t)
	deployment := func(id, name, state string, ready int) api.Deployment {
		return api.Deployment{ID: id, Name: "acme/chat/" + name, EndpointID: "ep_1", Model: "projects/proj_1/models/demo/" + name, Config: "projects/proj_1/configs/cr_1",
			Hardware: "1xh100", Autoscaling: api.Autoscaling{MinReplicas: number(ready), MaxReplicas: number(ready)},
			Status: api.DeploymentStatus{State: "DEPLOYMENT_STATE_" + state, ReadyReplicas: ready}}
	}
	e.deployments["ep_1"] = []api.Deployment{deployment("dep_b", "new", "READY", 1), deployment("dep_a", "old", "READY", 2), deployment("dep_c", "spare", "STOPPED", 0)}
	ep := api.Endpoint{ID: "ep_1", Name: "acme/chat", ProjectID: "proj_1", Visibility: api.VisibilityPrivate, ETag: "1", ActiveRolloutID: "rol_2",
		TrafficSplit: []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 1}, {DeploymentID: "dep_c", Weight: 0}}}
	for _, d := range e.deployments["ep_1"] {
		ep.Deployments = append(ep.Deployments, api.DeploymentSummary{ID: d.ID, Name: d.Name})
	}
	e.endpoints = []api.Endpoint{ep, {ID: "ep_2", Name: "acme/embed", ProjectID: "proj_1", Visibility: api.VisibilityInternal, ETag: "1"}}
	rollout := func(id, state, target string, percent int) api.Rollout {
		return api.Rollout{ID: id, EndpointID: "ep_1", ProjectID: "proj_1", SourceDeploymentID: "dep_a", TargetDeploymentID: target, Strategy: "ROLLOUT_STRATEGY_TYPE_CANARY",
			State: "ROLLOUT_STATE_" + state, CurrentStep: number(0), CurrentTrafficPercent: number(percent),
			Status: api.RolloutStatus{TotalSteps: 2, Steps: []api.RolloutStep{{StepIndex: 0, TargetTrafficPercent: 10, State: "ROLLOUT_STEP_STATE_PAUSED"}, {StepIndex: 1, TargetTrafficPercent: 100, State: "ROLLOUT_STEP_STATE_PENDING"}}}}
	}
	e.rollouts["ep_1"] = []api.Rollout{rollout("rol_2", "SYSTEM_PAUSED", "dep_b", 10), rollout("rol_1", "COMPLETED", "dep_c", 100)}
	return e
}

func TestImportByCompositeByIDAloneAndByIdentity(t *testing.T) {
	e := twoEndpoints(t)
	p := newProtocol(t, e)
	for _, c := range []struct {
		resource, id string
		identity     map[string]any
		want         map[string]any
	}{
		{resource: "sluice_endpoint", id: "ep_1", want: map[string]any{"id": "ep_1", "project_id": "proj_1"}},
		{resource: "sluice_endpoint", identity: map[string]any{"id": "ep_1"}, want: map[string]any{"id": "ep_1", "project_id": "proj_1"}},
		{resource: "sluice_deployment", id: "ep_1/dep_b", want: map[string]any{"endpoint_id": "ep_1", "id": "dep_b", "project_id": "proj_1"}},
		{resource: "sluice_deployment", id: "dep_b", want: map[string]any{"endpoint_id": "ep_1", "id": "dep_b", "project_id": "proj_1"}},
		{resource: "sluice_deployment", identity: map[string]any{"endpoint_id": "ep_1", "id": "dep_b", "project_id": "proj_1"}, want: map[string]any{"endpoint_id": "ep_1", "id": "dep_b", "project_id": "proj_1"}},
		{resource: "sluice_rollout", id: "ep_1/rol_1", want: map[string]any{"endpoint_id": "ep_1", "id": "rol_1", "project_id": "proj_1"}},
		{resource: "sluice_rollout", id: "rol_1", want: map[string]any{"endpoint_id": "ep_1", "id": "rol_1", "project_id": "proj_1"}},
		{resource: "sluice_rollout", id: "rol_2", want: map[string]any{"endpoint_id": "ep_1", "id": "rol_2", "project_id": "proj_1"}},
		{resource: "sluice_rollout", identity: map[string]any{"endpoint_id": "ep_1", "id": "rol_1"}, want: map[string]any{"endpoint_id": "ep_1", "id": "rol_1", "project_id": "proj_1"}},
	} {
		t.Run(c.resource+" "+c.id, func(t *testing.T) {
			state, ids, words := p.imports(t, c.resource, c.id, c.identity)
			require.Empty(t, words)
			require.Equal(t, c.want, ids)
			require.Equal(t, c.want["id"], state["id"])
		})
	}
}

func TestImportOfAnIDThatIsNowhereNamesTheCompositeForm(t *testing.T) {
	e := twoEndpoints(t)
	p := newProtocol(t, e)
	_, _, words := p.imports(t, "sluice_deployment", "dep_x", nil)
	require.Contains(t, words, "ENDPOINT_ID/dep_x")
	_, _, words = p.imports(t, "sluice_rollout", "rol_x", nil)
	require.Contains(t, words, "ENDPOINT_ID/rol_x")
	_, _, words = p.imports(t, "sluice_rollout", "ep_1/", nil)
	require.Contains(t, words, "endpoint_id/rollout_id")
	_, _, words = p.imports(t, "sluice_rollout", "", map[string]any{"endpoint_id": "ep_1", "id": "rol_1", "project_id": "proj_9"})
	require.Contains(t, words, "proj_9")
	require.Contains(t, words, "works in project proj_1")
}

// The search for an id without its endpoint has an end, however large the project is.
func TestSearchForAnIDAloneIsBounded(t *testing.T) {
	e := newToldEngine(t)
	for i := range 700 {
		e.endpoints = append(e.endpoints, api.Endpoint{ID: fmt.Sprintf("ep_%d", i), Name: "acme/x", Deployments: []api.DeploymentSummary{{ID: fmt.Sprintf("dep_%d", i)}}})
	}
	p := newProtocol(t, e)
	e.asked()
	_, _, words := p.imports(t, "sluice_rollout", "rol_x", nil)
	require.Contains(t, words, "ENDPOINT_ID/rol_x")
	require.Len(t, e.asked(), 2+mostEndpoints, "two pages of endpoints, and one call an endpoint up to the limit")
	_, _, words = p.imports(t, "sluice_deployment", "dep_x", nil)
	require.Contains(t, words, "ENDPOINT_ID/dep_x")
	require.Len(t, e.asked(), 2, "what endpoints show of their deployments is all they have")
}

// A state from before there were identities, read while the engine is not known,
// gets one without a project, and keeps it when the project is known later.
func TestIdentityOfAnOlderStateIsSetOnceAndKept(t *testing.T) {
	e := twoEndpoints(t)
	typ := newProtocol(t, nil).schema.ResourceSchemas["sluice_endpoint"].ValueType()
	state := dynamic(t, typ, map[string]any{"id": "ep_1", "name": "chat", "visibility": "PRIVATE", "qualified_name": "acme/chat"})
	unknown := newProtocol(t, nil)
	got, err := unknown.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: dynamic(t, unknown.schema.Provider.ValueType(), map[string]any{"engine_url": unknownString()})})
	require.NoError(t, err)
	require.Empty(t, got.Diagnostics)
	first, err := unknown.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "sluice_endpoint", CurrentState: state})
	require.NoError(t, err)
	require.Empty(t, first.Diagnostics)
	known := newProtocol(t, e)
	second, err := known.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "sluice_endpoint", CurrentState: first.NewState, CurrentIdentity: first.NewIdentity})
	require.NoError(t, err)
	require.Empty(t, said(second.Diagnostics))
	require.Equal(t, map[string]any{"id": "ep_1", "project_id": nil}, plain(t, known.ids["sluice_endpoint"].ValueType(), second.NewIdentity.IdentityData))
}

func TestQueryFindsWithIdentityAndTheResourceWhenAsked(t *testing.T) {
	e := twoEndpoints(t)
	p := newProtocol(t, e)
	names := func(kind string, config map[string]any) []string {
		out := []string{}
		for _, l := range p.lists(t, tfprotov6.ListResourceRequest{TypeName: kind}, config) {
			require.Empty(t, l.words)
			require.Nil(t, l.resource)
			require.Equal(t, "proj_1", l.identity["project_id"])
			out = append(out, l.identity["id"].(string))
		}
		return out
	}
	require.Equal(t, []string{"ep_1", "ep_2"}, names("sluice_endpoint", nil))
	require.Equal(t, []string{"ep_2"}, names("sluice_endpoint", map[string]any{"visibility": "INTERNAL"}))
	require.Equal(t, []string{"ep_1"}, names("sluice_endpoint", map[string]any{"name_prefix": "ch"}))
	require.Equal(t, []string{"dep_b", "dep_a", "dep_c"}, names("sluice_deployment", nil))
	require.Equal(t, []string{"dep_c"}, names("sluice_deployment", map[string]any{"endpoint_id": "ep_1", "status": "STOPPED"}))
	require.Equal(t, []string{"dep_a"}, names("sluice_deployment", map[string]any{"model": "demo/old"}))
	require.Equal(t, []string{"rol_2", "rol_1"}, names("sluice_rollout", nil))
	require.Equal(t, []string{"rol_2"}, names("sluice_rollout", map[string]any{"active": true}))
	require.Equal(t, []string{"rol_1"}, names("sluice_rollout", map[string]any{"active": false}))
	require.Equal(t, []string{"rol_1"}, names("sluice_rollout", map[string]any{"states": []any{"COMPLETED", "CANCELED"}}))
	require.Equal(t, []string{"rol_2"}, names("sluice_rollout", map[string]any{"target_deployment_id": "dep_b", "endpoint_id": "ep_1"}))
	require.Empty(t, names("sluice_rollout", map[string]any{"endpoint_id": "ep_2"}))

	for _, kind := range []string{"sluice_endpoint", "sluice_deployment", "sluice_rollout"} {
		all := p.lists(t, tfprotov6.ListResourceRequest{TypeName: kind, IncludeResource: true, Limit: 1}, nil)
		require.Len(t, all, 1, "a limit ends the walk")
		require.Empty(t, all[0].words)
		id := all[0].identity["id"].(string)
		state, _, words := p.imports(t, kind, id, nil)
		require.Empty(t, words)
		require.Equal(t, state, all[0].resource, "what a query finds is what an import reads")
	}
	for _, l := range p.lists(t, tfprotov6.ListResourceRequest{TypeName: "sluice_rollout"}, map[string]any{"endpoint_id": "ep_9"}) {
		require.Empty(t, l.words, "an endpoint without rollouts")
	}
}
