//go:build unix

package process_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/fleettest"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/process"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func itoa(n int) string { return strconv.Itoa(n) }

// zombie reads the state out of /proc/PID/stat.
func zombie(stat string) bool {
	_, rest, _ := strings.Cut(stat, ") ")
	return strings.HasPrefix(rest, "Z")
}

// until waits for the deployment to be as asked, woken by the fleet.
func until(t *testing.T, f *process.Fleet, deployment string, holds func(rollout.FleetStatus) bool) rollout.FleetStatus {
	t.Helper()
	changed := make(chan struct{}, 1)
	cancel := f.Subscribe(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer cancel()
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	for {
		st, err := f.Observe(t.Context(), deployment)
		require.NoError(t, err)
		if holds(st) {
			return st
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("%s stays %+v", deployment, st)
		}
	}
}

// ready holds when exactly n replicas are there and ready.
func ready(n int) func(rollout.FleetStatus) bool {
	return func(st rollout.FleetStatus) bool { return st.Ready == n && len(st.Replicas) == n }
}

// failing holds when a replica has failed.
func failing(st rollout.FleetStatus) bool {
	return len(st.Replicas) > 0 && st.Replicas[0].State == rollout.ReplicaFailed
}

// ensure asks for n replicas.
func ensure(t *testing.T, f *process.Fleet, deployment string, c rollout.ServingConfig, n int) {
	t.Helper()
	require.NoError(t, f.Ensure(t.Context(), rollout.Workload{
		Deployment: deployment, Model: "test/model", Config: c, Bounds: rollout.Bounds{Min: n, Max: n},
	}))
}

// shell is a config that runs a script.
func shell(script string) rollout.ServingConfig {
	c := fleettest.Serving(0)
	c.Command, c.Env = []string{"/bin/sh", "-c", script}, nil
	return c
}

// log reads a replica's log.
func log(t *testing.T, f *process.Fleet, replica string) string {
	t.Helper()
	b, err := os.ReadFile(f.LogPath(replica))
	require.NoError(t, err)
	return string(b)
}

func TestAReplicaKnowsItsPortModelAndGPUs(t *testing.T) {
	t.Setenv("SLUICE_API_KEY", "secret")
	f := start(t, process.Config{
		Pools: []fleet.Pool{
			{Hardware: rollout.Hardware{ID: fleettest.Hardware, GPUCount: 2, Capacity: -1}, GPUs: []int{7, 4, 5, 6}},
			{Hardware: rollout.Hardware{ID: "1x", GPUCount: 1, Capacity: -1}, GPUs: []int{4, 5}},
		},
		Backoff: fleet.Backoff{First: time.Hour, Max: time.Hour},
	})
	c := shell("echo {port}=$PORT {model}=$SLUICE_MODEL {deployment}=$SLUICE_DEPLOYMENT {replica}=$SLUICE_REPLICA gpus=$CUDA_VISIBLE_DEVICES key=$SLUICE_API_KEY own=$OWN; exit 3")
	c.Env = map[string]string{"OWN": "x"}
	ensure(t, f, "dep", c, 3)
	st := until(t, f, "dep", func(st rollout.FleetStatus) bool {
		return st.Replicas[0].State == rollout.ReplicaFailed && st.Replicas[1].State == rollout.ReplicaFailed
	})
	require.Equal(t, []int{4, 5}, st.Replicas[0].GPUs)
	require.Equal(t, []int{6, 7}, st.Replicas[1].GPUs)
	require.Equal(t, rollout.ReplicaPending, st.Replicas[2].State)
	require.Equal(t, "Ended by itself before it was ready: exit status 3", st.Replicas[0].Message)
	require.Regexp(t, fmt.Sprintf(`^(\d+)=(\d+) test/model=test/model dep=dep %[1]s=%[1]s gpus=4,5 key= own=x\n$`, st.Replicas[0].ID),
		log(t, f, st.Replicas[0].ID))

	ensure(t, f, "one", func() rollout.ServingConfig { c := c; c.Hardware = "1x"; return c }(), 1)
	require.Equal(t, 1, until(t, f, "one", func(rollout.FleetStatus) bool { return true }).Unplaced, "its GPUs belong to the other pool's replicas")
	list, err := f.Hardware(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 2, 0}, []int{list[0].Capacity, list[0].Free, list[1].Capacity, list[1].Free})
}

