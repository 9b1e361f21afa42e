package testacc

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// However an apply is told to end in the middle of a wait: the rollout goes on, nothing
// is tainted, the next apply attaches to it and ends, and no second one is made.
func TestTerraformSignalledApplyIsTakenUpByTheNext(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]os.Signal{
		"SIGINT": {syscall.SIGINT}, "SIGTERM": {syscall.SIGTERM}, "SIGINT twice": {syscall.SIGINT, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, fastEngine)
			w := newWorkspace(t, e, realHouse(e.house("")))
			w.apply(t) // a second SIGINT ends terraform before it writes its state: then only the rollout is lost
			w.write(t, realHouse(e.house(slowRollout)))
			cmd, out := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
			require.NoError(t, cmd.Start())
			r := e.activeRollout(t)
			e.reaches(t, r.EndpointID, r.ID, "STABILIZING")
			began := time.Now()
			for _, s := range signals { // to terraform alone, as a supervisor does
				require.NoError(t, cmd.Process.Signal(s))
			}
			require.Error(t, cmd.Wait(), "an interrupted run is not green: %s", out)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // a provider that terraform left at once
			require.Less(t, time.Since(began), 5*time.Second)
			show, _ := w.run(t, "show", "-no-color")
			require.NotContains(t, show, "tainted")
			w.apply(t, "-lock=false")
			all, err := engineclient.Collect(e.Client.Rollouts(t.Context(), r.EndpointID, ""))
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, r.ID, all[0].ID)
			require.Equal(t, "COMPLETED", engineclient.Short(all[0].State))
		})
	}
}
