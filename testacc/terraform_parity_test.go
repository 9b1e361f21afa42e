package testacc

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// parityEngine knows the configs of the examples and a few more, fast, with room for all.
var parityEngine = strings.Replace(demoEngine, "capacity: 8", "capacity: 60", 1)

// parityPlan is what both doors say of a folder.
type parityPlan struct {
	Changes map[string]plannedChange
	Outputs map[string]plannedOutput
}

type plannedChange struct {
	Actions []string       `json:"actions"`
	After   map[string]any `json:"after"`
	Unknown any            `json:"after_unknown"`
}

type plannedOutput struct {
	Actions []string `json:"actions"`
	After   any      `json:"after"`
	Unknown any      `json:"after_unknown"`
}

func plannedIn(t *testing.T, doc []byte) parityPlan {
	t.Helper()
	var read struct {
		ResourceChanges []struct {
			Address string
			Mode    string
			Change  plannedChange
		} `json:"resource_changes"`
		Outputs map[string]plannedOutput `json:"output_changes"`
	}
	require.NoError(t, json.Unmarshal(doc, &read), string(doc))
	out := parityPlan{Changes: map[string]plannedChange{}, Outputs: read.Outputs}
	for _, c := range read.ResourceChanges {
		if c.Mode == "managed" {
			out.Changes[c.Address] = c.Change
		}
	}
	return out
}

// parityFolder is one folder that both doors plan.
type parityFolder struct {
	dir   string
	vars  []string // of the command line
	waits bool     // its rollout parks or takes too long to be applied here
}

// sluice runs the built command on the workspace's folder.
func (w *workspace) sluice(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv("SLUICE_TEST_BINARY"), args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// copyFolder opens a workspace on a copy of a folder, all files that Terraform reads.
func copyFolder(t *testing.T, e *testEngine, dir string) *workspace {
	t.Helper()
	w := newWorkspace(t, e, "")
	require.NoError(t, os.Remove(filepath.Join(w.dir, "main.tf")))
	if dir == fragments {
		w.compose(t)
		return w
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range entries {
		if strings.Contains(f.Name(), ".tf") {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, f.Name()), text, 0o600))
		}
	}
	return w
}

// fragments stands for the snippets of examples/resources, which are one folder together.
const fragments = "../examples/resources"

func (w *workspace) compose(t *testing.T) {
	t.Helper()
	text := required + "provider \"sluice\" {}\n"
	for _, kind := range []string{"sluice_endpoint", "sluice_deployment", "sluice_rollout"} {
		one, err := os.ReadFile(filepath.Join(fragments, kind, "resource.tf"))
		require.NoError(t, err)
		text += string(one)
	}
	w.write(t, text)
}

// bothPlan plans by both doors and compares what they say.
func (w *workspace) bothPlan(t *testing.T, vars []string) (theirs, ours []byte) {
	t.Helper()
	out, code := w.run(t, append([]string{"plan", "-no-color", "-input=false", "-out=plan.bin"}, vars...)...)
	require.Zero(t, code, out)
	raw, code := w.run(t, "show", "-json", "plan.bin")
	require.Zero(t, code, raw)
	said, errs, code := w.sluice(t, append([]string{"plan", ".", "--json"}, doubled(vars)...)...)
	require.Zero(t, code, errs)
	want, got := plannedIn(t, []byte(raw)), plannedIn(t, []byte(said))
	require.NotEmpty(t, want.Changes)
	require.Equal(t, keys(want.Changes), keys(got.Changes), "addresses")
	for address, change := range want.Changes {
		require.Equal(t, change.Actions, got.Changes[address].Actions, address)
		require.Equal(t, change.After, got.Changes[address].After, address)
		require.Equal(t, change.Unknown, got.Changes[address].Unknown, address)
	}
	require.Equal(t, keys(want.Outputs), keys(got.Outputs), "outputs")
	for name, output := range want.Outputs {
		require.Equal(t, output, got.Outputs[name], name)
	}
	return []byte(raw), []byte(said)
}

// doubled gives flags two dashes, as our command has them.
func doubled(vars []string) []string {
	out := make([]string, 0, len(vars))
	for _, v := range vars {
		out = append(out, "-"+v)
	}
	return out
}

func keys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// parityFolders are the examples that declare resources, and the folders that were
// written for the purpose.
func parityFolders(t *testing.T) map[string]parityFolder {
	t.Helper()
	out := map[string]parityFolder{}
	for name, f := range map[string]parityFolder{
		"canary":            {vars: []string{"-var=window=1s"}},
		"canary-regression": {vars: []string{"-var=window=1s"}},
		"circuit-breaker":   {vars: []string{"-var=window=1s"}},
		"gates":             {vars: []string{"-var=window=1s"}},
		"reconcile/prod":    {vars: []string{"-var=window=1s"}},
		"rehearse":          {waits: true},
		"resources":         {waits: true},
	} {
		f.dir = filepath.Join("..", "examples", name)
		out["examples/"+name] = f
	}
	folders, err := filepath.Glob(filepath.Join("testdata", "parity", "*"))
	require.NoError(t, err)
	for _, dir := range folders {
		_, err := os.Stat(filepath.Join(dir, "plan-only"))
		out[filepath.Base(dir)] = parityFolder{dir: dir, waits: err == nil}
	}
	return out
}

