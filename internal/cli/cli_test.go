package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell runs commands against an engine.
type shell struct {
	t   *testing.T
	env map[string]string
}

// ran is what a command left.
type ran struct {
	t         *testing.T
	line      string
	code      int
	out, errs string
}

// A fault of our own ends with the code of a failure, and not with that of Go, which says
// that changes are pending.
func TestAPanicEndsWithTheCodeOfAFailure(t *testing.T) {
	var out, errs bytes.Buffer
	broken := func(string) string { panic("no such thing") }
	require.Equal(t, cli.ExitFailed, cli.Run(t.Context(), cli.Env{Args: []string{"ls"}, Out: &out, Err: &errs, Getenv: broken, Version: "1.2.3"}))
	require.Contains(t, errs.String(), "error: a fault of sluice 1.2.3, please report it: panic: no such thing")
	require.Contains(t, errs.String(), "goroutine")
}

func (s shell) run(line ...string) ran {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := cli.Run(ctx, cli.Env{Args: line, Out: &out, Err: &errs, Getenv: func(k string) string { return s.env[k] }, Version: "test"})
	return ran{s.t, strings.Join(line, " "), code, out.String(), errs.String()}
}

func (r ran) exits(code int, says ...string) ran {
	r.t.Helper()
	require.Equal(r.t, code, r.code, "%s\n%s%s", r.line, r.out, r.errs)
	for _, s := range says {
		require.Contains(r.t, r.out+r.errs, s, r.line)
	}
	return r
}

func (r ran) json() map[string]any {
	r.t.Helper()
	var v map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(r.out), &v), r.out)
	return v
}

const engineFile = `
project: {slug: demo}
fleet: {driver: simulated}
hardware:
  - {id: 1xsim, gpu_type: none, capacity: 20}
configs:
  - {id: cr_a, models: [m/old], hardware: 1xsim, simulated: {cold_start: 10ms, latency: 5ms}}
  - {id: cr_b, models: [m/new], hardware: 1xsim, simulated: {cold_start: 10ms, latency: 5ms}}
  - {id: cr_several, models: [m/x, m/y], hardware: 1xsim, simulated: {cold_start: 10ms, latency: 5ms}}
timings: {propagation: 200ms, stabilization: 200ms, default_interval: 1s, ready_deadline: 30s}
`

func served(t *testing.T) shell {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(engineFile), 0o600))
	f, err := serve.ReadFile(path)
	require.NoError(t, err)
	s, err := serve.Start(t.Context(), serve.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", GatewayListen: "127.0.0.1:0", File: f})
	require.NoError(t, err)
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		require.NoError(t, s.Stop(context.Background()))
	})
	return shell{t, map[string]string{"SLUICE_ENGINE_URL": s.APIURL, "SLUICE_API_KEY": s.FirstKey, "GATEWAY": s.GatewayURL}}
}

func TestWordsThatCannotBeMeantExitTwo(t *testing.T) {
	s := shell{t, map[string]string{"SLUICE_API_KEY": "k", "SLUICE_ENGINE_URL": "http://127.0.0.1:1"}}
	for _, line := range []string{
		"nonsense", "get", "get a b", "rollout", "ls --nonsense", "deploy m", "rollout x", "rollout x --canary --rolling",
		"rollout x --cancel", "rollout x --pause --resume", "rollout x --canary --pause", "update", "serve", "serve --data x --log-level loud",
		"modelserver --latency slow", "probe --gateway http://127.0.0.1:1", "events", "keys create",
	} {
		s.run(strings.Fields(line)...).exits(cli.ExitUsage, "error:")
	}
	shell{t, nil}.run("ls").exits(cli.ExitUsage, "SLUICE_API_KEY")
	for _, line := range []string{"", "--help", "rollout --help", "--version", "help deploy"} {
		s.run(strings.Fields(line)...).exits(cli.ExitOK, "sluice")
	}
}

