package testacc

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// as is a client with a key of its own.
func (e *testEngine) as(t *testing.T, name string, scopes ...string) *engineclient.Client {
	t.Helper()
	key, err := e.Client.CreateKey(t.Context(), api.CreateKey{Name: name, Scopes: scopes})
	require.NoError(t, err)
	c, err := engineclient.New(engineclient.Config{BaseURL: e.APIURL, APIKey: key.Secret})
	require.NoError(t, err)
	return c
}

// halve breaks the glass: the target gets the source's weight, one replica each.
func (e *testEngine) halve(t *testing.T, c *engineclient.Client, r api.Rollout, reason string) {
	t.Helper()
	ep, err := e.Client.GetEndpoint(t.Context(), r.EndpointID)
	require.NoError(t, err)
	for _, w := range ep.TrafficSplit {
		if w.DeploymentID == r.SourceDeploymentID {
			_, err = c.BreakGlass(t.Context(), r.EndpointID, r.TargetDeploymentID, w.Weight, reason)
			require.NoError(t, err)
			e.reaches(t, r.EndpointID, r.ID, "SYSTEM_PAUSED")
			return
		}
	}
	t.Fatal("the source has no weight")
}

// longCanary waits for an hour at each step; its apply does not.
const longCanary = `canary = { steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }], step_interval = "1h" }
  wait = false`

// live applies a canary that then stands at its first step.
func (e *testEngine) live(t *testing.T, rollout string) (*workspace, api.Rollout) {
	t.Helper()
	w := newWorkspace(t, e, realHouse(e.house(rollout)))
	w.apply(t)
	r := e.newest(t)
	return w, e.reaches(t, r.EndpointID, r.ID, "STABILIZING")
}

func (w *workspace) plan(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, got := w.run(t, append([]string{"plan", "-no-color", "-input=false", "-detailed-exitcode"}, args...)...)
	require.Equal(t, code, got, out)
	return unwrapped(out)
}

// Somebody breaks the glass of a live rollout's split. Refresh and plan say so once,
// with both shares, who, why, when and which event; the plan is not empty; its apply
// fights nothing; the policy denies it; and it ends as somebody decides.
func TestTerraformTellsABrokenGlassAndFightsNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	w.plan(t, 0)
	e.halve(t, e.as(t, "ada", "operate", "break-glass"), r, "the source answers slowly")
	broken, err := engineclient.Collect(e.Client.Events(t.Context(), r.EndpointID, engineclient.EventQuery{Types: []string{"endpoint.break_glass"}}))
	require.NoError(t, err)
	require.Len(t, broken, 1)

	plan := w.plan(t, 2)
	require.Equal(t, 1, strings.Count(plan, "Drift: ada changed the split under rollout "+r.ID), plan)
	require.Contains(t, plan, "10 % on the target set, 50 % on the target served.")
	require.Regexp(t, regexp.MustCompile(`At \S+Z \(event `+broken[0].ID+`\): the source answers slowly\.`), plan)
	require.Contains(t, plan, "0 to add, 1 to change, 0 to destroy")
	require.Contains(t, w.plan(t, 2, "-refresh-only"), "Drift: ada changed the split")

	raw := w.planJSON(t)
	actions, before, _ := readPlan(t, raw).rolloutChange(t)
	require.Equal(t, []string{"update"}, actions)
	drift, ok := before["drift"].(map[string]any)
	require.True(t, ok)
	require.Equal(t, []any{true, "break_glass", 10.0, 50.0, "ada", broken[0].ID}, []any{drift["detected"], drift["kind"], drift["set_percent"], drift["actual_percent"], drift["by"], drift["event_id"]})
	rules, err := policy.Load(os.DirFS(filepath.Join("..", "examples", "policy", "rego")))
	require.NoError(t, err)
	v, err := rules.Judge(t.Context(), policy.Question{Plan: raw, Now: wednesday})
	require.NoError(t, err)
	require.Equal(t, []string{"break_glass"}, rulesSaid(v))
	require.Contains(t, v.Remarks[0].Message, "ada broke the glass: 10 % set, 50 % served (the source answers slowly)")

	w.apply(t)
	ep, err := e.Client.GetEndpoint(t.Context(), r.EndpointID)
	require.NoError(t, err)
	require.Len(t, ep.TrafficSplit, 2)
	require.Equal(t, ep.TrafficSplit[0].Weight, ep.TrafficSplit[1].Weight, "what ada set still stands")
	w.plan(t, 2)

	// J9: a change of the spec beside it: one plan that shows yours and theirs.
	w.write(t, strings.Replace(realHouse(e.house(longCanary)), "traffic = 50", "traffic = 60", 1))
	both := w.plan(t, 1)
	require.Contains(t, both, "Drift: ada changed the split")
	require.Contains(t, both, "The spec changed, but rollout "+r.ID+" is under way")

	w.write(t, realHouse(e.house(longCanary+"\n desired_state = \"canceled\"\n reason = \"ada is right\"")))
	w.apply(t)
	require.NotContains(t, w.plan(t, 0), "Drift", "a finished rollout has none")
}

