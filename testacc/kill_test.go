package testacc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// processEngine runs replicas as processes, with phases long enough to be hit.
const processEngine = `
project: {id: proj_test, slug: acme}
fleet: {driver: process}
hardware:
  - {id: 1xtest, capacity: 8}
configs:
  - id: cr_stable
    models: [demo/stable]
    hardware: 1xtest
    command: [sluice, modelserver, --cold-start, 300ms, --latency, "uniform(50ms,150ms)"]
    probe: {interval: 50ms}
    stop_timeout: 5s
  - id: cr_good
    models: [demo/candidate]
    hardware: 1xtest
    command: [sluice, modelserver, --cold-start, 700ms, --latency, "uniform(50ms,150ms)"]
    probe: {interval: 50ms}
    stop_timeout: 5s
timings:
  propagation: 600ms
  ingestion_lag: 300ms
  default_window: 2s
  minimum_window: 1s
  default_interval: 1s
  confirmation: 1s
  peek_every: 200ms
  gate_settle: 400ms
meter: {slot: 100ms, tolerance: 2s} # a dozen restarts lie in one window
`

// killable is an engine in a process of its own that can die at any moment and is
// started again on the same folder and addresses.
type killable struct {
	t       *testing.T
	dir     string
	binary  string
	api, gw string // host:port, fixed by the first start
	key     string
	client  *engineclient.Client
	cmd     *exec.Cmd

	mu   sync.Mutex
	down []window // when it could not answer
}

type window struct{ from, to time.Time }

func newKillable(t *testing.T, config string) *killable {
	t.Helper()
	k := &killable{t: t, dir: t.TempDir(), binary: os.Getenv("SLUICE_TEST_BINARY"), api: "127.0.0.1:0", gw: "127.0.0.1:0"}
	if k.binary == "" {
		k.binary = filepath.Join("..", "bin", "sluice")
	}
	binary, err := filepath.Abs(k.binary)
	require.NoError(t, err)
	k.binary = binary
	_, err = os.Stat(k.binary)
	require.NoError(t, err, "build it first: make build")
	require.NoError(t, os.WriteFile(filepath.Join(k.dir, "engine.yaml"), []byte(config), 0o600))
	k.start()
	t.Cleanup(k.stop)
	key, err := os.ReadFile(filepath.Join(k.dir, "data", "first-key"))
	require.NoError(t, err)
	k.key = strings.TrimSpace(string(key))
	k.connect()
	return k
}

// connect makes the client of the engine at the address that was told last.
func (k *killable) connect() {
	var err error
	k.client, err = engineclient.New(engineclient.Config{BaseURL: "http://" + k.api, APIKey: k.key, Retries: engineclient.Retries{Attempts: 30, First: 50 * time.Millisecond, Most: 200 * time.Millisecond}})
	require.NoError(k.t, err)
}

// start serves and returns once both addresses are told, which is after they are bound.
func (k *killable) start() {
	log, err := os.OpenFile(filepath.Join(k.dir, "engine.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(k.t, err)
	defer func() { _ = log.Close() }()
	k.cmd = exec.Command(k.binary, "serve", "--data", filepath.Join(k.dir, "data"), "--listen", k.api, "--gateway", k.gw, "--config", filepath.Join(k.dir, "engine.yaml"))
	k.cmd.Stderr = log
	out, err := k.cmd.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, k.cmd.Start())
	k.told(bufio.NewScanner(out))
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// told reads the addresses out of the server's first lines.
func (k *killable) told(lines *bufio.Scanner) {
	n := 0
	for n < 2 && lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "http://"); ok {
			address, _, _ = strings.Cut(address, "/")
			if to := []*string{&k.api, &k.gw}[n]; strings.HasSuffix(*to, ":0") { // the first start
				*to = address
			}
			n++
		}
	}
	require.Equal(k.t, 2, n, "the engine did not start: %s", k.log())
}

func (k *killable) log() string {
	text, _ := os.ReadFile(filepath.Join(k.dir, "engine.log"))
	return string(text)
}

