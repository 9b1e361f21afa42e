package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// liveHouse is pairHouse with a rollout that stands at 10 %.
func liveHouse(t *testing.T) *toldEngine {
	t.Helper()
	e := pairHouse(t)
	started := api.At(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	one := 1
	ep := &e.endpoints[0]
	ep.ActiveRolloutID = "rol_1"
	ep.Deployments[0].EstimatedEffectiveTrafficShare, ep.Deployments[1].EstimatedEffectiveTrafficShare = 0.9, 0.1
	ep.Deployments[1].Autoscaling.MinReplicas, ep.Deployments[1].Autoscaling.MaxReplicas, ep.Deployments[1].DesiredReplicas = &one, &one, 1
	e.rollouts["ep_1"] = []api.Rollout{{
		ID: "rol_1", EndpointID: "ep_1", SourceDeploymentID: "dep_a", TargetDeploymentID: "dep_b", Strategy: api.PrefixStrategy + "CANARY", State: api.PrefixRolloutState + "STABILIZING",
		CurrentStep: pointer(0), CurrentTrafficPercent: pointer(10), StartedAt: &started, Sluice: &api.RolloutExtra{},
		Status: api.RolloutStatus{TotalSteps: 2, Steps: []api.RolloutStep{{TargetTrafficPercent: 10}, {StepIndex: 1, TargetTrafficPercent: 100}}},
	}}
	return e
}

func driftIn(t *testing.T, e *toldEngine) (map[string]any, string) {
	t.Helper()
	state, _, words := newProtocol(t, e).imports(t, "sluice_rollout", "ep_1/rol_1", nil)
	d, ok := state["drift"].(map[string]any)
	require.True(t, ok, words)
	return d, words
}

func TestALiveRolloutThatNobodyTouchedHasNoDrift(t *testing.T) {
	e := liveHouse(t)
	e.events = []api.Event{
		{ID: "evt_2", Type: "deployment.scaled", DeploymentID: "dep_b", NewReplicas: pointer(1), Sluice: &api.EventExtra{Actor: rollout.ItselfActor}},
		{ID: "evt_1", Type: "deployment.scaled", DeploymentID: "dep_b", NewReplicas: pointer(7), Sluice: &api.EventExtra{Actor: "ops"}},
	}
	d, words := driftIn(t, e)
	require.Empty(t, words)
	require.Equal(t, false, d["detected"], "the rollout raised the floor itself, and what ops had set before does not stand any more")
	require.Nil(t, d["kind"])
	require.Nil(t, d["kept"])
}

// Replicas above the floor without anybody's edit are the autoscaler's: told, kept, and
// no drift. An edit of the bounds is, whatever the autoscaler does.
func TestWhatTheAutoscalerRaisedIsToldApartFromAnEdit(t *testing.T) {
	e := liveHouse(t)
	e.endpoints[0].Deployments[1].DesiredReplicas = 4
	d, words := driftIn(t, e)
	require.Empty(t, words)
	require.Equal(t, false, d["detected"])
	require.Equal(t, "dep_b has 4 replicas above its floor of 1: raised by the autoscaler, kept", d["kept"])

	e.events = []api.Event{{ID: "evt_3", Type: "deployment.scaled", DeploymentID: "dep_b", NewReplicas: pointer(1), Message: "replicas 2–2 → 1–4", Sluice: &api.EventExtra{Actor: "ops"}}}
	d, words = driftIn(t, e)
	require.Equal(t, []any{true, "bounds", "ops", "evt_3", "dep_b"}, []any{d["detected"], d["kind"], d["by"], d["event_id"], d["deployment_id"]})
	require.Equal(t, 1, strings.Count(words, "Drift: ops changed the replica bounds under rollout rol_1"), words)
	require.Contains(t, words, "replicas 2–2 → 1–4")
}

// An engine that records no break-glass still shows the split and who edited it when.
func TestASplitEditedAtAHostedEngineIsDrift(t *testing.T) {
	e := liveHouse(t)
	e.hosted, e.rollouts["ep_1"][0].Sluice = true, nil
	ep := &e.endpoints[0]
	ep.Deployments[0].EstimatedEffectiveTrafficShare, ep.Deployments[1].EstimatedEffectiveTrafficShare = 0.6, 0.4
	d, words := driftIn(t, e)
	require.Empty(t, words)
	require.Equal(t, false, d["detected"], "without an edit it is a shift on its way")

	e.events = []api.Event{
		{ID: "evt_9", Type: "endpoint.updated", Paths: []string{"name"}},
		{ID: "evt_8", Type: "endpoint.updated", Paths: []string{"traffic_split"}},
	}
	d, words = driftIn(t, e)
	require.Equal(t, []any{true, "hosted_edit", 10.0, 40.0, nil, "evt_8"}, []any{d["detected"], d["kind"], d["set_percent"], d["actual_percent"], d["by"], d["event_id"]})
	require.Contains(t, words, "Drift: somebody changed the split under rollout rol_1")
	require.Contains(t, words, "10 % on the target set, 40 % on the target served.")

	ep.Deployments[0].EstimatedEffectiveTrafficShare, ep.Deployments[1].EstimatedEffectiveTrafficShare = 0.88, 0.12
	d, _ = driftIn(t, e)
	require.Equal(t, false, d["detected"], "a weight a replica moves a little")
	e.rollouts["ep_1"][0].State = api.PrefixRolloutState + "COMPLETED"
	ep.Deployments[1].EstimatedEffectiveTrafficShare = 0.5
	d, _ = driftIn(t, e)
	require.Equal(t, false, d["detected"], "a finished one has none")
}

// A refresh of many rollouts of one endpoint asks for the first by itself and for the
// rest with one list; what is changed is read again afterwards.
func TestARefreshAsksOnceAnEndpoint(t *testing.T) {
	for n, calls := range map[int]int{1: 1, 2: 2, 50: 2, 501: 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := pairHouse(t)
			for i := range n {
				e.rollouts["ep_1"] = append(e.rollouts["ep_1"], api.Rollout{ID: fmt.Sprintf("rol_%03d", i), EndpointID: "ep_1", SourceDeploymentID: "dep_a", TargetDeploymentID: "dep_b", Strategy: api.PrefixStrategy + "BLUE_GREEN", State: api.PrefixRolloutState + "COMPLETED"})
			}
			p := newProtocol(t, e)
			e.asked()
			for i := range n {
				state, _, words := p.imports(t, "sluice_rollout", fmt.Sprintf("ep_1/rol_%03d", i), nil)
				require.Empty(t, words)
				require.Equal(t, fmt.Sprintf("rol_%03d", i), state["id"])
			}
			require.Len(t, e.asked(), calls)
		})
	}
}

