package planning

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// K: the engine deletes no endpoint that has deployments, so the plan says so first.
func TestAnEndpointThatServesOrKeepsDeploymentsIsNotEnded(t *testing.T) {
	endpoint, a, b := at(declaration.EndpointKind, "chat"), at(declaration.DeploymentKind, "a"), at(declaration.DeploymentKind, "b")
	all := Bindings{endpoint: "ep_1", a: "dep_a", b: "dep_b"}
	find := func(c Changes) Change {
		t.Helper()
		got, ok := c.Find(endpoint.String())
		require.True(t, ok)
		return got
	}
	renamed := find(compared(t, strings.Replace(chat, `name = "chat"`, `name = "talk"`, 1), world(), all))
	require.Equal(t, Replace, renamed.Action)
	require.Contains(t, renamed.Blocked, "it serves traffic (a with 100 %) and is not replaced: declare a second sluice_endpoint")

	gone := find(compared(t, "", world(), all))
	require.Equal(t, Delete, gone.Action)
	require.Contains(t, gone.Blocked, "it serves traffic (a with 100 %) and is not deleted")

	idle := world()
	idle.Endpoints[0].TrafficSplit = []api.TrafficWeight{}
	require.Empty(t, find(compared(t, "", idle, all)).Blocked, "its deployments go first")
	foreign := find(compared(t, "", idle, Bindings{endpoint: "ep_1", a: "dep_a"}))
	require.Contains(t, foreign.Blocked, "it still has b, which this plan does not delete")

	idle.Endpoints[0].All = nil
	require.Empty(t, find(compared(t, `resource "sluice_endpoint" "chat" { name = "talk" }`, idle, all)).Blocked, "nothing hangs on it")
}