// kill ends the server without a word and starts it again.
func (k *killable) kill() {
	from := time.Now()
	require.NoError(k.t, k.cmd.Process.Kill())
	_ = k.cmd.Wait()
	k.start()
	k.mu.Lock()
	k.down = append(k.down, window{from, time.Now()})
	k.mu.Unlock()
}

// stop ends the server in order and checks that it took its replicas along.
func (k *killable) stop() {
	pids := k.replicaPids()
	if k.cmd.Process.Signal(syscall.SIGTERM) == nil {
		done := make(chan error, 1)
		go func() { done <- k.cmd.Wait() }()
		select {
		case err := <-done:
			require.NoError(k.t, err, k.log())
		case <-time.After(20 * time.Second):
			_ = k.cmd.Process.Kill()
			k.t.Error("the engine did not stop in order")
		}
	}
	require.NotEmpty(k.t, pids)
	for _, pid := range pids {
		require.False(k.t, runs(pid), "replica %d was left behind", pid)
	}
}

// runs tells whether a process still does; one that ended and whose parent has not
// asked for it yet does not.
func runs(pid int) bool {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return false
	}
	status, err := p.Status()
	return err == nil && !slices.Contains(status, process.Zombie)
}

// replicaPids reads the fleet's records.
func (k *killable) replicaPids() []int {
	files, err := filepath.Glob(filepath.Join(k.dir, "data", "fleet", "replicas", "*.json"))
	require.NoError(k.t, err)
	var pids []int
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended just now
		}
		var record struct {
			PID int `json:"pid"`
		}
		require.NoError(k.t, json.Unmarshal(text, &record))
		if record.PID > 0 {
			pids = append(pids, record.PID)
		}
	}
	return pids
}

// excused reports whether a request overlapped a time when the server was dead.
func (k *killable) excused(from, to time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.down, func(w window) bool { return from.Before(w.to) && to.After(w.from) })
}

// witness is a client of the gateway that never stops asking.
type witness struct {
	k        *killable
	cancel   context.CancelFunc
	done     sync.WaitGroup
	mu       sync.Mutex
	requests int
	failed   []failure
}

type failure struct {
	from, to time.Time
	what     string
}

func (k *killable) witness(workers int) *witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := &witness{k: k, cancel: cancel}
	for n := range workers {
		w.done.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			for i := 0; ctx.Err() == nil; i++ {
				w.ask(client, fmt.Sprintf("%d-%d", n, i))
			}
		})
	}
	return w
}

func (w *witness) ask(client *http.Client, key string) {
	body, _ := json.Marshal(map[string]any{"model": "acme/chat", "prompt_cache_key": key, "messages": []map[string]string{{"role": "user", "content": "hi"}}})
	from := time.Now()
	what := ""
	res, err := client.Post("http://"+w.k.gw+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		what = err.Error()
	} else {
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			what = err.Error()
		} else if res.StatusCode != http.StatusOK {
			what = fmt.Sprintf("status %d: %s", res.StatusCode, text)
		}
	}
	w.mu.Lock()
	w.requests++
	if what != "" {
		w.failed = append(w.failed, failure{from, time.Now(), what})
	}
	w.mu.Unlock()
	if what != "" {
		time.Sleep(10 * time.Millisecond) // nobody is there: do not spin
	}
}

// unexcused ends the asking and returns what failed although the server was up.
func (w *witness) unexcused() []string {
	w.cancel()
	w.done.Wait()
	var out []string
	for _, f := range w.failed {
		if !w.k.excused(f.from, f.to) {
			out = append(out, f.what)
		}
	}
	return out
}

func (k *killable) deploy(t *testing.T) (ep api.Endpoint, source, target api.Deployment) {
	ctx := t.Context()
	ep, err := k.client.CreateEndpoint(ctx, api.CreateEndpoint{Name: "chat"}, "")
	require.NoError(t, err)
	two, none := 2, 0
	source, err = k.client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "stable", Model: "demo/stable", Autoscaling: api.Autoscaling{MinReplicas: &two}}, "")
	require.NoError(t, err)
	target, err = k.client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "candidate", Model: "demo/candidate", Autoscaling: api.Autoscaling{MinReplicas: &none}}, "")
	require.NoError(t, err)
	_, err = k.client.SetWeight(ctx, ep.ID, source.ID, 1)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		d, err := k.client.GetDeployment(ctx, ep.ID, source.ID)
		return err == nil && d.Status.ReadyReplicas == 2
	}, 20*time.Second, 20*time.Millisecond)
	return ep, source, target
}

