package testacc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// snippets are examples of the registry pages, one after the other.
func snippets(t *testing.T, names ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("..", "examples", filepath.FromSlash(name)))
		require.NoError(t, err)
		all.Write(text)
		all.WriteByte('\n')
	}
	return all.String()
}

// The examples of the data sources, added to a configuration of the examples of the
// resources that is applied.
func TestExampleDataSourcesRead(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	made := required + snippets(t, "resources/sluice_endpoint/resource.tf", "resources/sluice_deployment/resource.tf")
	w := newWorkspace(t, e, made)
	w.apply(t)
	w.write(t, made+snippets(t, "data-sources/sluice_endpoint/data-source.tf", "data-sources/sluice_deployment/data-source.tf",
		"data-sources/sluice_rollout/data-source.tf", "data-sources/sluice_rollouts/data-source.tf", "data-sources/sluice_hardware/data-source.tf", "data-sources/sluice_events/data-source.tf"))
	out := w.apply(t)
	for _, line := range []string{`cheapest = "1xtest"`, "ready_replicas = 1", "parked = []", `"set_share" = 1`} {
		require.Contains(t, out, line)
	}
	require.Contains(t, out, "Z first key", "the key that set the split, by its name")
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, "what is read twice is the same twice: %s", plan)
}

// The examples of the functions, evaluated by the real terraform without an engine.
func TestExampleFunctionsEvaluate(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	w := newWorkspace(t, e, required+snippets(t, "functions/ladder/function.tf", "functions/soak_seconds/function.tf", "functions/replicas_for_share/function.tf", "functions/parse_rollout_id/function.tf"))
	out := w.apply(t)
	for _, line := range []string{"wait = 390", "wait_of_a_faster_engine = 310", "first_step = 1", `endpoint = "ep_0123456789"`, "batches = 4", "\"source_replicas\" = 3"} {
		require.Contains(t, out, line)
	}
	w.write(t, required+"output \"x\" {\n  value = provider::sluice::ladder(\"canary\", [50, 10, 100], 4, null)\n}\n")
	out, code := w.run(t, "plan", "-no-color")
	require.Equal(t, 1, code)
	require.Contains(t, out, `Invalid value for "steps" parameter`)
}
