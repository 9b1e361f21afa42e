package testacc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// firstSchema is a configuration and the state that the provider's first version wrote
// of it, before there were identities, drift, timeouts of its own and a way to steer.
const firstSchema = "testdata/first-schema"

// A state that the first version wrote is read by this one: nothing is lost, and nothing
// is planned. Only the ids and addresses in it are those of this test's engine.
func TestAStateOfTheFirstVersionPlansNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	hcl, err := os.ReadFile(filepath.Join(firstSchema, "main.tf"))
	require.NoError(t, err)
	w := newWorkspace(t, e, string(hcl))
	w.env = append(w.env, "TF_VAR_window=1s")
	w.apply(t)
	made := w.outputs(t)

	first, err := os.ReadFile(filepath.Join(firstSchema, "state.json"))
	require.NoError(t, err)
	var wrote struct {
		Outputs map[string]struct {
			Value string `json:"value"`
		} `json:"outputs"`
	}
	require.NoError(t, json.Unmarshal(first, &wrote))
	text := strings.ReplaceAll(string(first), "http://127.0.0.1:45361", e.GatewayURL)
	if host := os.Getenv("TF_ACC_PROVIDER_HOST"); host != "" { // OpenTofu's registry
		text = strings.ReplaceAll(text, "registry.terraform.io", host)
	}
	for name, v := range wrote.Outputs {
		require.NotEmpty(t, made[name], name)
		text = strings.ReplaceAll(text, v.Value, made[name])
	}
	path := filepath.Join(w.dir, "terraform.tfstate")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

	out, code := w.run(t, "plan", "-no-color", "-input=false", "-detailed-exitcode")
	require.Zero(t, code, out)
	w.apply(t)
	after, err := os.ReadFile(path) //nolint:gosec // a folder of this test
	require.NoError(t, err)
	requireKept(t, instances(t, []byte(text)), instances(t, after))
}

// instances are the attributes of a state's resources by type and name.

func instances(t *testing.T, state []byte) map[string]any {
	t.Helper()
	var s struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				Attributes map[string]any `json:"attributes"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(state, &s))
	out := map[string]any{}
	for _, r := range s.Resources {
		require.Len(t, r.Instances, 1)
		out[r.Type+"."+r.Name] = r.Instances[0].Attributes
	}
	return out
}

// live are the attributes that tell what stands: a refresh writes them anew.
var live = []string{"live_min_replicas", "live_max_replicas", "ready_replicas", "status", "traffic_split", "initial_traffic_weight"}

// requireKept finds every value of one state in another that may have more.
func requireKept(t *testing.T, before, after map[string]any) {
	t.Helper()
	require.Len(t, after, len(before))
	for name, was := range before {
		for k, v := range was.(map[string]any) {
			is := after[name].(map[string]any)[k]
			fields, nested := v.(map[string]any)
			switch {
			case slices.Contains(live, k):
				require.NotNil(t, is, "%s.%s", name, k)
			case nested:
				require.Subset(t, is, fields, "%s.%s", name, k)
			default:
				require.Equal(t, v, is, "%s.%s", name, k)
			}
		}
	}
}
