//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/fleettest"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/process"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// health is a server that answers 503 while the file exists; it returns its port.
func health(t *testing.T, sick string) int {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(sick); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	var port int
	_, err := fmt.Sscanf(srv.Listener.Addr().String(), "127.0.0.1:%d", &port)
	require.NoError(t, err)
	return port
}

// envSupervise makes the test binary a server with a fleet in the named folder.
const envSupervise = "FLEETTEST_SUPERVISE"

// superviseIfAsked keeps two deployments running until it is killed. Once all is
// ready it prints their statuses as one line.
func superviseIfAsked() {
	dir := os.Getenv(envSupervise)
	if dir == "" {
		return
	}
	ctx := context.Background()
	f, err := process.New(process.Config{Dir: dir, Pools: pools(4), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	lines := make(chan string, 1)
	f.Subscribe(func(string) {
		a, err := f.Observe(ctx, "wanted")
		b, err2 := f.Observe(ctx, "orphan")
		if err == nil && err2 == nil && a.Ready == 2 && b.Ready == 1 {
			line, _ := json.Marshal(append(a.Replicas, b.Replicas...))
			select {
			case lines <- string(line):
			default:
			}
		}
	})
	for name, n := range map[string]int{"wanted": 2, "orphan": 1} {
		if err := f.Ensure(ctx, rollout.Workload{Deployment: name, Model: "m", Config: fleettest.Serving(0), Bounds: rollout.Bounds{Min: 1, Max: n}}); err != nil {
			panic(err)
		}
	}
	if err := f.SetDesired(ctx, "wanted", 2); err != nil {
		panic(err)
	}
	fmt.Println(<-lines)
	select {}
}

// crashed runs a server in the folder, kills it with SIGKILL once all is ready,
// and returns the replicas that it leaves: two of "wanted", one of "orphan".
func crashed(t *testing.T, dir string) []rollout.Replica {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), envSupervise+"="+dir)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var left []rollout.Replica
	err = json.NewDecoder(out).Decode(&left)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	require.NoError(t, err)
	require.Len(t, left, 3)
	t.Cleanup(func() {
		for _, r := range left { // whatever the test did not end
			if b, err := os.ReadFile(filepath.Join(dir, "replicas", r.ID+".json")); err == nil { //nolint:gosec // the test's folder
				var n noted
				if json.Unmarshal(b, &n) == nil && n.PID > 0 {
					_ = syscall.Kill(-n.PID, syscall.SIGKILL)
				}
			}
		}
	})
	return left
}

// answers reports whether the replica's model server is healthy.
func answers(t *testing.T, r rollout.Replica) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Address+"/health", nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

func TestAfterAKilledServerTheNextOneAdoptsItsReplicas(t *testing.T) {
	dir := t.TempDir()
	left := crashed(t, dir)
	before := make(map[string]noted)
	for _, r := range left {
		before[r.ID] = recorded(t, dir, r.ID)
		require.True(t, answers(t, r), "a replica survives its server")
	}

	f := start(t, process.Config{Dir: dir})
	st := until(t, f, "wanted", ready(2)) // probed at once, before anybody ensures
	// A floor of 1 keeps both: what the autoscaler had added is not lost by a restart.
	require.NoError(t, f.Ensure(t.Context(), rollout.Workload{
		Deployment: "wanted", Model: "m", Config: fleettest.Serving(0), Bounds: rollout.Bounds{Min: 1, Max: 2}}))
	require.NoError(t, f.Reconcile(t.Context(), []string{"wanted"}))
	until(t, f, "orphan", ready(0))
	require.False(t, running(before[left[2].ID].PID), "the replica of an unwanted deployment is ended")

	now := until(t, f, "wanted", ready(2))
	require.Equal(t, 2, now.Desired)
	require.ElementsMatch(t, []string{left[0].ID, left[1].ID}, []string{st.Replicas[0].ID, st.Replicas[1].ID})
	for _, r := range now.Replicas {
		require.Equal(t, before[r.ID], recorded(t, dir, r.ID))
		require.True(t, running(before[r.ID].PID))
		require.True(t, answers(t, r))
		require.Zero(t, r.Restarts)
	}

	// An adopted process that dies is seen, though it is not our child, and is
	// replaced by one that is.
	victim := now.Replicas[0]
	require.NoError(t, syscall.Kill(before[victim.ID].PID, syscall.SIGKILL))
	until(t, f, "wanted", func(st rollout.FleetStatus) bool {
		return st.Ready == 2 && st.Replicas[0].Restarts == 1
	})
	require.NotEqual(t, before[victim.ID].PID, recorded(t, dir, victim.ID).PID)
}