// The way back from a broken glass: a new resume_token puts the rollout's split back.
func TestTerraformResumesFromABrokenGlass(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	e.halve(t, e.as(t, "ada", "operate", "break-glass"), r, "try")
	w.write(t, realHouse(e.house(longCanary+"\n resume_token = \"spoke to ada\"")))
	w.apply(t)
	require.Equal(t, 10, *e.reaches(t, r.EndpointID, r.ID, "STABILIZING").CurrentTrafficPercent)
	require.NotContains(t, w.plan(t, 0), "Drift")
}

// Bounds that a person changes under a live rollout are told with who did it; the same
// on a finished one is nobody's drift.
func TestTerraformTellsBoundsThatSomebodyChanged(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	ops, three := e.as(t, "ops", "operate"), 3
	scale := func() {
		_, err := ops.UpdateDeployment(t.Context(), r.EndpointID, r.TargetDeploymentID, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &three, MaxReplicas: &three}})
		require.NoError(t, err)
	}
	scale()
	plan := w.plan(t, 2)
	require.Contains(t, plan, "Drift: ops changed the replica bounds under rollout "+r.ID)
	require.Contains(t, plan, "→ 3–3. Deployment "+r.TargetDeploymentID)
	_, err := e.Client.CancelRollout(t.Context(), r.EndpointID, r.ID, apiControl("enough"))
	require.NoError(t, err)
	e.reaches(t, r.EndpointID, r.ID, "CANCELED")
	require.NotContains(t, w.plan(t, 0), "Drift")
}

// What a finished rollout has made is not fought for: an edit later is another
// decision, and a rollout that went back is told with what accepts it.
func TestTerraformLiveAheadOfTheConfigurationIsToldAndNotFought(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	body := `blue_green = {}`
	w := newWorkspace(t, e, realHouse(e.house(body)))
	w.apply(t)
	r := e.newest(t)
	require.Equal(t, "COMPLETED", engineclient.Short(r.State))
	back, err := e.Client.CreateRollout(t.Context(), r.EndpointID, api.RolloutSpec{SourceDeploymentID: r.TargetDeploymentID, TargetDeploymentID: r.SourceDeploymentID, BlueGreen: &api.BlueGreen{}}, "")
	require.NoError(t, err)
	_, err = e.Client.StartRollout(t.Context(), r.EndpointID, back.ID)
	require.NoError(t, err)
	e.reaches(t, r.EndpointID, back.ID, "COMPLETED")
	plan := w.plan(t, 0)
	require.Equal(t, 1, strings.Count(plan, "Live is ahead of the configuration: rollout "+back.ID+" moved the traffic back"), plan)
	require.Contains(t, plan, "count = 0")
	accepted := strings.Replace(realHouse(e.house(body)), `resource "sluice_rollout" "test" {`, "resource \"sluice_rollout\" \"test\" {\n  count = 0", 1)
	w.write(t, accepted)
	require.Contains(t, w.plan(t, 2), "0 to add, 0 to change, 1 to destroy")
	w.apply(t)
	require.NotContains(t, w.plan(t, 0), "ahead of the configuration")
	ep, err := e.Client.GetEndpoint(t.Context(), r.EndpointID)
	require.NoError(t, err)
	require.Equal(t, r.SourceDeploymentID, ep.TrafficSplit[0].DeploymentID, "the split stays")
}

