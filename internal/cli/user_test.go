package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// What people ran into, one test each.

func chat(t *testing.T, s shell, model string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.env["GATEWAY"]+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}]}`, model)))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

// A latency threshold without its operator was dropped, and the rollout ran with a
// regression budget of 0 % instead.
func TestAGateIsTheOneThatWasAskedForOrNone(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	latency := []string{"rollout", "new", "--canary", "--metric", "router_latency", "--metric-stat", "p95"}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"no check at all":              {nil, "exactly one of regressionCheck and thresholdCheck"},
		"a threshold without operator": {[]string{"--metric-threshold", "300"}, `operator "" is unknown`},
		"both checks":                  {[]string{"--metric-operator", "lt", "--metric-threshold", "300", "--metric-max-regression", "10"}, "exactly one of"},
		"a threshold and a direction":  {[]string{"--metric-operator", "lt", "--metric-threshold", "300", "--metric-direction", "lower-is-worse"}, "exactly one of"},
		"an operator that is unknown":  {[]string{"--metric-operator", "less", "--metric-threshold", "300"}, `operator "LESS" is unknown`},
		"what nothing can satisfy":     {[]string{"--metric-operator", "lt"}, "nothing can satisfy"},
		"a threshold without a metric": {nil, "--metric-threshold needs --metric"},
	} {
		line := append(append([]string{}, latency...), c.flags...)
		if name == "a threshold without a metric" {
			line = []string{"rollout", "new", "--canary", "--metric-threshold", "300"}
		}
		s.run(line...).exits(cli.ExitUsage, c.says)
	}
	s.run("ls").exits(0, "demo/chat")
	require.NotContains(t, s.run("ls").out, "rol_", "nothing was started")
	r := s.run(append(latency, "--metric-operator", "lt", "--metric-threshold", "300", "--json", "--preview")...).exits(0).json()
	rule := r["spec"].(map[string]any)["metrics"].([]any)[0].(map[string]any)
	require.Contains(t, rule, "thresholdCheck")
	require.NotContains(t, rule, "regressionCheck")
	s.run(append(latency, "--metric-max-regression", "0", "--preview")...).exits(0, "0 % higher")
	s.run(append(latency, "--metric-direction", "higher-is-worse", "--preview")...).exits(0, "0 % higher")
}

// The first curl of the quick start answered no_ready_replica.
func TestAfterDeployTheNextRequestIsAnswered(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0, "READY", "SCALING")
	require.Equal(t, http.StatusOK, chat(t, s, "demo/chat"))
	s.run("deploy", "m/x", "--config", "cr_several", "--endpoint", "chat", "--no-wait").exits(0, "x")
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0, "STOPPED")
}

func TestARefusedDeployLeavesNothingBehind(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/none", "--endpoint", "chat").exits(cli.ExitFailed, "cr_a")
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "-1").exits(cli.ExitUsage, "--traffic-weight -1")
	require.NotContains(t, s.run("ls").exits(0).out, "chat")
	s.run("deploy", "m/old", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	s.run("deploy", "m/none", "--endpoint", "chat").exits(cli.ExitFailed)
	require.Contains(t, s.run("ls").exits(0).out, "chat", "an endpoint that stood before stays")
}

// It exited 0 with a deployment that was DEGRADED for good.
func TestADeployThatDoesNotFitFails(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--min-replicas", "21").exits(cli.ExitFailed, "insufficient GPU capacity", "sluice hardware", "--max-replicas N")
}

func TestADeployThatIsWaitedForTooLongSaysWhereItIs(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--timeout", "1ns").exits(cli.ExitFailed, "the wait ended while deployment demo/chat/old", "sluice get dep_")
}

// A floor of 0 stopped the deployment that served everything.
func TestStoppingWhatServesNeedsToBeMeant(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("update", "old", "--min-replicas", "0").exits(cli.ExitUsage, "--max-replicas 0 too")
	s.run("update", "old", "--max-replicas", "0").exits(cli.ExitUsage, "--min-replicas 0 too")
	s.run("update", "old", "--min-replicas", "0", "--max-replicas", "0").exits(cli.ExitFailed, "serves 100 % of demo/chat", "every request to demo/chat fails", "--force")
	s.run("update", "old", "--traffic-weight", "0").exits(cli.ExitFailed, "--force")
	s.run("update", "old", "--traffic-weight", "-2").exits(cli.ExitUsage, "--traffic-weight")
	require.Equal(t, http.StatusOK, chat(t, s, "demo/chat"))
	s.run("deploy", "m/new", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("update", "new", "--traffic-weight", "0").exits(0)
	s.run("update", "new", "--min-replicas", "0", "--max-replicas", "0").exits(0, "STOP")
	s.run("update", "old", "--min-replicas", "0", "--max-replicas", "0", "--force").exits(0, "STOP")
}

func TestANameMeansTheSameToEveryCommand(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--deployment-name", "big", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--deployment-name", "small", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	s.run("get", "big").exits(0, "demo/chat/big", "READY")
	s.run("get", "chat").exits(0, "Endpoint demo/chat")
	s.run("rollout", "small", "--canary", "--interval", "30m").exits(0)
	s.run("rollout", "small", "--cancel", "--reason", "enough", "--wait").exits(cli.ExitCanceled)
	s.run("update", "small", "--min-replicas", "0", "--max-replicas", "0", "--force").exits(0)
	require.Eventually(t, func() bool { return strings.Contains(s.run("get", "small").out, "STOPPED") }, 10*time.Second, 20*time.Millisecond)
	s.run("update", "small", "--traffic-weight", "0").exits(0)
	s.run("rm", "small").exits(0, "deleted deployment demo/chat/small")
	s.run("rm", "small").exits(cli.ExitFailed, `no endpoint and no deployment "small"`)
	s.run("deploy", "m/new", "--endpoint", "big", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	s.run("rm", "big").exits(cli.ExitUsage, "endpoint demo/big", "deployment demo/chat/big", "give the id")
}

func TestAKeyIsRevokedByItsName(t *testing.T) {
	s := served(t)
	s.run("keys", "create", "ci").exits(0, "key_", "scopes read", "API key: sluice_")
	s.run("keys", "ls").exits(0, "ci", "first key")
	s.run("keys", "rm", "ci").exits(0, "deleted key ci (key_")
	s.run("keys", "rm", "ci").exits(cli.ExitFailed, `no key "ci"`, "sluice keys")
	for range 2 {
		s.run("keys", "create", "twin").exits(0)
	}
	s.run("keys", "rm", "twin").exits(cli.ExitUsage, "several keys", "key_")
}

func TestAWrongAddressSaysWhatIsMeant(t *testing.T) {
	s := served(t)
	at := func(url string) shell {
		return shell{t, map[string]string{"SLUICE_ENGINE_URL": url, "SLUICE_API_KEY": s.env["SLUICE_API_KEY"]}}
	}
	host := strings.TrimPrefix(s.env["SLUICE_ENGINE_URL"], "http://")
	at(host).run("ls").exits(cli.ExitUsage, "give http://"+host)
	at("localhost").run("ls").exits(cli.ExitUsage, "give http://localhost")
	at("ftp://"+host).run("ls").exits(cli.ExitUsage, "http(s)://")
	at(s.env["GATEWAY"]).run("ls").exits(cli.ExitFailed, "gateway", "--listen")
	at(s.env["SLUICE_ENGINE_URL"]+"/v3").run("ls").exits(cli.ExitFailed, "/v3")
	other := at(s.env["SLUICE_ENGINE_URL"])
	other.env["SLUICE_PROJECT"] = "nope"
	other.run("ls").exits(cli.ExitFailed, "no project nope", "proj_default")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	at(strings.Replace(secure.URL, "https", "http", 1)).run("ls").exits(cli.ExitFailed, "https://")
}

func TestAnEngineThatIsDownIsToldInPlainWords(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the client's retries")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	r := shell{t, map[string]string{"SLUICE_ENGINE_URL": "http://" + l.Addr().String(), "SLUICE_API_KEY": "k"}}.run("ls")
	r.exits(cli.ExitFailed, "no engine answers at http://"+l.Addr().String()+": connection refused.", "sluice serve")
	require.NotContains(t, r.errs, "dial tcp")
}

func TestConfigsListEveryModel(t *testing.T) {
	served(t).run("configs").exits(0, "m/x, m/y")
}

// --preview showed no names, waits, gates or findings, and of the default ladder the 5
// went missing without a word.
func TestAPreviewIsTheWholePlan(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "9").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("rollout", "new", "--canary", "--source", "old", "--metric", "router_latency", "--metric-stat", "p95", "--metric-max-regression", "25", "--interval", "10", "--preview").exits(0,
		"demo/chat  old (dep_", "→ new (dep_", "10s → 6m30s", "20 requests a side in 5m", "at least", "peak: 3 replicas", "SOAK_GROWN",
		"the pair stands at 90/10", "of the default ladder 5 % is left out", "nothing was changed")
}

func TestAWatchThatRunsOutSaysThatTheRolloutGoesOn(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	s.run("rollout", "new", "--canary", "--interval", "30m").exits(0)
	r := s.run("watch", "chat", "--timeout", "100ms").exits(cli.ExitFailed, "the time to wait is over", "goes on at the engine", "sluice watch rol_")
	require.NotContains(t, r.errs, "deadline")
	s.run("events", "chat", "--types", "rollout.foo").exits(0, "no event of demo/chat matches", "rollout.started")
	s.run("rollout", "chat", "--cancel", "--reason", "enough", "--wait").exits(cli.ExitCanceled, "if nothing was changed since", "sluice ")
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	for _, line := range []string{"ls", "get chat", "get old", "configs", "hardware", "keys", "events chat", "rollout new --canary --preview", "get nothing"} {
		var out bytes.Buffer
		cli.Run(t.Context(), cli.Env{Args: strings.Fields(line), Out: &out, Err: &out, Getenv: func(k string) string { return s.env[k] }, Width: 60, Color: render.Plain})
		for l := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len([]rune(strings.TrimRight(l, "\n"))), 60, "%s:\n%s", line, out.String())
		}
	}
}

// The tally was lost when the probe was told to end.
func TestAProbeThatIsToldToEndPrintsItsTally(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	ctx, cancel := context.WithCancel(t.Context())
	var out lockedBuffer
	code := make(chan int, 1)
	log := t.TempDir() + "/log"
	go func() {
		code <- cli.Run(ctx, cli.Env{Args: []string{"probe", "--gateway", s.env["GATEWAY"] + "/v1", "--model", "demo/chat", "--rps", "50", "--log", log}, Out: &out, Err: &out, Getenv: func(string) string { return "" }})
	}()
	require.Eventually(t, func() bool { return strings.Contains(s.run("get", "chat", "--json").out, `"requests": `) }, 10*time.Second, 10*time.Millisecond)
	cancel()
	require.Equal(t, 0, <-code, out.String())
	require.Contains(t, out.String(), "0 non-200")
}

func TestEachMistakeInTheFileHasItsLine(t *testing.T) {
	path := t.TempDir() + "/engine.yaml"
	require.NoError(t, os.WriteFile(path, []byte("fleet:\n  drivr: process\nconfigs:\n  - hardwear: h\n"), 0o600))
	r := shell{t, nil}.run("serve", "--data", t.TempDir(), "--config", path).exits(cli.ExitFailed, `engine.yaml:2: "drivr"`, `engine.yaml:4: "hardwear"`)
	require.Equal(t, 2, strings.Count(r.errs, "\n"))
}

// The engine had moved the rollout on between the read and the delete.
func TestARecordIsDeletedByItsStateWhateverItsETag(t *testing.T) {
	var etags []string
	s := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			etags = append(etags, r.URL.Query().Get("etag"))
			if len(etags) == 1 {
				w.Header().Set("x-should-retry", "false")
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(`{"message":"changed","error":{"message":"changed","type":"conflict_error","code":"ABORTED"}}`))
				return
			}
			_, _ = w.Write([]byte("{}"))
		case strings.HasSuffix(r.URL.Path, "/endpoints"):
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"ep_1","name":"demo/chat","trafficSplit":[],"deployments":[]}],"next_cursor":null}`))
		default:
			_, _ = w.Write([]byte(`{"id":"rol_1","endpointId":"ep_1","state":"ROLLOUT_STATE_PENDING","etag":"7","status":{"steps":[],"totalSteps":0},"createdAt":"2026-01-01T00:00:00Z"}`))
		}
	})
	s.run("rm", "rol_1").exits(0, "deleted rollout rol_1")
	require.Equal(t, []string{"7", ""}, etags)
}

