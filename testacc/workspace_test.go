package testacc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// workspace is a folder in which the real terraform runs the real binary.
type workspace struct {
	dir string
	env []string
}

// newWorkspace writes a configuration and points terraform at the built provider.
func newWorkspace(t *testing.T, e *testEngine, hcl string) *workspace {
	t.Helper()
	binary := os.Getenv("SLUICE_TEST_BINARY")
	require.NotEmpty(t, binary, "SLUICE_TEST_BINARY names the built binary; make test sets it")
	dir, plugins := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(plugins, "terraform-provider-sluice")))
	rc := filepath.Join(plugins, "terraform.rc")
	require.NoError(t, os.WriteFile(rc, []byte(fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"sluice-dev/sluice\" = %q\n  }\n  direct {}\n}\n", plugins)), 0o600))
	w := &workspace{dir: dir}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TF_") && !strings.HasPrefix(kv, "SLUICE_") && !strings.HasPrefix(kv, "TOGETHER_") {
			w.env = append(w.env, kv)
		}
	}
	w.env = append(w.env, "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "SLUICE_ENGINE_URL="+e.APIURL, "SLUICE_API_KEY="+e.Key)
	w.write(t, hcl)
	return w
}

const required = `terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}
`

func (w *workspace) write(t *testing.T, hcl string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(hcl), 0o600))
}

// command is terraform in the workspace, with its output.
func (w *workspace) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	path := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if path == "" {
		path = "terraform"
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.env, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, &out
}

// run returns the output and the exit code.
func (w *workspace) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd, out := w.command(t.Context(), args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func (w *workspace) apply(t *testing.T, args ...string) string {
	t.Helper()
	out, code := w.run(t, append([]string{"apply", "-auto-approve", "-no-color", "-input=false"}, args...)...)
	require.Zero(t, code, out)
	return out
}

// activeRollout waits for the endpoint's open rollout.
func (e *testEngine) activeRollout(t *testing.T) api.Rollout {
	t.Helper()
	var found api.Rollout
	require.Eventually(t, func() bool {
		for ep, err := range e.Client.Endpoints(t.Context(), engineclient.ListOptions{}) {
			if err != nil {
				return false
			}
			if r, ok, err := e.Client.ActiveRollout(t.Context(), ep.ID); err == nil && ok && r.State != engineclient.StatePending {
				found = r
				return true
			}
		}
		return false
	}, 30*time.Second, 20*time.Millisecond)
	return found
}

// slowRollout waits long enough in its first step for a signal to hit it.
const slowRollout = `canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "4s" }`

// realHouse is a house whose provider reads the environment.
func realHouse(h house) string {
	text := h.hcl()
	_, rest, _ := strings.Cut(text, "}\n")
	return required + "provider \"sluice\" {}\n" + rest
}

// unwrapped joins what terraform broke into lines and framed.
func unwrapped(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "│", " ")), " ")
}

// newest is the rollout that was made last.
func (e *testEngine) newest(t *testing.T) api.Rollout {
	t.Helper()
	var found api.Rollout
	for ep, err := range e.Client.Endpoints(t.Context(), engineclient.ListOptions{}) {
		require.NoError(t, err)
		for r, err := range e.Client.Rollouts(t.Context(), ep.ID, "") {
			require.NoError(t, err)
			if r.CreatedAt.After(found.CreatedAt.Time) {
				found = r
			}
		}
	}
	return found
}

func apiControl(reason string) api.Control { return api.Control{Reason: reason} }
