package testacc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// A wrong project, a wrong path and the gateway's address are errors: none of them
// reads like an engine from which everything was deleted.
func TestTerraformWrongProjectOrAddressIsAnErrorAndKeepsTheState(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house(`blue_green = {}`)))
	w.apply(t)
	before, _ := w.run(t, "state", "list")
	require.Contains(t, before, "sluice_rollout.test")
	for name, c := range map[string]struct{ env, says string }{
		"project": {"SLUICE_PROJECT=nope", "The key belongs to project proj_test (acme)"},
		"path":    {"SLUICE_ENGINE_URL=" + e.APIURL + "/v3", "The address has the path /v3"},
		"gateway": {"SLUICE_ENGINE_URL=" + e.GatewayURL, "This looks like a gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := &workspace{dir: w.dir, env: append(append([]string(nil), w.env...), c.env)}
			for _, command := range [][]string{{"plan"}, {"apply", "-refresh-only", "-auto-approve"}, {"destroy", "-auto-approve"}} {
				out, code := wrong.run(t, append(command, "-no-color", "-input=false")...)
				require.Equal(t, 1, code, out)
				said := oneLine(out)
				require.Contains(t, said, "This is not the engine or project that was meant")
				require.Contains(t, said, c.says)
				require.NotContains(t, said, "has been deleted")
			}
		})
	}
	after, _ := w.run(t, "state", "list")
	require.Equal(t, before, after, "nothing left the state")
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, plan)
}

// Another engine that answers well, with a key of its own, has none of it either: its
// project is another one, and the state is kept.
func TestTerraformAnotherEngineIsAnErrorAndKeepsTheState(t *testing.T) {
	t.Parallel()
	e, other := startEngine(t, fastEngine), startEngine(t, strings.Replace(fastEngine, "slug: acme", "slug: staging", 1))
	w := newWorkspace(t, e, realHouse(e.house(`blue_green = {}`)))
	w.apply(t)
	before, _ := w.run(t, "state", "list")
	wrong := &workspace{dir: w.dir, env: append(append([]string(nil), w.env...), "SLUICE_ENGINE_URL="+other.APIURL, "SLUICE_API_KEY="+other.Key)}
	for _, command := range [][]string{{"plan"}, {"apply", "-refresh-only", "-auto-approve"}} {
		out, code := wrong.run(t, append(command, "-no-color", "-input=false")...)
		require.Equal(t, 1, code, out)
		require.Contains(t, oneLine(out), "the state is of project acme, and the engine at")
	}
	after, _ := w.run(t, "state", "list")
	require.Equal(t, before, after, "nothing left the state")
}

// Another model on the deployment that serves would be an outage and an ungated
// jump: the plan is refused, and no request fails. Removing one tells its share.
func TestTerraformReplacingWhatServesIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	allAnswered := e.traffic(t, 60)
	hcl := realHouse(e.house(""))
	w := newWorkspace(t, e, hcl)
	w.apply(t)
	other := func(from, to string) string {
		changed := strings.Replace(hcl, from, to, 1)
		require.NotEqual(t, hcl, changed)
		return changed
	}
	for attribute, changed := range map[string]string{
		"model":  strings.Replace(other(`"demo/stable"`, `"demo/candidate"`), `"cr_stable"`, `"cr_good"`, 1),
		"config": other(`"cr_stable"`, `"cr_other"`),
		"name":   other(`"stable"`+"\n  model", `"steady"`+"\n  model"),
	} {
		w.write(t, changed)
		out, code := w.run(t, "apply", "-no-color", "-input=false", "-auto-approve")
		require.Equal(t, 1, code, out)
		require.Contains(t, oneLine(out), "serves 100 % of its endpoint's traffic and is not replaced")
		require.Contains(t, oneLine(out), "Another "+attribute+" is another deployment")
		require.Contains(t, oneLine(out), "add a second sluice_deployment")
	}
	// One that does not serve is replaced as ever.
	w.write(t, other(`"cr_good"`, `"cr_slow"`))
	require.Contains(t, w.apply(t), "1 added, 0 changed, 1 destroyed")
	require.NoError(t, allAnswered(nil))

	w.write(t, other("min_replicas = 1, max_replicas = 1", "min_replicas = 0, max_replicas = 0"))
	out, code := w.run(t, "plan", "-no-color")
	require.Equal(t, 1, code, out)
	require.Regexp(t, `Deployment dep_\w+ serves all of its endpoint's traffic and is not stopped`, oneLine(out))
	require.Contains(t, oneLine(out), "autoscaling = { min_replicas = 1, max_replicas = 1 }")
	w.write(t, hcl)
	out, code = w.run(t, "plan", "-destroy", "-no-color")
	require.Zero(t, code, out)
	require.Regexp(t, `Destroying deployment dep_\w+, which serves 100 % of its endpoint's traffic`, oneLine(out))
	require.Equal(t, 1, strings.Count(oneLine(out), "which serves"), "the other serves nothing")
}

