package testacc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// demoEngine knows the configs that the examples name, fast.
var demoEngine = strings.NewReplacer("cr_stable", "cr_demo_stable", "demo/stable", "demo/qwen2.5-7b", "cr_slow", "cr_demo_candidate", "cr_good", "cr_demo_good",
	"demo/candidate", "demo/qwen3.5-9b", "slug: acme", "slug: demo").Replace(fastEngine)

// example opens a workspace on a copy of an example.
func example(t *testing.T, e *testEngine, name string) *workspace {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "examples", filepath.FromSlash(name), "*.tf"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
		all.WriteByte('\n')
	}
	return newWorkspace(t, e, all.String())
}

func (w *workspace) outputs(t *testing.T) map[string]string {
	t.Helper()
	raw, code := w.run(t, "output", "-json")
	require.Zero(t, code, raw)
	var values map[string]struct {
		Value string `json:"value"`
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &values), raw)
	out := map[string]string{}
	for k, v := range values {
		out[k] = v.Value
	}
	return out
}

func TestExampleCanaryCompletes(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	w := example(t, e, "canary")
	log := filepath.Join(w.dir, "provider.log")
	w.env = append(w.env, "TF_LOG_PROVIDER=INFO", "TF_LOG_PATH="+log)
	w.apply(t, "-var=window=1s")
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	for _, line := range []string{"step 1 of 3, 10% on the target, STABILIZING", "step 2 of 3, 50% on the target, STABILIZING", "step 3 of 3, 100% on the target"} {
		require.Contains(t, string(said), line, "each step is logged as it happens")
	}
	require.Equal(t, "COMPLETED", w.outputs(t)["state"])
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode", "-var=window=1s")
	require.Zero(t, code, plan)
}

// The example of the guide: parks at 10 %, is canceled by a person, and goes back by
// a reverse rollout from HCL, with no request failed.
func TestExampleRegressionParksIsCanceledAndGoesBack(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	// A p95 needs 20 requests a side in the window: four times as many leave room for a
	// machine that is busy with something else.
	allAnswered := e.trafficTo(t, "demo/chat", 120)
	w := example(t, e, "canary-regression")
	out := w.apply(t, "-var=window=8s")
	require.Contains(t, out, "is parked: METRIC_REGRESSION at step 1 of 3 with 10% on the target")
	require.Contains(t, out, "Not touched: the split stays at 90/10")
	for _, verb := range []string{"--resume", "--promote", "--cancel"} {
		require.Contains(t, out, verb)
	}
	v := w.outputs(t)
	require.Equal(t, "SYSTEM_PAUSED", v["state"])
	_, err := e.Client.CancelRollout(t.Context(), v["endpoint_id"], v["rollout_id"], api.Control{Reason: "p95 latency regression"})
	require.NoError(t, err)
	e.reaches(t, v["endpoint_id"], v["rollout_id"], "CANCELED")
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode", "-refresh=true", "-var=window=8s")
	require.Contains(t, plan, "was CANCELED and is not started again by itself")
	require.NotContains(t, plan, "must be replaced")
	_ = code // the outputs follow the state

	back := example(t, e, "canary-regression/reverse")
	back.apply(t, "-var=endpoint_id="+v["endpoint_id"], "-var=qwen25_id="+v["qwen25_id"], "-var=qwen35_id="+v["qwen35_id"])
	require.Equal(t, "COMPLETED", back.outputs(t)["state"])
	old, err := e.Client.GetDeployment(t.Context(), v["endpoint_id"], v["qwen35_id"])
	require.NoError(t, err)
	require.Equal(t, api.DeploymentStopped, old.Status.State)
	require.NoError(t, allAnswered(nil))
	active, found, err := e.Client.ActiveRollout(t.Context(), v["endpoint_id"])
	require.NoError(t, err)
	require.False(t, found, "%s", engineclient.Short(active.State))
}

// Every snippet of the registry pages is valid against the schema.
func TestExampleSnippetsAreValid(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	var all strings.Builder
	for _, f := range []string{
		"provider/provider.tf", "resources/sluice_endpoint/resource.tf", "resources/sluice_deployment/resource.tf", "resources/sluice_rollout/resource.tf",
		"data-sources/sluice_rollout_preview/data-source.tf", "data-sources/sluice_rollout_gate/data-source.tf",
	} {
		text, err := os.ReadFile(filepath.Join("..", "examples", filepath.FromSlash(f)))
		require.NoError(t, err)
		all.Write(text)
		all.WriteByte('\n')
	}
	w := newWorkspace(t, e, all.String())
	out, code := w.run(t, "validate", "-no-color")
	require.Zero(t, code, out)
	folder, err := filepath.Abs("../examples")
	require.NoError(t, err)
	out, code = w.run(t, "fmt", "-check", "-diff", "-recursive", folder)
	require.Zero(t, code, out)
}