func TestAnOpenPortThatSays503IsNotReady(t *testing.T) {
	f := start(t, process.Config{})
	c := fleettest.Serving(1500 * time.Millisecond)
	begin := time.Now()
	ensure(t, f, "dep", c, 1)
	st := until(t, f, "dep", func(st rollout.FleetStatus) bool {
		return st.Replicas[0].Message == "Starting: /health answers 503"
	})
	require.Equal(t, rollout.ReplicaStarting, st.Replicas[0].State)
	until(t, f, "dep", ready(1))
	require.GreaterOrEqual(t, time.Since(begin), 1500*time.Millisecond)
}

func TestAColdStartBeyondItsBudgetFailsAndIsTriedAgain(t *testing.T) {
	f := start(t, process.Config{Backoff: fleet.Backoff{First: 10 * time.Millisecond}})
	c := shell("echo $$; exec sleep 3600")
	c.ColdStart = 200 * time.Millisecond
	ensure(t, f, "dep", c, 1)
	st := until(t, f, "dep", failing)
	require.Equal(t, "Not ready within its cold start of 200ms", st.Replicas[0].Message)
	var pid int
	_, err := fmt.Sscan(log(t, f, st.Replicas[0].ID), &pid)
	require.NoError(t, err)
	require.False(t, running(pid), "it is stopped before it counts as failed")
	until(t, f, "dep", func(st rollout.FleetStatus) bool { return st.Replicas[0].Restarts > 0 })
}

func TestAReadyReplicaThatStopsAnsweringIsTakenOutAndComesBack(t *testing.T) {
	sick := filepath.Join(t.TempDir(), "sick")
	c := fleettest.Serving(0)
	c.Probe.Failures = 2
	srv := health(t, sick) // stands for the process's own server, so that the test rules its health
	c.Command, c.Env = []string{"/bin/sh", "-c", "exec sleep 3600"}, nil
	g := start(t, process.Config{PickPort: func() (int, error) { return srv, nil }})
	ensure(t, g, "dep", c, 1)
	until(t, g, "dep", ready(1))
	require.NoError(t, os.WriteFile(sick, nil, 0o600))
	st := until(t, g, "dep", func(st rollout.FleetStatus) bool { return st.Ready == 0 })
	require.Equal(t, rollout.ReplicaStarting, st.Replicas[0].State)
	require.Equal(t, "Not ready any more: /health answers 503, 2 times in a row", st.Replicas[0].Message)
	require.NoError(t, os.Remove(sick))
	st = until(t, g, "dep", ready(1))
	require.Zero(t, st.Replicas[0].Restarts)
}

func TestAChildThatIgnoresSIGTERMIsKilledAfterItsStopTimeout(t *testing.T) {
	dir := t.TempDir()
	f := start(t, process.Config{Dir: dir})
	c := fleettest.Stubborn(fleettest.Serving(0))
	c.StopTimeout = 100 * time.Millisecond
	ensure(t, f, "dep", c, 1)
	pid := recorded(t, dir, until(t, f, "dep", ready(1)).Replicas[0].ID).PID
	begin := time.Now()
	ensure(t, f, "dep", c, 0)
	until(t, f, "dep", ready(0))
	require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond)
	require.False(t, running(pid))
}

func TestAWorkerThatOutlivesItsLeaderIsEndedWithIt(t *testing.T) {
	f := start(t, process.Config{Backoff: fleet.Backoff{First: time.Hour, Max: time.Hour}})
	ensure(t, f, "dep", shell("sleep 3600 & echo $!; exit 1"), 1)
	st := until(t, f, "dep", failing)
	worker, err := strconv.Atoi(strings.TrimSpace(log(t, f, st.Replicas[0].ID)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !running(worker) }, 10*time.Second, 10*time.Millisecond)
}

