package testacc

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A standing split from the example, then a rollout that moves it: the old
// configuration is refused with the line that accepts what serves, which is then
// accepted, edited by hand, and left as it is by a destroy.
func TestTerraformStandingSplitAndARollout(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	made := required + snippets(t, "resources/sluice_endpoint/resource.tf", "resources/sluice_deployment/resource.tf")
	example := snippets(t, "resources/sluice_traffic_split/resource.tf")
	w := newWorkspace(t, e, made+example)
	w.apply(t)
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, plan)

	rollout := "resource \"sluice_rollout\" \"swap\" {\n  endpoint_id = sluice_endpoint.chat.id\n  target_deployment_id = sluice_deployment.qwen35.id\n  source_deployment_id = sluice_deployment.qwen25.id\n  blue_green = {}\n}\n"
	w.write(t, made+example+rollout)
	w.apply(t)
	plan, code = w.run(t, "plan", "-no-color")
	require.Equal(t, 1, code, plan)
	require.Contains(t, plan, "has moved the split since this was applied")
	line := regexp.MustCompile(`weights = (\{ "dep_[0-9a-f]+" = [0-9.]+ \})`).FindStringSubmatch(plan)
	require.NotNil(t, line, plan)

	accepted := made + "resource \"sluice_traffic_split\" \"chat\" {\n  endpoint_id = sluice_endpoint.chat.id\n  weights = " + line[1] + "\n}\n" + rollout
	w.write(t, accepted)
	require.Contains(t, w.apply(t), "0 added, 1 changed, 0 destroyed")
	plan, code = w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, plan)

	for ep, err := range e.Client.Endpoints(t.Context(), engineclient.ListOptions{}) {
		require.NoError(t, err)
		split := []api.TrafficWeight{{DeploymentID: ep.TrafficSplit[0].DeploymentID, Weight: 5}}
		_, err = e.Client.UpdateEndpoint(t.Context(), ep.ID, "trafficSplit", api.UpdateEndpoint{TrafficSplit: &split})
		require.NoError(t, err)
	}
	plan, code = w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Equal(t, 2, code, plan)
	require.Contains(t, plan, "The split was changed outside of Terraform")
	require.Contains(t, plan, `changed by the key "first key"`)
	w.write(t, made+rollout)
	plan, code = w.run(t, "plan", "-no-color")
	require.Zero(t, code, plan)
	require.Contains(t, plan, "stays as it is")
	w.apply(t)
	for ep, err := range e.Client.Endpoints(t.Context(), engineclient.ListOptions{}) {
		require.NoError(t, err)
		require.Equal(t, 5.0, ep.TrafficSplit[0].Weight)
	}
}