// A feed that is followed shows what was and goes on with what happens, each row once,
// whether the engine streams its events or must be asked for them.
func TestAFollowedFeedGoesOn(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	hosted := withoutStreams(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var text, lines, polled lockedBuffer
	for _, f := range []struct {
		out  *lockedBuffer
		env  map[string]string
		line []string
	}{{&text, s.env, nil}, {&lines, s.env, []string{"--json"}}, {&polled, hosted.env, nil}} {
		wg.Go(func() {
			code := cli.Run(ctx, cli.Env{Args: append([]string{"events", "chat", "--follow"}, f.line...), Out: f.out, Err: f.out, Getenv: func(k string) string { return f.env[k] }, Version: "test"})
			require.Zero(t, code, "an interrupt is its ordinary end: %s", f.out)
		})
	}
	require.Eventually(t, func() bool {
		return strings.Contains(text.String(), "deployment.created") && strings.Contains(lines.String(), "deployment.created") && strings.Contains(polled.String(), "deployment.created")
	}, 10*time.Second, 10*time.Millisecond)
	s.run("rollout", "new", "--blue-green", "--wait").exits(0, "COMPLETED")
	for _, out := range []*lockedBuffer{&text, &lines, &polled} {
		require.Eventually(t, func() bool { return strings.Contains(out.String(), "rollout.completed") }, 10*time.Second, 10*time.Millisecond)
		require.Equal(t, 1, strings.Count(out.String(), "rollout.completed"))
		require.Equal(t, 1, strings.Count(out.String(), "rollout.created"))
	}
	stop()
	wg.Wait()
	for line := range strings.Lines(lines.String()) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
	}
}