func TestACrashBetweenForkAndRecordLosesNoProcess(t *testing.T) {
	dir := t.TempDir()
	left := crashed(t, dir)
	forget := func(replica, field string) {
		path := filepath.Join(dir, "replicas", replica+".json")
		b, err := os.ReadFile(path) //nolint:gosec // the test's folder
		require.NoError(t, err)
		var rec map[string]any
		require.NoError(t, json.Unmarshal(b, &rec))
		rec[field] = 0
		b, err = json.Marshal(rec)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	intent, gone := recorded(t, dir, left[0].ID), recorded(t, dir, left[1].ID)
	forget(left[0].ID, "pid") // an intent whose process was born
	require.NoError(t, os.Remove(filepath.Join(dir, "replicas", left[1].ID+".json")))
	forget(left[2].ID, "created") // a pid that was used again: not the recorded process
	reused := recorded(t, dir, left[2].ID)

	f := start(t, process.Config{Dir: dir})
	st := until(t, f, "wanted", ready(1))
	require.Equal(t, left[0].ID, st.Replicas[0].ID)
	require.Equal(t, intent.PID, recorded(t, dir, left[0].ID).PID)
	require.Empty(t, until(t, f, "orphan", func(rollout.FleetStatus) bool { return true }).Replicas)

	require.NoError(t, f.Ensure(t.Context(), rollout.Workload{
		Deployment: "wanted", Model: "m", Config: fleettest.Serving(0), Bounds: rollout.Bounds{Min: 1, Max: 2}}))
	require.NoError(t, f.Reconcile(t.Context(), []string{"wanted"}))
	require.False(t, running(gone.PID), "a process that no record names is ended")
	require.False(t, running(reused.PID), "it carries the fleet's name, so it is a stray")
	require.True(t, running(intent.PID))
}

func TestAnAdoptedReplicaIsDrainedAndStoppedLikeAnyOther(t *testing.T) {
	dir := t.TempDir()
	left := crashed(t, dir)
	drained := make(chan string, 10)
	f := start(t, process.Config{Dir: dir, Quiesce: func(_ context.Context, r rollout.Replica) error {
		drained <- r.Address
		return nil
	}})
	require.NoError(t, f.Reconcile(t.Context(), []string{"wanted"}))
	until(t, f, "orphan", ready(0))
	require.Equal(t, left[2].Address, <-drained)
	until(t, f, "wanted", ready(2)) // wanted, though nobody has ensured it yet
}

func TestReplicasThatAreLeftAreAdoptedByTheNextFleet(t *testing.T) {
	dir := t.TempDir()
	cfg := process.Config{Dir: dir, Pools: pools(4), OnClose: process.LeaveReplicas}
	first, err := process.New(cfg)
	require.NoError(t, err)
	ensure(t, first, "dep", fleettest.Serving(0), 1)
	st := until(t, first, "dep", ready(1))
	_, err = process.New(cfg)
	require.ErrorContains(t, err, "another server", "one fleet a folder")
	require.NoError(t, first.Close(t.Context()))
	require.ErrorIs(t, first.Ensure(t.Context(), rollout.Workload{}), fleet.ErrClosed)
	require.True(t, answers(t, st.Replicas[0]))

	second := start(t, process.Config{Dir: dir})
	ensure(t, second, "dep", fleettest.Serving(0), 1)
	now := until(t, second, "dep", ready(1))
	require.Equal(t, st.Replicas[0].ID, now.Replicas[0].ID)
	require.Equal(t, st.Replicas[0].Address, now.Replicas[0].Address)
}

func TestADamagedRecordIsReportedAndItsProcessEnded(t *testing.T) {
	dir := t.TempDir()
	left := crashed(t, dir)
	before := recorded(t, dir, left[0].ID)
	path := filepath.Join(dir, "replicas", left[0].ID+".json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	f := start(t, process.Config{Dir: dir})
	require.NoError(t, f.Reconcile(t.Context(), []string{"wanted", "orphan"}))
	require.Eventually(t, func() bool { return !running(before.PID) }, 10*time.Second, 10*time.Millisecond)
	require.FileExists(t, path)
}

func TestAnEmptyIdentityIsRefusedInsteadOfOrphaningWhatRuns(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fleet-id"), nil, 0o600))
	_, err := process.New(process.Config{Dir: dir})
	require.ErrorContains(t, err, "fleet-id is empty")
}