// An id that the engine does not know is refused at plan, before the apply destroys
// other objects. An inferred source is named, and stays open in the plan.
func TestTerraformWrongIDsAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.apply(t)
	right := realHouse(e.house("blue_green = {}"))
	const endpoint = "endpoint_id          = sluice_endpoint.chat.id\n  source"
	for name, c := range map[string]struct{ from, to, says string }{
		"endpoint of a rollout":      {endpoint, strings.Replace(endpoint, "sluice_endpoint.chat.id", `"ep_nope"`, 1), "There is no endpoint ep_nope"},
		"source":                     {"source_deployment_id = sluice_deployment.stable.id", `source_deployment_id = "dep_nope"`, "There is no deployment dep_nope"},
		"target":                     {"target_deployment_id = sluice_deployment.candidate.id", `target_deployment_id = "dep_nope"`, "There is no deployment dep_nope"},
		"endpoint of a deployment":   {`resource "sluice_rollout"`, strings.NewReplacer(`"candidate"`, `"third"`, "sluice_endpoint.chat.id", `"ep_nope"`).Replace(candidateOf(right)) + `resource "sluice_rollout"`, "There is no endpoint ep_nope"},
		"target that serves already": {"sluice_deployment.candidate.id", "sluice_deployment.stable.id", "the target serves alone"},
	} {
		t.Run(name, func(t *testing.T) {
			hcl := strings.Replace(right, c.from, c.to, 1)
			if name == "target that serves already" {
				hcl = strings.Replace(hcl, "source_deployment_id = sluice_deployment.stable.id", "source_deployment_id = sluice_deployment.candidate.id", 1)
			}
			require.NotEqual(t, right, hcl)
			w.write(t, hcl)
			out, code := w.run(t, "plan", "-no-color")
			require.Equal(t, 1, code, out)
			require.Contains(t, oneLine(out), c.says)
		})
	}
	w.write(t, strings.Replace(right, "  source_deployment_id = sluice_deployment.stable.id\n", "", 1))
	out, code := w.run(t, "plan", "-no-color", "-out=plan")
	require.Zero(t, code, out)
	require.Regexp(t, `Inferred source: dep_\w+ \(acme/chat/stable\)`, oneLine(out))
	require.Regexp(t, `source_deployment_id += \(known after apply\)`, out)
	w.apply(t, "plan")
}

// candidateOf cuts the candidate's block out of a house.
func candidateOf(hcl string) string {
	from := strings.Index(hcl, `resource "sluice_deployment" "candidate"`)
	to := strings.Index(hcl, `resource "sluice_rollout"`)
	return hcl[from:to]
}

// oneLine undoes how terraform breaks and frames the lines of a diagnostic.
func oneLine(out string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(out)), " ")
}

// An apply that was killed after the engine had made something, and before terraform
// wrote its state, leaves a name that is taken: the next apply says what it is and how
// to take it in, and then goes on.
func TestTerraformANameThatAnEarlierApplyTookIsTakenIn(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	ep, err := e.Client.CreateEndpoint(t.Context(), api.CreateEndpoint{Name: "chat"}, "")
	require.NoError(t, err)
	hcl := required + "resource \"sluice_endpoint\" \"chat\" {\n  name = \"chat\"\n}\n"
	w := newWorkspace(t, e, hcl)
	out, code := w.run(t, "apply", "-auto-approve", "-no-color", "-input=false")
	require.Equal(t, 1, code, out)
	require.Contains(t, oneLine(out), "There is already an endpoint \"chat\"")
	require.Contains(t, out, "id = \""+ep.ID+"\"")
	w.write(t, hcl+"import {\n  to = sluice_endpoint.chat\n  id = \""+ep.ID+"\"\n}\n")
	w.apply(t)
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, plan)
}