// One that the list does not have is asked for by itself, twice, before it is gone.
func TestARolloutThatNoListHasIsAskedFor(t *testing.T) {
	e := pairHouse(t)
	for i := range 3 {
		e.rollouts["ep_1"] = append(e.rollouts["ep_1"], api.Rollout{ID: fmt.Sprint("rol_", i), EndpointID: "ep_1", Strategy: api.PrefixStrategy + "BLUE_GREEN", State: api.PrefixRolloutState + "COMPLETED"})
	}
	p := newProtocol(t, e)
	for i := range 2 {
		p.imports(t, "sluice_rollout", fmt.Sprint("ep_1/rol_", i), nil)
	}
	e.asked()
	e.rollouts["ep_1"] = append(e.rollouts["ep_1"], api.Rollout{ID: "rol_new", EndpointID: "ep_1", Strategy: api.PrefixStrategy + "BLUE_GREEN", State: api.PrefixRolloutState + "COMPLETED"})
	state, _, _ := p.imports(t, "sluice_rollout", "ep_1/rol_new", nil)
	require.Equal(t, "rol_new", state["id"])
	require.Equal(t, []string{"GET /endpoints/ep_1/rollouts/rol_new"}, e.asked())
	state, _, _ = p.imports(t, "sluice_rollout", "ep_1/rol_none", nil)
	require.Nil(t, state)
}
