package provider

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// kept is what Terraform keeps of a resource between two runs.
type kept struct {
	state, identity *tfprotov6.DynamicValue
	private         []byte
	values          map[string]any
}

// refreshed reads what is kept.
func (p *protocol) refreshed(t *testing.T, name string, k kept) kept {
	t.Helper()
	typ := p.schema.ResourceSchemas[name].ValueType()
	got, err := p.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: k.state, Private: k.private, CurrentIdentity: &tfprotov6.ResourceIdentityData{IdentityData: k.identity}})
	require.NoError(t, err)
	require.Empty(t, said(got.Diagnostics))
	values, _ := plain(t, typ, got.NewState).(map[string]any)
	return kept{state: got.NewState, identity: got.NewIdentity.IdentityData, private: got.Private, values: values}
}

// planned plans a configuration on what is kept; nil for a destroy.
func (p *protocol) planned(t *testing.T, name string, k kept, config map[string]any) (*tfprotov6.PlanResourceChangeResponse, map[string]any, string) {
	t.Helper()
	schema := p.schema.ResourceSchemas[name]
	typ := schema.ValueType()
	req := &tfprotov6.PlanResourceChangeRequest{TypeName: name, PriorState: k.state, PriorPrivate: k.private}
	if k.state == nil {
		req.PriorState = dynamic(t, typ, nil)
	} else {
		req.PriorIdentity = &tfprotov6.ResourceIdentityData{IdentityData: k.identity}
	}
	req.Config, req.ProposedNewState = dynamic(t, typ, nil), dynamic(t, typ, nil)
	if config != nil {
		proposed := map[string]any{}
		for _, a := range schema.Block.Attributes {
			if v, ok := config[a.Name]; ok {
				proposed[a.Name] = v
			} else if a.Computed && k.state != nil {
				proposed[a.Name] = k.values[a.Name]
			}
		}
		req.Config, req.ProposedNewState = dynamic(t, typ, config), dynamic(t, typ, proposed)
	}
	got, err := p.PlanResourceChange(t.Context(), req)
	require.NoError(t, err)
	values, _ := plain(t, typ, got.PlannedState).(map[string]any)
	return got, values, said(got.Diagnostics)
}

// applied plans and applies; both must be without errors, and the words are those of
// the apply.
func (p *protocol) applied(t *testing.T, name string, k kept, config map[string]any) (kept, string) {
	t.Helper()
	plan, _, _ := p.planned(t, name, k, config)
	typ := p.schema.ResourceSchemas[name].ValueType()
	prior := k.state
	if prior == nil {
		prior = dynamic(t, typ, nil)
	}
	got, err := p.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{TypeName: name, PriorState: prior, PlannedState: plan.PlannedState, PlannedPrivate: plan.PlannedPrivate, Config: dynamic(t, typ, config), PlannedIdentity: plan.PlannedIdentity})
	require.NoError(t, err)
	values, _ := plain(t, typ, got.NewState).(map[string]any)
	out := kept{state: got.NewState, private: got.Private, values: values}
	if got.NewIdentity != nil {
		out.identity = got.NewIdentity.IdentityData
	}
	return out, said(got.Diagnostics)
}

const split = "sluice_traffic_split"

// freeEndpoint is an endpoint that nothing holds, with a split of a alone.
func freeEndpoint(t *testing.T) (*toldEngine, *protocol) {
	t.Helper()
	e := twoEndpoints(t)
	ep := &e.endpoints[0]
	ep.ActiveRolloutID, e.rollouts["ep_1"] = "", nil
	ep.UpdatedAt = api.At(time.Date(2026, 9, 16, 12, 0, 0, 0, time.UTC))
	return e, newProtocol(t, e)
}

func weights(pairs map[string]any) map[string]any {
	return map[string]any{"endpoint_id": "ep_1", "weights": pairs}
}

