package testacc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A push starts a canary, it parks on a real regression, a person takes it back, and no
// request is lost.
func TestTheReconcilersDemoEndsWell(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "examples"), os.DirFS(filepath.Join("..", "examples"))))
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o700))
	binary, err := os.ReadFile(os.Getenv("SLUICE_TEST_BINARY"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "bin", "sluice"), binary, 0o700)) //nolint:gosec // it is run
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	demo := exec.CommandContext(ctx, "bash", filepath.Join(root, "examples", "reconcile", "demo.sh"))
	demo.Cancel = func() error { return demo.Process.Signal(syscall.SIGTERM) }
	demo.WaitDelay = time.Minute
	out, err := demo.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, line := range []string{"✓ prod  in step", "METRIC_REGRESSION", "takes rol_", "↺ prod  ahead of Git", ", 0 non-200", "nothing is left running"} {
		require.Contains(t, string(out), line)
	}
}
