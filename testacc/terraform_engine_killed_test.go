package testacc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

// The engine is killed and started again, three times, in the middle of an apply of the
// real terraform: the wait goes on, the apply ends green, and there is one rollout.
func TestTerraformApplyOutlivesAKilledEngine(t *testing.T) {
	t.Parallel()
	k := newKillable(t, processEngine)
	ep, source, target := k.deploy(t)
	e := &testEngine{Server: &serve.Server{APIURL: "http://" + k.api}, Client: k.client, Key: k.key}
	w := newWorkspace(t, e, required+`provider "sluice" {}
resource "sluice_rollout" "test" {
  endpoint_id          = "`+ep.ID+`"
  source_deployment_id = "`+source.ID+`"
  target_deployment_id = "`+target.ID+`"
  canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "2s" }
}
`)
	cmd, out := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
	require.NoError(t, cmd.Start())
	r := e.activeRollout(t)
	for range 3 {
		k.kill()
		before, _ := k.phaseOf(t.Context(), ep.ID, r.ID)
		require.Eventually(t, func() bool { // it has come on before the next blow
			now, _ := k.phaseOf(t.Context(), ep.ID, r.ID)
			return now.Sluice != nil && (before.Sluice == nil || now.Sluice.Phase != before.Sluice.Phase || engineclient.Terminal(now.State))
		}, 20*time.Second, 20*time.Millisecond)
	}
	require.NoError(t, cmd.Wait(), out)
	require.NotContains(t, out.String(), "not watched")
	all, err := engineclient.Collect(k.client.Rollouts(t.Context(), ep.ID, ""))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "COMPLETED", engineclient.Short(all[0].State))
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, plan)
}