func TestABackOffGrowsAndAnOrderEndsItAtOnce(t *testing.T) {
	f := start(t, process.Config{Backoff: fleet.Backoff{First: 50 * time.Millisecond, Max: time.Hour}})
	var at []time.Time
	ensure(t, f, "dep", shell("exit 1"), 1)
	for n := range 4 {
		until(t, f, "dep", func(st rollout.FleetStatus) bool { return failing(st) && st.Replicas[0].Restarts == n })
		at = append(at, time.Now())
	}
	for i, least := range []time.Duration{50, 100, 200} {
		require.GreaterOrEqual(t, at[i+1].Sub(at[i]), least*time.Millisecond-20*time.Millisecond)
	}
	ensure(t, f, "dep", shell("exit 1"), 0)
	until(t, f, "dep", ready(0))
}

func TestACommandThatDoesNotExistSaysSo(t *testing.T) {
	f := start(t, process.Config{Backoff: fleet.Backoff{First: time.Hour, Max: time.Hour}})
	c := fleettest.Serving(0)
	c.Command = []string{"/nowhere/at-all"}
	ensure(t, f, "dep", c, 1)
	require.Contains(t, until(t, f, "dep", failing).Replicas[0].Message, "Cannot start: ")
	c.Command = nil
	require.ErrorContains(t, f.Ensure(t.Context(), rollout.Workload{Deployment: "x", Config: c, Bounds: rollout.Bounds{Min: 1, Max: 1}}), "no command")
}

func TestAPortThatSomebodyTookIsReplacedWithoutAFailure(t *testing.T) {
	var lc net.ListenConfig
	other, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	taken := other.Addr().(*net.TCPAddr).Port
	var asked int
	f := start(t, process.Config{PickPort: func() (int, error) {
		if asked++; asked <= 2 {
			return taken, nil
		}
		l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		return l.Addr().(*net.TCPAddr).Port, l.Close()
	}})
	ensure(t, f, "dep", fleettest.Serving(0), 1)
	st := until(t, f, "dep", ready(1))
	require.Zero(t, st.Replicas[0].Restarts)
	require.NotEqual(t, other.Addr().String(), st.Replicas[0].Address)
	require.Equal(t, 3, asked)
}

func TestALogIsRotatedByCopyWhileItsProcessWrites(t *testing.T) {
	f := start(t, process.Config{LogMaxBytes: 1000, LogFiles: 2})
	c := fleettest.Saying(fleettest.Serving(0), "a line of the model server")
	ensure(t, f, "dep", c, 1)
	path := f.LogPath(until(t, f, "dep", ready(1)).Replicas[0].ID)
	require.Eventually(t, func() bool {
		_, err := os.Stat(path + ".2")
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	for _, part := range []string{path, path + ".1"} {
		b, err := os.ReadFile(part) //nolint:gosec // the test's folder
		require.NoError(t, err)
		require.NotContains(t, string(b), "\x00", "a writer with an offset of its own leaves a hole")
		require.Less(t, len(b), 20_000)
	}
	old, err := os.ReadFile(path + ".1") //nolint:gosec // the test's folder
	require.NoError(t, err)
	require.Contains(t, string(old), "a line of the model server\n")
	_, err = os.Stat(path + ".3")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLogsOfGoneReplicasAreKeptUpToALimit(t *testing.T) {
	dir := t.TempDir()
	f := start(t, process.Config{Dir: dir, LogsKept: 1})
	for range 3 {
		ensure(t, f, "dep", fleettest.Serving(0), 1)
		until(t, f, "dep", ready(1))
		ensure(t, f, "dep", fleettest.Serving(0), 0)
		until(t, f, "dep", ready(0))
	}
	require.Eventually(t, func() bool {
		names, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
		return err == nil && len(names) == 1
	}, 10*time.Second, 10*time.Millisecond)
}

func TestCloseThatMayNotWaitKills(t *testing.T) {
	dir := t.TempDir()
	f, err := process.New(process.Config{Dir: dir, Pools: pools(1), Quiesce: func(ctx context.Context, _ rollout.Replica) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	require.NoError(t, err)
	ensure(t, f, "dep", fleettest.Stubborn(fleettest.Serving(0)), 1)
	pid := recorded(t, dir, until(t, f, "dep", ready(1)).Replicas[0].ID).PID
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.Close(ctx), context.DeadlineExceeded)
	require.False(t, running(pid))
	left, err := filepath.Glob(filepath.Join(dir, "replicas", "*.json"))
	require.NoError(t, err)
	require.Empty(t, left)
}