// withoutStreams is the same engine behind something that hides its streams.
func withoutStreams(t *testing.T, s shell) shell {
	t.Helper()
	up, err := url.Parse(s.env["SLUICE_ENGINE_URL"])
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(up)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/whoami") {
			return nil
		}
		b, err := io.ReadAll(r.Body)
		b = bytes.ReplaceAll(b, []byte(`"event-stream",`), nil)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Del("Content-Length")
		return err
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return shell{t, map[string]string{"SLUICE_ENGINE_URL": front.URL, "SLUICE_API_KEY": s.env["SLUICE_API_KEY"]}}
}

// A rollout on a thin endpoint parked after its first soak; the preview knows it before.
func TestAPreviewTellsThatTheGateWouldLackSamples(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	preview := []string{"rollout", "new", "--canary", "--metric", "router_latency", "--metric-stat", "p99", "--metric-max-regression", "25", "--preview"}
	s.run(preview...).exits(0, "! GATE_NEEDS_TRAFFIC: the pair had no request in the last minute", "time: at least ", "cold start budget of ")
	require.Equal(t, http.StatusOK, chat(t, s, "demo/chat"))
	r := s.run(preview...).exits(0, "! GATE_SAMPLES_SHORT: at 5 % of ", "router_latency p99 has its 100 samples in ", "step 1 would park METRICS_UNAVAILABLE")
	require.NotContains(t, r.out, "GATE_NEEDS_TRAFFIC")
}