// A cancel by hand leaves live ahead of the configuration; one line accepts it.
func TestTerraformACancelByHandIsToldWithWhatAcceptsIt(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	_, err := e.Client.CancelRollout(t.Context(), r.EndpointID, r.ID, apiControl("not today"))
	require.NoError(t, err)
	e.reaches(t, r.EndpointID, r.ID, "CANCELED")
	require.Contains(t, w.plan(t, 0), `To accept that: desired_state = "canceled", with a reason.`)
	w.write(t, realHouse(e.house(longCanary+"\n desired_state = \"canceled\"\n reason = \"not today\"")))
	w.apply(t)
	require.NotContains(t, w.plan(t, 0), "CANCELED")
	all, err := engineclient.Collect(e.Client.Rollouts(t.Context(), r.EndpointID, ""))
	require.NoError(t, err)
	require.Len(t, all, 1, "nothing was started")
}

// J5: the block of a live rollout is renamed with moved: nothing is destroyed, nothing
// is sent.
func TestTerraformRenamingALiveRolloutDestroysNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	renamed := strings.Replace(realHouse(e.house(longCanary)), `"sluice_rollout" "test"`, `"sluice_rollout" "renamed"`, 1)
	w.write(t, renamed+"\nmoved {\n  from = sluice_rollout.test\n  to   = sluice_rollout.renamed\n}\n")
	plan := w.plan(t, 2)
	require.Contains(t, plan, "sluice_rollout.test has moved to sluice_rollout.renamed")
	require.Contains(t, plan, "0 to add, 0 to change, 0 to destroy")
	w.apply(t)
	require.Equal(t, "STABILIZING", engineclient.Short(e.newest(t).State))
	require.Equal(t, r.ID, e.newest(t).ID)
	w.plan(t, 0)
}

// J11: blocks are removed while their rollout is live: the plan says what it locks, the
// apply touches nothing, and once it is over the removal plans by itself.
func TestTerraformRemovingBlocksOfALiveRolloutTouchesNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	whole := realHouse(e.house(longCanary))
	without, _, _ := strings.Cut(whole, `resource "sluice_rollout"`)
	w.write(t, without)
	require.Contains(t, w.plan(t, 2), "Destroying rollout "+r.ID+" will be refused while it is under way")
	out, code := w.run(t, "apply", "-auto-approve", "-no-color", "-input=false")
	require.Equal(t, 1, code)
	require.Contains(t, unwrapped(out), "is under way and is not destroyed")

	withoutTarget, _, _ := strings.Cut(without, `resource "sluice_deployment" "candidate"`)
	w.write(t, withoutTarget)
	plan := w.plan(t, 2)
	require.Contains(t, plan, "Deployment "+r.TargetDeploymentID+" is locked by rollout "+r.ID+" until it ends")
	out, code = w.run(t, "apply", "-auto-approve", "-no-color", "-input=false")
	require.Equal(t, 1, code, out)
	require.Equal(t, "STABILIZING", engineclient.Short(e.newest(t).State), "nothing was canceled on the way")

	_, err := e.Client.CancelRollout(t.Context(), r.EndpointID, r.ID, apiControl("now"))
	require.NoError(t, err)
	e.reaches(t, r.EndpointID, r.ID, "CANCELED")
	require.NotContains(t, w.plan(t, 2), "is locked by rollout")
}

// A live rollout is not replaced, and no second block takes it over.
func TestTerraformReplacingALiveRolloutIsRefused(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w, r := e.live(t, longCanary)
	replace := []string{"-replace=sluice_rollout.test"}
	require.Contains(t, w.plan(t, 1, replace...), "Rollout "+r.ID+" is under way and is not replaced")
	w.plan(t, 0)
	w.write(t, realHouse(e.house(longCanary))+`resource "sluice_rollout" "twin" {
  endpoint_id          = sluice_rollout.test.endpoint_id
  source_deployment_id = sluice_rollout.test.source_deployment_id
  target_deployment_id = sluice_rollout.test.target_deployment_id
  `+longCanary+"\n}\n")
	require.Contains(t, w.plan(t, 1), "Rollout "+r.ID+" is under way and is not replaced", "nor does a second block take it over")
	w.write(t, realHouse(e.house(longCanary)))
	require.Equal(t, r.ID, e.newest(t).ID)
	w.plan(t, 0)
}
