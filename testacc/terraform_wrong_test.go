package testacc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// oneLine undoes how terraform breaks and frames the lines of a diagnostic.
func oneLine(out string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(out)), " ")
}
