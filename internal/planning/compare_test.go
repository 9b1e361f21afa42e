package planning

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

const chat = `
resource "sluice_endpoint" "chat" {
  name = "chat"
}
resource "sluice_deployment" "a" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "a"
  model                  = "demo/a"
  autoscaling            = { min_replicas = 2, max_replicas = 4 }
  initial_traffic_weight = 1
}
resource "sluice_deployment" "b" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "b"
  model       = "demo/b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`

const shift = `
resource "sluice_rollout" "ab" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.a.id
  target_deployment_id = sluice_deployment.b.id
  canary               = { steps = [{ traffic = 10 }, { traffic = 100 }] }
}
`

func setOf(t *testing.T, hcl string) declaration.Set {
	t.Helper()
	set, found := declaration.LoadFiles([]declaration.File{{Name: "main.tf", Bytes: []byte(hcl)}}, declaration.Options{})
	require.NoError(t, found.Err())
	return set
}

func at(kind declaration.Kind, name string) declaration.Address {
	return declaration.Address{Kind: kind, Name: name}
}

func bounded(low, high int) api.Autoscaling {
	return api.Autoscaling{MinReplicas: &low, MaxReplicas: &high}
}

// world is an engine with the endpoint of chat.
func world(rollouts ...api.Rollout) Standing {
	return Standing{
		ProjectID: "proj_1", Slug: "acme", Ours: true, Timings: rollout.DefaultTimings(),
		Endpoints: []StandingEndpoint{{
			Endpoint: api.Endpoint{ID: "ep_1", Name: "acme/chat", Visibility: api.VisibilityPrivate, TrafficSplit: []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 1}}, ETag: "1"},
			All: []api.Deployment{
				{ID: "dep_a", Name: "acme/chat/a", EndpointID: "ep_1", Model: "projects/proj_1/models/demo/a", Autoscaling: bounded(2, 4), Status: api.DeploymentStatus{State: api.DeploymentReady, ReadyReplicas: 2}},
				{ID: "dep_b", Name: "acme/chat/b", EndpointID: "ep_1", Model: "projects/proj_1/models/demo/b", Autoscaling: bounded(0, 0), Status: api.DeploymentStatus{State: api.DeploymentStopped}},
			},
			Rollouts: rollouts,
		}},
	}
}

func rolloutIn(state rollout.State, set declaration.Set) api.Rollout {
	spec := set.Rollouts[0].Spec
	spec.Source, spec.Target = "dep_a", "dep_b"
	return api.Rollout{ID: "rol_1", EndpointID: "ep_1", SourceDeploymentID: "dep_a", TargetDeploymentID: "dep_b", State: api.PrefixRolloutState + string(state),
		CreatedAt: api.At(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)), Sluice: &api.RolloutExtra{Digest: Digest(spec)}}
}

func compared(t *testing.T, hcl string, s Standing, bound Bindings) Changes {
	t.Helper()
	got, err := Compare(setOf(t, hcl), s, bound)
	require.NoError(t, err)
	return got
}

func TestAnEmptyProjectIsMadeInTheOrderOfReferences(t *testing.T) {
	got := compared(t, shift+chat, Standing{Timings: rollout.DefaultTimings()}, nil)
	var order []string
	for _, c := range got.List {
		require.Equal(t, Create, c.Action)
		require.Empty(t, c.ID)
		require.Empty(t, c.Blocked)
		require.Equal(t, "chat", c.Endpoint)
		order = append(order, c.Address.String())
	}
	require.Equal(t, []string{"sluice_endpoint.chat", "sluice_deployment.a", "sluice_deployment.b", "sluice_rollout.ab"}, order)
	ab := got.List[3]
	require.Empty(t, ab.Digest, "ids are not known yet")
	require.Len(t, ab.Journey.Steps, 2)
}

