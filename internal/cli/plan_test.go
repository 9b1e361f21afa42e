package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

const declaredChat = `
variable "step" {
  type    = number
  default = 50
}
resource "sluice_endpoint" "chat" {
  name = "chat"
}
resource "sluice_deployment" "old" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "old"
  model                  = "m/old"
  autoscaling            = { min_replicas = 1, max_replicas = 1 }
  initial_traffic_weight = 1
}
resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "new"
  model       = "m/new"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`

const declaredShift = `
resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  canary               = { steps = [{ traffic = var.step }, { traffic = 100 }], step_interval = "1s" }
}
output "state" {
  value = sluice_rollout.new.state
}
`

// A folder is planned, applied and planned again, without Terraform.
func TestAFolderIsPlannedAndAppliedWithoutTerraform(t *testing.T) {
	s := served(t)
	dir := folder(t, map[string]string{"main.tf": declaredChat + declaredShift, "terraform.tfvars": "step = 25"})
	s.run("plan", dir).exits(cli.ExitOK, "+ sluice_endpoint.chat", `name "old", model "m/old", 1 to 1 replicas, weight 1`, "canary 25 → 100 %", "1 rollout, 4 created, 0 replaced, 0 destroyed")
	s.run("plan", dir, "--exit-code").exits(cli.ExitPending)
	s.run("apply", dir).exits(cli.ExitUsage, "give --yes")
	s.run("ls").exits(cli.ExitOK)
	got := s.run("apply", dir, "--yes").exits(cli.ExitOK, "sluice_endpoint.chat (ep_", "sluice_rollout.new (rol_", "COMPLETED")
	require.Equal(t, 1, strings.Count(got.errs, ": started"))
	s.run("plan", dir, "--exit-code").exits(cli.ExitOK, "no changes")
	s.run("apply", dir, "--yes").exits(cli.ExitOK, "no changes")
	var doc struct {
		Outputs map[string]struct {
			Actions []string
			After   string
		} `json:"output_changes"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.run("plan", dir, "--json").exits(cli.ExitOK).out), &doc))
	require.Equal(t, "COMPLETED", doc.Outputs["state"].After, "what follows from what stands is known")
	require.Equal(t, []string{"no-op"}, doc.Outputs["state"].Actions)
	next := s.run("plan", dir, "--var", "step=30").exits(cli.ExitOK, "blocked: nothing is left to move")
	require.Contains(t, next.out, "1 blocked")
	s.run("apply", dir, "--yes", "--var", "step=30").exits(cli.ExitFailed, "nothing was changed")
}

func TestAPlanShowsWhatIsWrongAtItsLine(t *testing.T) {
	s := served(t)
	dir := folder(t, map[string]string{"main.tf": declaredChat + strings.Replace(declaredShift, "traffic = 100", "traffic = 90", 1)})
	s.run("plan", dir).exits(cli.ExitFailed, "main.tf:", "^^")
	s.run("plan", dir+"/none").exits(cli.ExitFailed, "read the folder")
	s.run("plan", dir+"/main.tf").exits(cli.ExitUsage, "is a file")
	bad := folder(t, map[string]string{"main.tf": declaredChat + "check \"sizes\" {\n  assert {\n    condition     = sluice_deployment.old.autoscaling.max_replicas > 3\n    error_message = \"too small for Monday\"\n  }\n}\n"})
	s.run("plan", bad).exits(cli.ExitOK, "too small for Monday")
}

// H7: the policy is asked at this door too, before anything is written.
func TestAPolicyStopsAnApplyBeforeItsFirstWrite(t *testing.T) {
	s := served(t)
	dir := folder(t, map[string]string{"main.tf": declaredChat + declaredShift, "first.rego": `package sluice
deny contains {"msg": "the first step is too large", "address": r.address} if {
	some r in input.resource_changes
	r.change.after.facts.first_step_percent > 10
}`})
	s.run("plan", dir, "--policy", dir).exits(cli.ExitFailed, "deny  sluice_rollout.new: the first step is too large")
	s.run("apply", dir, "--yes", "--policy", dir).exits(cli.ExitFailed, "denied")
	s.run("plan", dir, "--exit-code", "--var", "step=10", "--policy", dir).exits(cli.ExitPending, "4 created", "allowed")
}

// A reviewer reads what a merge will do. Whose the endpoint is stops an apply by hand, and
// not the plan.
func TestAPlanOfWhatAReconcilerHasIsNotBlocked(t *testing.T) {
	s := served(t)
	before, after := folder(t, map[string]string{"main.tf": declaredChat}), folder(t, map[string]string{"main.tf": declaredChat + declaredShift})
	s.run("apply", before, "--yes").exits(cli.ExitOK)
	c, err := engineclient.New(engineclient.Config{BaseURL: s.env["SLUICE_ENGINE_URL"], APIKey: s.env["SLUICE_API_KEY"]})
	require.NoError(t, err)
	for ep, err := range c.Endpoints(t.Context(), engineclient.ListOptions{}) {
		require.NoError(t, err)
		_, err = c.ClaimEndpoint(t.Context(), ep.ID, "reconciler-7 models/prod")
		require.NoError(t, err)
	}
	const note = "endpoint chat is reconciled by reconciler-7 models/prod: a merge applies this, sluice apply does not"
	got := s.run("plan", after).exits(cli.ExitOK, "1 rollout, 1 created, 0 replaced, 0 destroyed", "canary 50 → 100 %")
	require.Contains(t, strings.Join(strings.Fields(got.out), " "), note)
	require.NotContains(t, got.out, "blocked")
	doc := s.run("plan", after, "--json").exits(cli.ExitOK).out
	require.Contains(t, doc, note, "a policy reads what a person reads")
	require.NotContains(t, doc, `"blocked"`)
	s.run("plan", before, "--exit-code").exits(cli.ExitOK, "no changes")
	s.run("apply", after, "--yes").exits(cli.ExitFailed, "nothing was changed: endpoint chat is reconciled by reconciler-7 models/prod. Merge the change into what that follows", "sluice reconcile release chat --reason WHY")
	s.run("apply", before, "--yes").exits(cli.ExitOK, "no changes")
}
