package testacc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A person's cancel outlives the state: an apply that knows nothing of the rollout takes
// the record in and starts nothing; only a replace on purpose does.
func TestTerraformACanceledSpecIsNotStartedAgainWhenItsStateIsLost(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(house{rollout: slowRollout}))
	cmd, out := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
	require.NoError(t, cmd.Start())
	live := e.activeRollout(t)
	_, err := e.Client.CancelRollout(t.Context(), live.EndpointID, live.ID, api.Control{Reason: "not today"})
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), out.String())
	_, code := w.run(t, "state", "rm", "sluice_rollout.test")
	require.Zero(t, code)

	plan, code := w.run(t, "plan", "-no-color", "-input=false")
	require.Zero(t, code, plan)
	require.Contains(t, oneLine(plan), "This rollout has been canceled, and is not started again")
	require.Contains(t, plan, live.ID)
	w.apply(t)
	count := func() (n int, states []string) {
		for r, err := range e.Client.Rollouts(t.Context(), live.EndpointID, "") {
			require.NoError(t, err)
			n, states = n+1, append(states, engineclient.Short(r.State))
		}
		return n, states
	}
	n, states := count()
	require.Equal(t, 1, n, "%v", states)
	again, code := w.run(t, "plan", "-no-color", "-input=false", "-detailed-exitcode")
	require.Zero(t, code, again)

	replace, text := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false", "-replace=sluice_rollout.test")
	require.NoError(t, replace.Run(), text.String())
	n, states = count()
	require.Equal(t, 1, n, "the canceled record is deleted by the replace")
	require.Equal(t, []string{"COMPLETED"}, states)
}

// After a rollout its target serves with the bounds that the rollout gave it. A target
// that is imported then, under the configuration of before, is not stopped by it.
func TestTerraformAnImportedTargetIsNotStoppedByBoundsOfBefore(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(house{rollout: "blue_green = {}"}))
	w.apply(t)
	ids := e.ids(t)
	_, code := w.run(t, "state", "rm", "sluice_deployment.candidate")
	require.Zero(t, code)
	out, code := w.run(t, "import", "-no-color", "-input=false", "sluice_deployment.candidate", ids["chat"]+"/"+ids["candidate"])
	require.Zero(t, code, out)
	out, code = w.run(t, "apply", "-auto-approve", "-no-color", "-input=false")
	require.Equal(t, 1, code, out)
	require.Contains(t, oneLine(out), "serves all of its endpoint's traffic and is not stopped")
	require.Contains(t, oneLine(out), "autoscaling = { min_replicas = 1, max_replicas = 1 }")
}