func TestWhatStandsAsDeclaredIsLeftAlone(t *testing.T) {
	got := compared(t, chat, world(), nil)
	require.Empty(t, got.Pending())
	require.Equal(t, Bindings{at(declaration.EndpointKind, "chat"): "ep_1", at(declaration.DeploymentKind, "a"): "dep_a", at(declaration.DeploymentKind, "b"): "dep_b"}, got.Bindings())
}

// J3: what a rollout moved is neither drift nor undone.
func TestAFinishedRolloutIsTakenInAndNothingItLeftIsUndone(t *testing.T) {
	set := setOf(t, chat+shift)
	w := world(rolloutIn(rollout.Completed, set))
	e := &w.Endpoints[0]
	e.TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_b", Weight: 1}}
	e.All[0].Autoscaling, e.All[1].Autoscaling = bounded(0, 0), bounded(2, 4)
	got := compared(t, chat+shift, w, nil)
	require.Empty(t, got.Pending())
	ab, _ := got.Find("sluice_rollout.ab")
	require.Equal(t, "rol_1", ab.ID)
	require.Contains(t, ab.Notes[0], "taken in")
	a, _ := got.Find("sluice_deployment.a")
	require.Contains(t, a.Notes[0], "as rol_1 left it")
}

// An approval names the digest: what it does not cover moves by itself, and what it covers
// voids it.
func TestADigestHoldsUntilSomethingThatMattersChanges(t *testing.T) {
	plan := func(change func(*StandingEndpoint), hcl string) string {
		w := world()
		change(&w.Endpoints[0])
		return compared(t, hcl, w, nil).Digest()
	}
	same := func(*StandingEndpoint) {}
	approved := plan(same, chat+shift)
	require.Equal(t, approved, plan(same, shift+chat), "the place in the file is not in it")
	require.Equal(t, approved, plan(func(e *StandingEndpoint) { e.All[0].Status.ReadyReplicas = 4 }, chat+shift), "the autoscaler voids nothing")
	for name, change := range map[string]func(*StandingEndpoint){
		"the split":    func(e *StandingEndpoint) { e.TrafficSplit[0].Weight = 2 },
		"bounds":       func(e *StandingEndpoint) { e.All[0].Autoscaling = bounded(2, 5) },
		"a new holder": func(e *StandingEndpoint) { e.Rollouts = []api.Rollout{{ID: "rol_9", State: "ROLLOUT_STATE_RUNNING"}} },
	} {
		require.NotEqual(t, approved, plan(change, chat+shift), name)
	}
	require.NotEqual(t, approved, plan(same, chat+strings.Replace(shift, "traffic = 10", "traffic = 20", 1)), "the spec")
}

func TestAPlanInOneLine(t *testing.T) {
	require.Equal(t, "1 rollout, 4 created, 0 replaced, 0 destroyed", compared(t, chat+shift, Standing{Timings: rollout.DefaultTimings()}, nil).Summary())
	require.Equal(t, "no changes", compared(t, chat, world(), nil).Summary())
}

func TestThePlanAsJSONHasTheShapeOfTerraforms(t *testing.T) {
	raw, err := compared(t, chat+shift, world(), nil).JSON()
	require.NoError(t, err)
	var doc struct {
		ResourceChanges []struct {
			Address string
			Change  struct {
				Actions []string
				After   map[string]any
				Unknown map[string]any `json:"after_unknown"`
			}
		} `json:"resource_changes"`
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Len(t, doc.ResourceChanges, 4)
	ab := doc.ResourceChanges[3]
	require.Equal(t, "sluice_rollout.ab", ab.Address)
	require.Equal(t, []string{"create"}, ab.Change.Actions)
	require.Equal(t, "dep_b", ab.Change.After["target_deployment_id"])
	require.Len(t, ab.Change.After["journey"], 2)
	require.Contains(t, ab.Change.After["spec_digest"], "sha256:")
	require.Equal(t, true, ab.Change.Unknown["id"])
	require.NotContains(t, ab.Change.Unknown, "spec_digest")
	require.Equal(t, []string{"no-op"}, doc.ResourceChanges[0].Change.Actions)
}
