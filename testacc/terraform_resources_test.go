package testacc

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A rolling swap completes and imports without a difference. What it did to the
// bounds and the split is no drift; an edit in HCL is written, a write-once weight
// is not.
func TestTerraformRollingSwapThenEditsOfWhatItLeft(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	h := e.house("rolling = {}\n  final_target_replicas = 2")
	weighed := strings.Replace(h.hcl(), "initial_traffic_weight = 1", "initial_traffic_weight = 3", 1)
	grown := strings.Replace(h.hcl(), "autoscaling = { min_replicas = 0, max_replicas = 0 }", "autoscaling = { min_replicas = 3, max_replicas = 4 }", 1)
	unweighed := strings.Replace(h.hcl(), "  initial_traffic_weight = 1\n", "", 1)
	added := strings.Replace(h.hcl(), "autoscaling = { min_replicas = 0, max_replicas = 0 }", "autoscaling = { min_replicas = 0, max_replicas = 0 }\n  initial_traffic_weight = 2", 1)
	shown := strings.Replace(grown, `name = "chat"`, "name = \"chat\"\n  visibility = \"INTERNAL\"", 1)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: h.hcl(), Check: resource.ComposeTestCheckFunc(s.remember,
			attr("sluice_rollout.test", "state", "COMPLETED"),
			attr("sluice_rollout.test", "journey.#", "2"),
			attr("sluice_rollout.test", "in_effect.final_target_replicas", "2"),
		)},
		{
			Config: h.hcl(), ResourceName: "sluice_rollout.test", ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportStateIdFunc: func(*terraform.State) (string, error) { return s.endpoint + "/" + s.rollout, nil },
		},
		{RefreshState: true, Check: resource.ComposeTestCheckFunc(
			attr("sluice_deployment.candidate", "autoscaling.min_replicas", "0"),
			attr("sluice_deployment.candidate", "live_min_replicas", "2"),
			attr("sluice_deployment.stable", "live_max_replicas", "0"),
			attr("sluice_deployment.stable", "status", "STOPPED"),
			attr("sluice_endpoint.chat", "traffic_split.#", "1"),
		)},
		{Config: weighed, ConfigPlanChecks: onlyEmpty()},
		{Config: unweighed, ConfigPlanChecks: onlyEmpty()},
		{Config: added, ConfigPlanChecks: onlyEmpty()},
		{
			Config: grown,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("sluice_deployment.candidate", plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction("sluice_rollout.test", plancheck.ResourceActionNoop),
			}, PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check: resource.ComposeTestCheckFunc(
				attr("sluice_deployment.candidate", "live_min_replicas", "3"),
				attr("sluice_deployment.candidate", "live_max_replicas", "4"),
				attr("sluice_deployment.candidate", "status", "READY"),
			),
		},
		{
			Config:           shown,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check:            attr("sluice_endpoint.chat", "visibility", "INTERNAL"),
		},
	}})
}

// An imported deployment plans nothing with the configuration that made it, nor with
// one that says less or more about the weight.
func TestTerraformImportOfADeploymentPlansNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.apply(t)
	first := realHouse(e.house(""))
	for name, hcl := range map[string]string{
		"as it was made":   first,
		"weight left out":  strings.Replace(first, "  initial_traffic_weight = 1\n", "", 1),
		"weight added":     strings.Replace(first, "max_replicas = 0 }", "max_replicas = 0 }\n  initial_traffic_weight = 2", 1),
		"another weight":   strings.Replace(first, "initial_traffic_weight = 1", "initial_traffic_weight = 3", 1),
		"weight not known": strings.Replace(first, "initial_traffic_weight = 1", "initial_traffic_weight = terraform_data.w.output", 1) + "resource \"terraform_data\" \"w\" {\n  input = 4\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			ids := map[string]string{}
			for ep, err := range e.Client.Endpoints(t.Context(), engineclient.ListOptions{}) {
				require.NoError(t, err)
				for d, err := range e.Client.Deployments(t.Context(), ep.ID, engineclient.ListOptions{}) {
					require.NoError(t, err)
					ids["sluice_deployment."+d.Name[strings.LastIndex(d.Name, "/")+1:]] = ep.ID + "/" + d.ID
				}
			}
			require.Len(t, ids, 2)
			w.write(t, first)
			for address, id := range ids {
				out, code := w.run(t, "state", "rm", address)
				require.Zero(t, code, out)
				out, code = w.run(t, "import", "-no-color", "-input=false", address, id)
				require.Zero(t, code, out)
			}
			w.write(t, hcl)
			out := w.apply(t)
			require.Contains(t, out, " 0 changed, ")
			require.NotContains(t, out, "# sluice_deployment")
		})
	}
}