func TestSplitIsWrittenUnderTheEtagAndReadBack(t *testing.T) {
	e, p := freeEndpoint(t)
	config := weights(map[string]any{"dep_a": 9.0, "dep_b": 1.0, "dep_c": 0.0})
	_, planned, words := p.planned(t, split, kept{}, config)
	require.Contains(t, words, `It goes from { "dep_a" = 1 } to { "dep_a" = 9, "dep_b" = 1 } without steps or gates`)
	require.Nil(t, planned["moved_by"])
	k, words := p.applied(t, split, kept{}, config)
	require.Empty(t, words)
	require.Equal(t, []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 9}, {DeploymentID: "dep_b", Weight: 1}}, e.endpoints[0].TrafficSplit)
	require.Equal(t, map[string]any{"endpoint_id": "ep_1", "project_id": "proj_1"}, plain(t, p.ids[split].ValueType(), k.identity))
	e.endpoints[0].TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_c"}, {DeploymentID: "dep_b", Weight: 1}, {DeploymentID: "dep_a", Weight: 9}}
	again := p.refreshed(t, split, k)
	require.Equal(t, k.values, again.values, "the order and a weight of 0 say nothing")
	_, planned, words = p.planned(t, split, again, weights(map[string]any{"dep_a": 9.0, "dep_b": 1.0}))
	require.Empty(t, words)
	require.Equal(t, again.values, planned, "nor does leaving it out")
}

func TestSplitRefusesToPlanUnderALockAndNamesTheHolder(t *testing.T) {
	e := twoEndpoints(t)
	p := newProtocol(t, e)
	_, _, words := p.planned(t, split, kept{}, weights(map[string]any{"dep_b": 1.0}))
	require.Contains(t, words, "locked by rollout rol_2")
	require.Contains(t, words, "SYSTEM_PAUSED")
	require.Contains(t, words, "ERROR")
	// What is not changed is not refused, however far the rollout has moved the split.
	free, q := freeEndpoint(t)
	k, _ := q.applied(t, split, kept{}, weights(map[string]any{"dep_a": 1.0}))
	free.endpoints[0].ActiveRolloutID, free.rollouts["ep_1"] = "rol_2", e.rollouts["ep_1"]
	free.endpoints[0].TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 0.5}, {DeploymentID: "dep_b", Weight: 0.5}}
	_, planned, words := q.planned(t, split, q.refreshed(t, split, k), weights(map[string]any{"dep_a": 1.0}))
	require.Empty(t, words)
	require.Equal(t, k.values, planned)
	_, _, words = q.planned(t, split, k, weights(map[string]any{"dep_b": 1.0}))
	require.Contains(t, words, "locked by rollout rol_2")
}

func TestSplitThatChangedSinceThePlanIsNotWritten(t *testing.T) {
	e, p := freeEndpoint(t)
	k, _ := p.applied(t, split, kept{}, weights(map[string]any{"dep_a": 1.0}))
	e.endpoints[0].TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_c", Weight: 1}}
	e.asked()
	_, words := p.applied(t, split, k, weights(map[string]any{"dep_b": 1.0}))
	require.Contains(t, words, "has changed since the plan")
	for _, call := range e.asked() {
		require.NotContains(t, call, "PATCH")
	}
	require.Equal(t, "dep_c", e.endpoints[0].TrafficSplit[0].DeploymentID)
}

