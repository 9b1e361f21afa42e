package testacc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needsTerraform skips, visibly, what the installed terraform cannot do yet.
func (w *workspace) needsTerraform(t *testing.T, major, minor int, what string) {
	t.Helper()
	raw, code := w.run(t, "version", "-json")
	require.Zero(t, code, raw)
	var v struct {
		Version string `json:"terraform_version"`
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &v), raw)
	parts := strings.SplitN(v.Version, ".", 3)
	require.Len(t, parts, 3, v.Version)
	has, err := strconv.Atoi(parts[0])
	require.NoError(t, err)
	hasMinor, err := strconv.Atoi(parts[1])
	require.NoError(t, err)
	banner, _ := w.run(t, "version")
	if strings.HasPrefix(banner, "OpenTofu") && minor >= 14 {
		t.Skipf("%s: Terraform's alone; this is OpenTofu %s (the same is tested at the protocol in provider/)", what, v.Version)
	}
	if has < major || has == major && hasMinor < minor {
		t.Skipf("%s: needs terraform %d.%d; this is %s (the same is tested at the protocol in provider/)", what, major, minor, v.Version)
	}
}

// An id alone is enough to import: its endpoint is looked for.
func TestTerraformImportsByIDAlone(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	hcl := realHouse(e.house(`blue_green = {}`))
	w := newWorkspace(t, e, hcl)
	w.apply(t)
	raw, code := w.run(t, "show", "-json")
	require.Zero(t, code, raw)
	var shown struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string `json:"address"`
					Values  struct {
						ID string `json:"id"`
					} `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &shown), raw)
	require.Len(t, shown.Values.Root.Resources, 4)
	for _, r := range shown.Values.Root.Resources {
		out, code := w.run(t, "state", "rm", r.Address)
		require.Zero(t, code, out)
		out, code = w.run(t, "import", "-no-color", "-input=false", r.Address, r.Values.ID)
		require.Zero(t, code, out)
	}
	// The target serves now, with the bounds that the rollout gave it.
	w.write(t, strings.Replace(hcl, "{ min_replicas = 0, max_replicas = 0 }", "{ min_replicas = 1, max_replicas = 1 }", 1))
	plan, code := w.run(t, "plan", "-no-color")
	require.Zero(t, code, plan)
	require.NotContains(t, plan, "# sluice_deployment.candidate")
	require.NotContains(t, plan, "# sluice_rollout.test", "an imported rollout plans nothing")
	require.NotContains(t, plan, "# sluice_endpoint.chat")
	out, code := w.run(t, "state", "rm", "sluice_rollout.test")
	require.Zero(t, code, out)
	out, code = w.run(t, "import", "-no-color", "-input=false", "sluice_rollout.test", "rol_nowhere")
	require.Equal(t, 1, code)
	require.Contains(t, out, "ENDPOINT_ID/rol_nowhere")
}

func TestTerraformImportsByIdentity(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.needsTerraform(t, 1, 12, "import by identity")
	w.apply(t)
	id, code := w.run(t, "state", "show", "-no-color", "sluice_endpoint.chat")
	require.Zero(t, code, id)
	_, id, _ = strings.Cut(id, "id                = \"")
	id, _, _ = strings.Cut(id, "\"")
	out, code := w.run(t, "state", "rm", "sluice_endpoint.chat")
	require.Zero(t, code, out)
	w.write(t, realHouse(e.house(""))+"\nimport {\n  to       = sluice_endpoint.chat\n  identity = { id = \""+id+"\" }\n}\n")
	require.Contains(t, w.apply(t), "1 imported, 0 added, 0 changed, 0 destroyed")
}

// The examples of the list resources run against an engine that has what they look
// for.
func TestTerraformQueryRunsTheExamples(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.needsTerraform(t, 1, 14, "list resources")
	w.apply(t)
	for _, kind := range []string{"endpoint", "deployment", "rollout"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "list-resources", "sluice_"+kind, "list-resource.tfquery.hcl"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, kind+".tfquery.hcl"), text, 0o600))
	}
	out, code := w.run(t, "query", "-no-color")
	require.Zero(t, code, out)
	require.Contains(t, out, "list.sluice_endpoint.chat")
}