// A destroy that was told to cancel freezes the split first: both sides go on.
func TestTerraformDestroyThatCancelsFreezesTheSplit(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	h := e.house("canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = \"1h\" }\n  wait = false\n  destroy_behavior = \"cancel\"")
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: h.hcl(), Check: s.remember},
		{
			PreConfig: func() { e.reaches(t, s.endpoint, s.rollout, "STABILIZING") },
			Config:    e.house("").hcl(),
			Check: func(*terraform.State) error {
				events, err := engineclient.Collect(e.Client.Events(t.Context(), s.endpoint, engineclient.EventQuery{SubjectID: s.rollout}))
				require.NoError(t, err)
				var kinds []string
				for _, ev := range events {
					kinds = append(kinds, ev.Type)
				}
				require.Contains(t, kinds, "rollout.canceled_complete")
				require.Equal(t, "rollout.deleted", kinds[0])
				ep, err := e.Client.GetEndpoint(t.Context(), s.endpoint)
				require.NoError(t, err)
				require.Empty(t, ep.ActiveRolloutID)
				require.Len(t, ep.TrafficSplit, 2, "both sides serve: %s", fmt.Sprint(ep.TrafficSplit))
				return nil
			},
		},
	}})
}

// With an inferred source nothing in HCL ties the source to the rollout, so that a
// destroy begins with both at once: the deployment waits until the cancel is through.
func TestTerraformDestroyThatCancelsFreesAnInferredSource(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	h := e.house("canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = \"1h\" }\n  wait = false\n  destroy_behavior = \"cancel\"")
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.apply(t)
	w.write(t, strings.Replace(realHouse(h), "  source_deployment_id = sluice_deployment.stable.id\n", "", 1))
	w.apply(t)
	r := e.activeRollout(t)
	e.reaches(t, r.EndpointID, r.ID, "STABILIZING")
	out, code := w.run(t, "destroy", "-auto-approve", "-no-color", "-input=false")
	require.Zero(t, code, out)
	require.Contains(t, out, "4 destroyed")
}

// A rollout whose record somebody deleted is planned anew while there is traffic to
// move. Once its target serves alone there is none: an error that says so, at plan,
// from which removing it or swapping the sides leads on.
func TestTerraformRolloutGoneFromTheEngineIsPlannedAnew(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	h := e.house("canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = \"1h\" }\n  wait = false")
	done := e.house(`blue_green = {}`)
	forget := func() { require.NoError(t, e.Client.DeleteRollout(t.Context(), s.endpoint, s.rollout, "")) }
	back := strings.NewReplacer("source_deployment_id = sluice_deployment.stable.id", "source_deployment_id = sluice_deployment.candidate.id",
		"target_deployment_id = sluice_deployment.candidate.id", "target_deployment_id = sluice_deployment.stable.id")
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: h.hcl(), Check: s.remember},
		{
			PreConfig: func() {
				e.reaches(t, s.endpoint, s.rollout, "STABILIZING")
				_, err := e.Client.CancelRollout(t.Context(), s.endpoint, s.rollout, api.Control{Reason: "not today"})
				require.NoError(t, err)
				e.reaches(t, s.endpoint, s.rollout, "CANCELED")
				forget()
			},
			Config: h.hcl(), PlanOnly: true, ExpectNonEmptyPlan: true,
		},
		{Config: done.hcl(), Check: s.remember},
		{PreConfig: forget, Config: done.hcl(), PlanOnly: true, ExpectError: regexp.MustCompile(`the\s+target\s+serves\s+alone`)},
		{Config: back.Replace(done.hcl()), PlanOnly: true, ExpectNonEmptyPlan: true},
		{Config: e.house("").hcl()},
	}})
}

// The engine's address may come from a resource of the same apply: the plan then
// tells what it can, and the apply is not inconsistent with it.
func TestTerraformPlansBeforeTheEngineIsKnown(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	hcl := strings.Replace(e.house(canaryBody+averageGate).hcl(), fmt.Sprintf("engine_url = %q", e.APIURL), "engine_url = terraform_data.engine.output", 1)
	w := newWorkspace(t, e, required+fmt.Sprintf("resource \"terraform_data\" \"engine\" {\n  input = %q\n}\n", e.APIURL)+hcl)
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Equal(t, 2, code, plan)
	require.Contains(t, plan, "5 to add")
	w.apply(t)
	plan, code = w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, plan)
	w.write(t, required+strings.Replace(hcl, "terraform_data.engine.output", `"http://127.0.0.1:1"`, 1))
	plan, code = w.run(t, "plan", "-no-color")
	require.Equal(t, 1, code)
	require.Contains(t, plan, "The engine does not answer")
}