// phaseOf is where a rollout is, "" when nobody answers.
func (k *killable) phaseOf(ctx context.Context, endpoint, id string) (api.Rollout, string) {
	r, err := k.client.GetRollout(ctx, endpoint, id)
	if err != nil || r.Sluice == nil {
		return r, ""
	}
	return r, r.Sluice.Phase
}

// TestKillInEveryPhase kills the server once in every phase of both steps of a
// canary, as soon as the phase is seen: the same rollout goes on at the same step,
// no event is told twice, no passed step runs again, and no request fails while the
// server is up.
func TestKillInEveryPhase(t *testing.T) {
	t.Parallel()
	k := newKillable(t, processEngine)
	ep, source, target := k.deploy(t)
	traffic := k.witness(8)
	ctx := t.Context()
	replicasBefore := replicaIDs(t, k, ep.ID, source.ID)

	percentile, budget := 95, 400.0
	r, err := k.client.CreateRollout(ctx, ep.ID, api.RolloutSpec{
		SourceDeploymentID: source.ID, TargetDeploymentID: target.ID,
		Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}},
		Metrics: []api.MetricRule{{Name: "router_latency", Stat: api.PrefixStat + "PERCENTILE", Percentile: &percentile,
			RegressionCheck: &api.RegressionCheck{Direction: api.PrefixDirection + "HIGHER_IS_WORSE", MaxRegressionPercent: &budget}}},
	}, "")
	require.NoError(t, err)
	k.kill() // PENDING: nothing may have been touched
	pending, err := k.client.GetRollout(ctx, ep.ID, r.ID)
	require.NoError(t, err)
	require.Equal(t, "ROLLOUT_STATE_PENDING", pending.State)
	require.Equal(t, replicasBefore, replicaIDs(t, k, ep.ID, source.ID), "the replicas are adopted, not started anew")
	_, err = k.client.StartRollout(ctx, ep.ID, r.ID)
	require.NoError(t, err)

	killed := map[string]bool{}
	step := 0
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) {
		now, phase := k.phaseOf(ctx, ep.ID, r.ID)
		if engineclient.Terminal(now.State) {
			break
		}
		require.NotContains(t, now.State, "PAUSED", "%+v", now.Status.Condition)
		if now.CurrentStep != nil {
			require.GreaterOrEqual(t, *now.CurrentStep, step, "a step is never gone back to")
			step = *now.CurrentStep
		}
		at := fmt.Sprintf("%d %s", step, phase)
		if phase == "" || killed[at] {
			continue
		}
		killed[at] = true
		k.kill()
		after, _ := k.phaseOf(ctx, ep.ID, r.ID)
		require.Equal(t, r.ID, after.ID)
		require.GreaterOrEqual(t, *after.CurrentStep, step)
	}
	end, err := k.client.GetRollout(ctx, ep.ID, r.ID)
	require.NoError(t, err)
	require.Equal(t, "ROLLOUT_STATE_COMPLETED", end.State, "%+v\n%s", end, k.log())

	for _, must := range []string{"0 SCALING", "0 PROPAGATING", "0 SOAKING", "0 GATING", "1 SCALING", "1 PROPAGATING", "1 SOAKING", "1 GATING"} {
		require.Contains(t, killed, must)
	}
	failed := traffic.unexcused()
	require.Empty(t, failed)
	k.requireNoEventTwice(t, ep.ID, r.ID)
	t.Logf("measured: %d kills (%s), %d requests, %d cut by a kill, 0 failed while the server was up", len(killed)+1, strings.Join(sortedKeys(killed), ", "), traffic.requests, len(traffic.failed))
}