// The same folder, planned by terraform and by sluice plan on the same engine, from
// nothing and once it is applied: same changes, same journeys, same outputs.
func TestTerraformAndSluicePlanTheSame(t *testing.T) {
	t.Parallel()
	slots := make(chan struct{}, 2)
	rules := policyOfExamples(t)
	for name, f := range parityFolders(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			w := copyFolder(t, startEngine(t, parityEngine), f.dir)
			theirs, ours := w.bothPlan(t, f.vars)
			require.Equal(t, verdictOn(t, rules, theirs), verdictOn(t, rules, ours), "one policy, one verdict")
			if f.waits {
				return
			}
			w.apply(t, f.vars...)
			w.bothPlan(t, f.vars)
		})
	}
}

func policyOfExamples(t *testing.T) *policy.Rules {
	t.Helper()
	rules, err := policy.Load(os.DirFS(filepath.Join("..", "examples", "policy", "rego")))
	require.NoError(t, err)
	return rules
}

func verdictOn(t *testing.T, rules *policy.Rules, plan []byte) policy.Verdict {
	t.Helper()
	v, err := rules.Judge(t.Context(), policy.Question{Plan: plan, Now: wednesday})
	require.NoError(t, err)
	return v
}

// What only Terraform can evaluate is refused by sluice plan, at its place and with what to
// do instead: never planned as if it were not there.
func TestTerraformAloneEvaluatesTheseAndSluicePlanSaysSo(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join("testdata", "parity-refused", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	e := startEngine(t, parityEngine)
	for _, dir := range folders {
		text, err := os.ReadFile(filepath.Join(dir, "main.tf"))
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		says, ok := strings.CutPrefix(first, "# refused: ")
		require.True(t, ok, dir)
		_, errs, code := copyFolder(t, e, dir).sluice(t, "plan", ".")
		require.Equal(t, 1, code, "%s: %s", dir, errs)
		require.Contains(t, errs, says, dir)
		require.Contains(t, errs, "main.tf:", dir)
		require.Contains(t, errs, "hint: ", dir)
	}
}

// elsewhere are the folders of examples with resources that are not planned from nothing.
var elsewhere = map[string]string{
	"canary-regression/reverse":        "names ids of what must stand: TestTerraformAndSluicePlanRefuseIDsThatNameNothing",
	"rehearse/reverse":                 "the same",
	"migrating":                        "takes in what stands: TestTerraformAndSluicePlanTakeInWhatStands",
	"resources/sluice_endpoint":        "a snippet, planned with the others as examples/resources",
	"resources/sluice_deployment":      "the same",
	"resources/sluice_rollout":         "the same",
	"resources/sluice_traffic_split":   "only Terraform evaluates it: testdata/parity-refused/traffic-split",
	"data-sources/sluice_rollout_gate": "a snippet of a data source",
}

// No folder of the examples is forgotten.
func TestTerraformAndSluicePlanEveryExampleWithResources(t *testing.T) {
	planned := parityFolders(t)
	seen := 0
	require.NoError(t, filepath.WalkDir("../examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".tf" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "\nresource \"sluice_") && !strings.HasPrefix(string(text), "resource \"sluice_") {
			return err
		}
		seen++
		name := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../examples/"))
		_, both := planned["examples/"+name]
		require.True(t, both || elsewhere[name] != "", "%s is planned by no test", name)
		return nil
	}))
	require.Greater(t, seen, 8)
}

// Ids that name nothing are refused by both, before anything is made.
func TestTerraformAndSluicePlanRefuseIDsThatNameNothing(t *testing.T) {
	t.Parallel()
	w := copyFolder(t, startEngine(t, parityEngine), "../examples/canary-regression/reverse")
	vars := []string{"-var=endpoint_id=ep_none", "-var=qwen25_id=dep_none", "-var=qwen35_id=dep_nil"}
	out, code := w.run(t, append([]string{"plan", "-no-color", "-input=false"}, vars...)...)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "There is no endpoint ep_none")
	said, errs, code := w.sluice(t, append([]string{"apply", ".", "--yes"}, doubled(vars)...)...)
	require.Equal(t, 1, code, said+errs)
	require.Contains(t, errs, "nothing was changed: sluice_rollout.back is blocked: there is no endpoint ep_none")
}

// What stands already is taken in by both: by import blocks there, by its names here. Only
// the weight is told otherwise, since an import keeps the one that it found.
func TestTerraformAndSluicePlanTakeInWhatStands(t *testing.T) {
	t.Parallel()
	e := startEngine(t, parityEngine)
	made := copyFolder(t, e, "../examples/canary")
	require.NoError(t, os.Remove(filepath.Join(made.dir, "rollout.tf")))
	made.apply(t)
	ids := made.outputs(t)
	w := copyFolder(t, e, "../examples/migrating")
	vars := []string{"-var=window=1s", "-var=endpoint_id=" + ids["endpoint_id"], "-var=qwen25_id=" + ids["qwen25_id"], "-var=qwen35_id=" + ids["qwen35_id"]}
	out, code := w.run(t, append([]string{"plan", "-no-color", "-input=false", "-out=plan.bin"}, vars...)...)
	require.Zero(t, code, out)
	raw, code := w.run(t, "show", "-json", "plan.bin")
	require.Zero(t, code, raw)
	said, errs, code := w.sluice(t, append([]string{"plan", ".", "--json"}, doubled(vars)...)...)
	require.Zero(t, code, errs)
	want, got := plannedIn(t, []byte(raw)), plannedIn(t, []byte(said))
	require.Equal(t, keys(want.Changes), keys(got.Changes))
	for address, change := range want.Changes {
		require.Equal(t, change.Actions, got.Changes[address].Actions, address)
		delete(change.After, "initial_traffic_weight")
		delete(got.Changes[address].After, "initial_traffic_weight")
		require.Equal(t, change.After, got.Changes[address].After, address)
	}
}