// It printed the deployment, and nothing of the rollout that it had just parked.
func TestBrokenGlassSaysWhatItDidToTheRollout(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	key, ok := s.run("keys", "create", "ana", "--scopes", "operate,break-glass", "--json").exits(0).json()["secret"].(string)
	require.True(t, ok)
	s.run("rollout", "new", "--canary", "--interval", "30m").exits(0)
	ana := shell{t, map[string]string{"SLUICE_ENGINE_URL": s.env["SLUICE_ENGINE_URL"], "SLUICE_API_KEY": key}}
	ana.run("update", "old", "--traffic-weight", "1", "--break-glass", "--reason", "it burns").exits(0, "goes on: the split was so already")
	r := ana.run("update", "old", "--traffic-weight", "2", "--break-glass", "--reason", "it burns").exits(0,
		"is parked: nothing of the engine moves the split", "split now: old (dep_", "ways on:", "--resume\n        puts the rollout's split back", `--cancel --reason "…"`, "and keeps ")
	require.Contains(t, r.out, "demo/chat/old")
	ana.run("update", "old", "--traffic-weight", "3", "--break-glass", "--reason", "still", "--json").exits(0).json()
}

func TestGetShowsWhoReconcilesAnEndpoint(t *testing.T) {
	s := served(t)
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1").exits(0)
	require.NotContains(t, s.run("get", "chat").exits(0).out, "Owner")
	c, err := engineclient.New(engineclient.Config{BaseURL: s.env["SLUICE_ENGINE_URL"], APIKey: s.env["SLUICE_API_KEY"]})
	require.NoError(t, err)
	all, err := engineclient.Collect(c.Endpoints(t.Context(), engineclient.ListOptions{}))
	require.NoError(t, err)
	_, err = c.ClaimEndpoint(t.Context(), all[0].ID, "reconciler-7")
	require.NoError(t, err)
	s.run("get", "chat").exits(0, "Owner reconciler-7, since 2")

	// Whoever lost its journal had to write the request by hand.
	s.run("reconcile", "release", "chat").exits(cli.ExitUsage, "--reason")
	operates, ok := s.run("keys", "create", "op", "--scopes", "operate", "--json").exits(0).json()["secret"].(string)
	require.True(t, ok)
	breaks, ok := s.run("keys", "create", "ana", "--scopes", "operate,break-glass", "--json").exits(0).json()["secret"].(string)
	require.True(t, ok)
	with := func(key string) shell {
		return shell{t, map[string]string{"SLUICE_ENGINE_URL": s.env["SLUICE_ENGINE_URL"], "SLUICE_API_KEY": key}}
	}
	with(operates).run("reconcile", "release", "chat", "--reason", "lost").exits(cli.ExitFailed, "break-glass")
	with(breaks).run("reconcile", "release", "chat", "--reason", "its journal is lost").exits(0, "belonged to reconciler-7, and has no owner now")
	with(breaks).run("reconcile", "release", "chat", "--reason", "twice").exits(0, "has no owner")
	require.NotContains(t, s.run("get", "chat").exits(0).out, "Owner")
	s.run("events", "chat").exits(0, "its journal is lost")
}

// Each switch read --pause[=true|false].
func TestHelpNamesSwitchesAsTheyAreTyped(t *testing.T) {
	s := shell{t, map[string]string{}}
	for _, line := range [][]string{{"--help"}, {"rollout", "--help"}, {"keys", "create", "--help"}} {
		r := s.run(line...).exits(0, "--json ", "-h, --help ")
		require.NotContains(t, r.out, "true|false")
	}
	s.run("rollout", "--help").exits(0, "--pause  ")
}
