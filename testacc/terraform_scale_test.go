package testacc

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/testacc/crowd"
)

// A plan that changes nothing costs the engine as many calls for fifty rollouts of an
// endpoint as for two, and one more than for one: they are listed once.
func TestTerraformRefreshCallsGrowWithEndpointsAndNotWithRollouts(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	whole := realHouse(e.house(`blue_green = {}`))
	w := newWorkspace(t, e, whole)
	w.apply(t)
	w.apply(t, "-refresh-only") // what the rollout did to its deployments
	rollout, err := json.Marshal(e.newest(t))
	require.NoError(t, err)
	path := filepath.Join(w.dir, "terraform.tfstate")
	state, err := os.ReadFile(path)
	require.NoError(t, err)
	calls := map[string]map[int]int{"plan": {}, "refresh": {}}
	for _, n := range []int{1, 2, 50} {
		c, err := crowd.New(e.APIURL, "proj_test", rollout, n)
		require.NoError(t, err)
		s := httptest.NewServer(c)
		t.Cleanup(s.Close)
		many, err := crowd.State(state, "sluice_rollout.test", n)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, many, 0o600))
		w.write(t, strings.Replace(whole, `"sluice_rollout" "test" {`, fmt.Sprintf("\"sluice_rollout\" \"many\" {\n  count = %d", n), 1))
		at := &workspace{dir: w.dir, env: append(append([]string(nil), w.env...), "SLUICE_ENGINE_URL="+s.URL)}
		require.Contains(t, at.plan(t, 0), "No changes.")
		calls["plan"][n] = c.Calls()
		out, code := at.run(t, "plan", "-no-color", "-input=false", "-refresh-only")
		require.Zero(t, code, out)
		require.Contains(t, out, "No changes.")
		calls["refresh"][n] = c.Calls()
	}
	t.Log(calls)
	for kind, at := range calls {
		require.Equal(t, at[2], at[50], kind)
		require.LessOrEqual(t, at[50], at[1]+1, kind)
	}
}
