package testacc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// The examples of the actions, invoked one after the other on a live rollout by a
// terraform that has actions; an older one is skipped, and says so.
func TestTerraformInvokesTheActionsOfTheExamples(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	h := e.house(`canary = { steps = [{ traffic = 10 }, { traffic = 100 }], step_interval = "1h" }
  wait = false`)
	w := newWorkspace(t, e, realHouse(h))
	w.needsTerraform(t, 1, 14, "actions")
	hcl := realHouse(h)
	for _, verb := range []string{"pause", "resume", "promote", "cancel"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "actions", "sluice_rollout_"+verb, "action.tf"))
		require.NoError(t, err)
		hcl += string(text)
	}
	w.write(t, strings.ReplaceAll(hcl, "sluice_rollout.candidate.", "sluice_rollout.test."))
	w.apply(t)
	r := e.activeRollout(t)
	for _, c := range []struct{ verb, shows string }{{"pause", "PAUSED"}, {"resume", "resume accepted"}, {"promote", "promote accepted"}, {"cancel", "CANCELED"}} {
		out, code := w.run(t, "apply", "-auto-approve", "-no-color", "-input=false", "-invoke=action.sluice_rollout_"+c.verb+".candidate")
		require.Zero(t, code, out)
		require.Contains(t, out, c.shows)
	}
	now, err := e.Client.GetRollout(t.Context(), r.EndpointID, r.ID)
	require.NoError(t, err)
	require.Equal(t, "CANCELED", engineclient.Short(now.State))
}