func TestAnEngineThatDoesNotAnswerExitsOne(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	s := shell{t, map[string]string{"SLUICE_API_KEY": "k", "SLUICE_ENGINE_URL": gone.URL, "SLUICE_PROJECT": "proj_a"}}
	r := s.run("ls", "--json").exits(cli.ExitFailed)
	require.Contains(t, r.json(), "error")
}

func TestTheWholeWayInAShell(t *testing.T) {
	s := served(t)
	s.run("ls").exits(0, "NAME")
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0, "demo/chat/old")
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0, "STOPPED")
	s.run("deploy", "m/none", "--endpoint", "chat").exits(cli.ExitFailed, "cr_a, cr_b, cr_several")
	s.run("get", "nothing").exits(cli.ExitFailed, `no endpoint and no deployment "nothing"`)
	s.run("get", "demo/chat/old").exits(0, "1 ready")

	s.run("rollout", "new", "--canary", "--steps", "10,100", "--preview").exits(0, "10% (+10)", "nothing was changed")
	s.run("rollout", "new", "--canary", "--steps", "10,x").exits(cli.ExitUsage, "--steps")
	s.run("rollout", "new", "--rolling", "--steps", "10,100").exits(cli.ExitUsage, "--canary")
	s.run("rollout", "new", "--canary", "--metric-window", "60s").exits(cli.ExitUsage, "--metric")
	s.run("rollout", "new", "--canary", "--interval", "soon").exits(cli.ExitUsage, "600s, 10m or 600")
	s.run("rollout", "new", "--canary", "--metric", "router_latancy", "--metric-stat", "p95").exits(cli.ExitUsage, "router_latency")
	s.run("rollout", "chat", "--pause").exits(cli.ExitFailed, "no rollout")

	s.run("rollout", "new", "--canary", "--steps", "10,100", "--interval", "30m").exits(0, "10")
	s.run("rollout", "new", "--blue-green").exits(cli.ExitFailed, "already has an active rollout")
	s.run("rollout", "chat", "--pause", "--reason", "lunch").exits(0, "✓ pause accepted")
	s.run("watch", "chat").exits(cli.ExitParked, "lunch")
	r := s.run("rollout", "chat", "--resume", "--json").exits(0)
	id := r.json()["id"].(string)
	s.run("get", id).exits(0, id)
	s.run("rm", id).exits(cli.ExitFailed, "cancel it first")
	s.run("rollout", id, "--cancel", "--reason", "enough", "--wait").exits(cli.ExitCanceled, "CANCELED")
	s.run("rollout", "chat", "--resume").exits(cli.ExitFailed, "it is over")
	s.run("rollout", "new", "--blue-green", "--wait").exits(0, "COMPLETED")
	s.run("events", "chat").exits(0, "rollout.completed", "rollout.canceled_complete")
	s.run("events", "chat", "--subject-id", id, "--limit", "1", "--json").exits(0, "rollout.canceled_complete")
	s.run("rm", id).exits(0, "deleted rollout")

	s.run("update", "new").exits(cli.ExitUsage, "nothing to change")
	s.run("update", "new", "--min-replicas", "2").exits(0, "2")
	s.run("rm", "chat").exits(cli.ExitFailed, "deployment(s)")
	s.run("hardware").exits(0, "1xsim")
	s.run("configs", "--model", "m/new").exits(0, "cr_b")
	secret := s.run("keys", "create", "ci", "--json").exits(0).json()["secret"].(string)
	s.run("keys").exits(0, "ci", "first key")
	reader := shell{t, map[string]string{"TOGETHER_BASE_URL": s.env["SLUICE_ENGINE_URL"] + "/v2/", "TOGETHER_API_KEY": secret}}
	reader.run("ls").exits(0, "demo/chat")
	reader.run("rm", "chat").exits(cli.ExitFailed, "lacks the scope operate")
	e := reader.run("rm", "chat", "--json").exits(cli.ExitFailed).json()
	require.Equal(t, "PERMISSION_DENIED", e["error"].(map[string]any)["code"])
}

