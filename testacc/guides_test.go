package testacc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// block is a fenced piece of a guide.
var block = regexp.MustCompile("(?ms)^```(shell|text)\n(.*?)^```$")

// checkout is a folder that looks like one of this repository to whoever follows a
// guide: examples/ as copies, since terraform writes beside what it reads, with sluice
// and terraform on the PATH and the provider found as the guides say.
func checkout(t *testing.T, e *testEngine) *workspace {
	t.Helper()
	w := newWorkspace(t, e, "")
	require.NoError(t, os.CopyFS(filepath.Join(w.dir, "examples"), os.DirFS(filepath.Join("..", "examples"))))
	bin := t.TempDir()
	require.NoError(t, os.Symlink(os.Getenv("SLUICE_TEST_BINARY"), filepath.Join(bin, "sluice")))
	terraform := os.Getenv("TF_ACC_TERRAFORM_PATH")
	require.NotEmpty(t, terraform)
	require.NoError(t, os.Symlink(terraform, filepath.Join(bin, "terraform")))
	w.env = append(w.env, "PATH="+bin+":"+os.Getenv("PATH"), "TF_CLI_ARGS=-no-color", "TF_INPUT=0")
	return w
}

// follow runs every shell block of a guide, one after the other in one shell, as
// somebody does who pastes them, and finds each line of the text block behind it in
// what it printed. A text block before the first shell block is not output.
func (w *workspace) follow(t *testing.T, guide string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "guides", guide))
	require.NoError(t, err)
	script := "set -e\n"
	var promised []string
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		switch {
		case b[1] == "shell":
			if strings.HasPrefix(b[2], "#!") {
				continue // a script that is shown, not a line to paste
			}
			script += fmt.Sprintf("echo '=== %d'\n%s", len(promised), b[2])
			promised = append(promised, "")
		case len(promised) > 0:
			promised[len(promised)-1] += b[2]
		}
	}
	require.NotEmpty(t, promised, "the guide has nothing to do")
	sh := exec.CommandContext(t.Context(), "bash", "-c", script)
	sh.Dir, sh.Env = w.dir, w.env
	out, err := sh.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for n, text := range promised {
		_, said, _ := strings.Cut(string(out), fmt.Sprintf("=== %d\n", n))
		said, _, _ = strings.Cut(said, fmt.Sprintf("=== %d\n", n+1))
		for line := range strings.Lines(text) {
			require.Contains(t, said, strings.TrimSpace(line), "block %d of %s", n+1, guide)
		}
	}
}

// The figures of the guide are what its commands print, without an engine.
func TestGuideToGatesIsFollowedLiterally(t *testing.T) {
	t.Parallel()
	w := checkout(t, startEngine(t, demoEngine))
	for i, kv := range w.env {
		if strings.HasPrefix(kv, "SLUICE_") {
			w.env[i] = "" // nobody is asked
		}
	}
	w.follow(t, "gates-and-samples.md")
}

// A pair as a script left it is taken in without a change, rolled out, and then plans
// nothing.
func TestGuideToMigratingFromAScriptIsFollowedLiterally(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	e.scripted(t)
	e.trafficTo(t, "demo/chat", 120)
	w := checkout(t, e)
	w.env = append(w.env, "TF_VAR_pause=100ms", "TF_VAR_window=1s")
	w.follow(t, "migrating-from-a-script.md")
}

// The script that the guide replaces does what the guide says of it.
func TestTheScriptOfTheGuideMovesTheTraffic(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	endpoint, source, target := e.scripted(t)
	w := checkout(t, e)
	sh := exec.CommandContext(t.Context(), "sh", "examples/migrating/script.sh")
	w.env = append(w.env, "PAUSE=1")
	sh.Dir, sh.Env = w.dir, w.env
	out, err := sh.CombinedOutput()
	require.NoError(t, err, "%s", out)
	old, err := e.Client.GetDeployment(t.Context(), endpoint, source)
	require.NoError(t, err)
	require.Zero(t, *old.Autoscaling.MaxReplicas)
	ep, err := e.Client.GetEndpoint(t.Context(), endpoint)
	require.NoError(t, err)
	for _, share := range ep.TrafficSplit {
		require.True(t, share.DeploymentID == target || share.Weight == 0, "%+v", ep.TrafficSplit)
	}
}

// scripted makes the endpoint and the two deployments that the script moves between.
func (e *testEngine) scripted(t *testing.T) (endpoint, source, target string) {
	t.Helper()
	ep, err := e.Client.CreateEndpoint(t.Context(), api.CreateEndpoint{Name: "chat"}, "")
	require.NoError(t, err)
	one, none := 1, 0
	a, err := e.Client.CreateDeployment(t.Context(), ep.ID, api.CreateDeployment{Name: "qwen25", Model: "demo/qwen2.5-7b", Config: "cr_demo_stable", Autoscaling: api.Autoscaling{MinReplicas: &one, MaxReplicas: &one}}, "")
	require.NoError(t, err)
	b, err := e.Client.CreateDeployment(t.Context(), ep.ID, api.CreateDeployment{Name: "qwen35", Model: "demo/qwen3.5-9b", Config: "cr_demo_good", Autoscaling: api.Autoscaling{MinReplicas: &none, MaxReplicas: &none}}, "")
	require.NoError(t, err)
	_, err = e.Client.SetWeight(t.Context(), ep.ID, a.ID, 1)
	require.NoError(t, err)
	require.True(t, e.untilServed(t.Context(), "demo/chat"))
	return ep.ID, a.ID, b.ID
}