func TestSplitNeverFightsAFinishedRollout(t *testing.T) {
	e, p := freeEndpoint(t)
	old := weights(map[string]any{"dep_a": 1.0})
	first, _ := p.applied(t, split, kept{}, old)
	at := api.At(time.Date(2026, 9, 16, 13, 0, 0, 0, time.UTC))
	e.rollouts["ep_1"] = []api.Rollout{{ID: "rol_7", State: "ROLLOUT_STATE_COMPLETED", StartedAt: &at, CompletedAt: &at}, {ID: "rol_6", State: "ROLLOUT_STATE_CANCELED"}}
	e.endpoints[0].TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_b", Weight: 0.5}}
	k := p.refreshed(t, split, first)
	require.Equal(t, "rol_7", k.values["moved_by"])
	_, _, words := p.planned(t, split, k, old)
	require.Contains(t, words, "ERROR")
	require.Contains(t, words, "Rollout rol_7 has moved the split")
	require.Contains(t, words, `weights = { "dep_b" = 0.5 }`)

	accepted, words := p.applied(t, split, k, weights(map[string]any{"dep_b": 0.5}))
	require.Empty(t, words)
	require.Nil(t, accepted.values["moved_by"])
	_, planned, words := p.planned(t, split, p.refreshed(t, split, accepted), weights(map[string]any{"dep_b": 0.5}))
	require.Empty(t, words)
	require.Equal(t, accepted.values, planned, "and is at rest then")

	reasserted := weights(map[string]any{"dep_a": 1.0})
	reasserted["reassert"] = true
	_, _, words = p.planned(t, split, k, reasserted)
	require.Contains(t, words, "WARNING")
	require.Contains(t, words, "What rollout rol_7 reached is undone")
	_, words = p.applied(t, split, k, reasserted)
	require.Empty(t, words)
	require.Equal(t, "dep_a", e.endpoints[0].TrafficSplit[0].DeploymentID)
}

// A new decision after a rollout is no fight: the configuration itself has changed.
func TestSplitEditedAfterARolloutIsANewDecision(t *testing.T) {
	e, p := freeEndpoint(t)
	first, _ := p.applied(t, split, kept{}, weights(map[string]any{"dep_a": 1.0}))
	at := api.At(time.Date(2026, 9, 16, 13, 0, 0, 0, time.UTC))
	e.rollouts["ep_1"] = []api.Rollout{{ID: "rol_7", State: "ROLLOUT_STATE_COMPLETED", StartedAt: &at, CompletedAt: &at}}
	e.endpoints[0].TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_b", Weight: 1}}
	_, _, words := p.planned(t, split, p.refreshed(t, split, first), weights(map[string]any{"dep_a": 1.0, "dep_b": 1.0}))
	require.NotContains(t, words, "ERROR")
	require.Contains(t, words, "The split changes at once")
}

func TestSplitEditedByHandTellsWhoAndWhen(t *testing.T) {
	e, p := freeEndpoint(t)
	config := weights(map[string]any{"dep_a": 1.0})
	first, _ := p.applied(t, split, kept{}, config)
	at := api.At(time.Date(2026, 9, 16, 14, 0, 0, 0, time.UTC))
	e.endpoints[0].TrafficSplit, e.endpoints[0].UpdatedAt = []api.TrafficWeight{{DeploymentID: "dep_b", Weight: 1}}, at
	e.events = []api.Event{{ID: "ev_8", Type: "endpoint.updated", CreatedAt: at, Paths: []string{"trafficSplit"}, Sluice: &api.EventExtra{Actor: "on-call"}}}
	k := p.refreshed(t, split, first)
	require.Nil(t, k.values["moved_by"])
	_, _, words := p.planned(t, split, k, config)
	require.Contains(t, words, `changed by the key "on-call" at 2026-09-16T14:00:00Z (event ev_8)`)
	require.NotContains(t, words, "ERROR")
}

func TestSplitOfAnImportPlansNothingAndADestroySaysWhatStays(t *testing.T) {
	e, p := freeEndpoint(t)
	state, ids, words := p.imports(t, split, "ep_1", nil)
	require.Empty(t, words)
	require.Equal(t, map[string]any{"dep_a": 1.0}, state["weights"])
	require.Equal(t, map[string]any{"endpoint_id": "ep_1", "project_id": "proj_1"}, ids)
	byIdentity, _, words := p.imports(t, split, "", map[string]any{"endpoint_id": "ep_1"})
	require.Empty(t, words)
	require.Equal(t, state, byIdentity)
	k, _ := p.applied(t, split, kept{}, weights(map[string]any{"dep_a": 1.0}))
	require.Equal(t, state, k.values)
	_, _, words = p.planned(t, split, k, nil)
	require.Contains(t, words, "The split of endpoint ep_1 stays as it is")
	e.asked()
	_, words = p.applied(t, split, k, nil)
	require.Empty(t, words)
	require.Empty(t, e.asked(), "a destroy asks the engine nothing")
}
