//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/fleettest"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/process"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func TestMain(m *testing.M) {
	fleettest.ServeIfAsked()
	superviseIfAsked()
	goleak.VerifyTestMain(m)
}

// pools is an inventory of n places.
func pools(n int) []fleet.Pool {
	return []fleet.Pool{{Hardware: rollout.Hardware{ID: fleettest.Hardware, GPUCount: 1, Capacity: n}}}
}

// start makes a fleet in the folder that ends with the test.
func start(t *testing.T, cfg process.Config) *process.Fleet {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Pools == nil {
		cfg.Pools = pools(4)
	}
	cfg.PollInterval = 20 * time.Millisecond
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	f, err := process.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		require.NoError(t, f.Close(ctx))
	})
	return f
}

// noted is the part of a record that tests read.
type noted struct {
	PID, Port int
	GPUs      []int
}

// recorded reads a replica's record.
func recorded(t *testing.T, dir, replica string) noted {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "replicas", replica+".json")) //nolint:gosec // the test's folder
	require.NoError(t, err)
	var n noted
	require.NoError(t, json.Unmarshal(b, &n))
	return n
}

// running reports whether the process exists and is no zombie.
func running(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat")) //nolint:gosec // a process of the test
	if err != nil {
		return false
	}
	return !zombie(string(b))
}

func TestTheProcessFleetConforms(t *testing.T) {
	quick := fleettest.Serving(0)
	fleettest.Suite{
		In: func(t *testing.T, scenario func(*testing.T)) { scenario(t) },
		New: func(t *testing.T, o fleettest.Options) fleettest.Rig {
			dir := t.TempDir()
			f, err := process.New(process.Config{
				Dir: dir, Pools: pools(o.Capacity), Quiesce: o.Quiesce, Backoff: o.Backoff,
				Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			require.NoError(t, err)
			return fleettest.Rig{Fleet: f, Kill: func(r rollout.Replica) error {
				return syscall.Kill(recorded(t, dir, r.ID).PID, syscall.SIGKILL)
			}}
		},
		Quick: quick,
		Hangs: fleettest.Serving(time.Hour),
	}.Run(t)
}