func sortedKeys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func replicaIDs(t *testing.T, k *killable, endpoint, id string) []string {
	t.Helper()
	d, err := k.client.GetDeployment(t.Context(), endpoint, id)
	require.NoError(t, err)
	require.NotNil(t, d.Sluice)
	var ids []string
	for _, r := range d.Sluice.Replicas {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// requireNoEventTwice reads the rollout's feed: each happening of each step stands
// in it once.
func (k *killable) requireNoEventTwice(t *testing.T, endpoint, id string) {
	t.Helper()
	seen := map[string]int{}
	for e, err := range k.client.Events(t.Context(), endpoint, engineclient.EventQuery{SubjectID: id}) {
		require.NoError(t, err)
		at := "-"
		if e.Sluice != nil && e.Sluice.Step != nil {
			at = fmt.Sprint(*e.Sluice.Step)
		}
		seen[e.Type+" at step "+at]++
	}
	for what, n := range seen {
		require.Equal(t, 1, n, "%s is told %d times", what, n)
	}
	require.Greater(t, len(seen), 8)
}

// TestKillWhileParkedAndCanceling kills the server around a person's controls: a
// pause holds, and a cancel that was accepted ends in a frozen split.
func TestKillWhileParkedAndCanceling(t *testing.T) {
	t.Parallel()
	k := newKillable(t, processEngine)
	ep, source, target := k.deploy(t)
	traffic := k.witness(4)
	ctx := t.Context()
	r, err := k.client.CreateRollout(ctx, ep.ID, api.RolloutSpec{SourceDeploymentID: source.ID, TargetDeploymentID: target.ID, Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}}}, "")
	require.NoError(t, err)
	_, err = k.client.StartRollout(ctx, ep.ID, r.ID)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, p := k.phaseOf(ctx, ep.ID, r.ID); return p == "SOAKING" }, 20*time.Second, 5*time.Millisecond)
	_, err = k.client.PauseRollout(ctx, ep.ID, r.ID, api.Control{Reason: "hold"})
	require.NoError(t, err)
	k.kill()
	require.Eventually(t, func() bool {
		now, _ := k.phaseOf(ctx, ep.ID, r.ID)
		return now.State == "ROLLOUT_STATE_PAUSED" && *now.CurrentTrafficPercent == 50
	}, 10*time.Second, 10*time.Millisecond)
	k.kill()
	_, err = k.client.CancelRollout(ctx, ep.ID, r.ID, api.Control{Reason: "no"})
	require.NoError(t, err)
	k.kill()
	require.Eventually(t, func() bool {
		now, _ := k.phaseOf(ctx, ep.ID, r.ID)
		return now.State == "ROLLOUT_STATE_CANCELED"
	}, 10*time.Second, 10*time.Millisecond)
	after, err := k.client.GetEndpoint(ctx, ep.ID)
	require.NoError(t, err)
	require.Empty(t, after.ActiveRolloutID)
	for _, d := range after.Deployments {
		require.InDelta(t, 0.5, d.EstimatedEffectiveTrafficShare, 0.001, "frozen at what was served: %+v", after)
	}
	require.Empty(t, traffic.unexcused())
	k.requireNoEventTwice(t, ep.ID, r.ID)
}

// TestOrderlyRestartDuringASoak stops the server as an upgrade does, replicas and all,
// and starts it again: the rollout goes on at the same step by itself.
func TestOrderlyRestartDuringASoak(t *testing.T) {
	t.Parallel()
	k := newKillable(t, processEngine)
	ep, source, target := k.deploy(t)
	ctx := t.Context()
	r, err := k.client.CreateRollout(ctx, ep.ID, api.RolloutSpec{SourceDeploymentID: source.ID, TargetDeploymentID: target.ID, Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}}}, "")
	require.NoError(t, err)
	_, err = k.client.StartRollout(ctx, ep.ID, r.ID)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, p := k.phaseOf(ctx, ep.ID, r.ID); return p == "SOAKING" }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, k.cmd.Wait(), k.log())
	k.start()
	require.Eventually(t, func() bool {
		now, _ := k.phaseOf(ctx, ep.ID, r.ID)
		require.NotContains(t, now.State, "PAUSED", "%+v", now.Status.Condition)
		return now.State == "ROLLOUT_STATE_COMPLETED"
	}, 30*time.Second, 20*time.Millisecond)
}