// A short name that two endpoints have must not be guessed.
func TestANameThatSeveralHaveIsRefused(t *testing.T) {
	s := served(t)
	for _, ep := range []string{"one", "two"} {
		s.run("deploy", "m/old", "--endpoint", ep, "--min-replicas", "0", "--max-replicas", "0").exits(0)
	}
	s.run("update", "old", "--min-replicas", "1").exits(cli.ExitUsage, "demo/one/old", "demo/two/old")
	s.run("update", "demo/two/old", "--min-replicas", "1").exits(0, "demo/two/old")
}

// hostile answers as an engine does, until a test takes over.
func hostile(t *testing.T, handle http.HandlerFunc) shell {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(func() { http.DefaultTransport.(*http.Transport).CloseIdleConnections(); srv.Close() })
	return shell{t, map[string]string{"SLUICE_ENGINE_URL": srv.URL, "SLUICE_API_KEY": "k", "SLUICE_PROJECT": "proj_a"}}
}

func TestWhatAnEngineSaysIsInertOnATerminal(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2Jred\r\nsecond line"
	s := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			_, _ = w.Write([]byte("{}"))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/endpoints") {
			_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": []map[string]any{{"id": "ep_1" + evil, "name": "demo/" + evil, "trafficSplit": []any{}, "deployments": []any{}}}, "next_cursor": nil})
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"message": evil, "error": map[string]any{"message": evil, "type": evil, "code": evil}})
	})
	for _, line := range [][]string{{"ls"}, {"get", evil}, {"events", evil}, {"rm", evil}, {"hardware"}, {"get", "ep_1"}} {
		r := s.run(line...)
		require.NotContains(t, r.out+r.errs, "\x1b", r.line)
		require.NotContains(t, r.out+r.errs, "\a", r.line)
		require.NotContains(t, r.out+r.errs, "\r", r.line)
	}
}

// The engine moves on by itself: an etag that is a step old is read again, but a
// control that never gets through is not reported as accepted.
func TestAControlReadsAStaleETagAgain(t *testing.T) {
	stale, calls := 2, 0
	rollout := map[string]any{"id": "rol_1", "endpointId": "ep_1", "state": "ROLLOUT_STATE_RUNNING", "etag": "1", "status": map[string]any{"steps": []any{}, "totalSteps": 0}, "createdAt": "2026-01-01T00:00:00Z"}
	s := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			if calls++; calls <= stale {
				w.Header().Set("x-should-retry", "false")
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(`{"message":"changed","error":{"message":"changed","type":"conflict_error","code":"ABORTED"}}`))
				return
			}
			_ = json.NewEncoder(w).Encode(rollout)
		case strings.HasSuffix(r.URL.Path, "/rollouts"):
			_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": []any{rollout}, "next_cursor": nil})
		default:
			_ = json.NewEncoder(w).Encode(rollout)
		}
	})
	s.run("rollout", "ep_1", "--promote").exits(0, "✓ promoted")
	require.Equal(t, 3, calls)
	stale, calls = 1000, 0
	s.run("rollout", "ep_1", "--promote").exits(cli.ExitFailed, "changed")
	require.Equal(t, 5, calls)
}

func TestServeUntilToldToStop(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(engineFile), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs lockedBuffer
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, cli.Env{Args: []string{"serve", "--data", filepath.Join(dir, "data"), "--config", path, "--listen", "127.0.0.1:0", "--gateway", "127.0.0.1:0"}, Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "API key: ") }, 20*time.Second, 5*time.Millisecond, errs.String())
	lines := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			lines[k] = strings.TrimSpace(v)
		}
	}
	s := shell{t, map[string]string{"SLUICE_ENGINE_URL": lines["API"], "SLUICE_API_KEY": lines["API key"]}}
	s.run("ls").exits(0)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	cancel()
	require.Equal(t, cli.ExitOK, <-code, errs.String())
	require.Contains(t, errs.String(), "stopping")
	s.run("serve", "--data", filepath.Join(dir, "data"), "--listen", "0.0.0.0:0").exits(cli.ExitFailed, "refusing to serve plain HTTP")
	s.run("serve", "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "none.yaml")).exits(cli.ExitFailed, "none.yaml")
}
