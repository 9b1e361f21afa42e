package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const quick = `
project: {slug: demo}
fleet: {driver: simulated}
hardware:
  - {id: 1xsim, gpu_type: none}
configs:
  - {id: cr_a, models: [m/a], hardware: 1xsim, simulated: {cold_start: 10ms, latency: 5ms}}
  - {id: cr_slow, models: [m/slow], hardware: 1xsim, simulated: {cold_start: 10ms, latency: 700ms}}
timings: {propagation: 200ms, stabilization: 200ms, ready_deadline: 30s}
`

func options(t *testing.T, dir string) serve.Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(quick), 0o600))
	f, err := serve.ReadFile(path)
	require.NoError(t, err)
	return serve.Options{Dir: dir, Listen: "127.0.0.1:0", GatewayListen: "127.0.0.1:0", File: f, Version: "test"}
}

func start(t *testing.T, dir string) *serve.Server {
	t.Helper()
	s, err := serve.Start(t.Context(), options(t, dir))
	require.NoError(t, err)
	t.Cleanup(func() { _ = stop(s) })
	return s
}

func stop(s *serve.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	http.DefaultClient.CloseIdleConnections()
	return s.Stop(ctx)
}

func client(t *testing.T, s *serve.Server, key string) *engineclient.Client {
	t.Helper()
	c, err := engineclient.New(engineclient.Config{BaseURL: s.APIURL, APIKey: key})
	require.NoError(t, err)
	return c
}

func TestTheFirstKeyIsMadeOnceAndIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data")
	s := start(t, dir)
	require.NotEmpty(t, s.FirstKey)
	path := filepath.Join(dir, "first-key")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, s.FirstKey+"\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = client(t, s, s.FirstKey).WhoAmI(t.Context())
	require.NoError(t, err)
	first := s.FirstKey
	require.NoError(t, stop(s))

	s = start(t, dir)
	require.Empty(t, s.FirstKey, "only an empty folder gets one")
	_, err = client(t, s, first).WhoAmI(t.Context())
	require.NoError(t, err, "and it stays valid")
	require.NoError(t, stop(s))
	all, err := os.ReadFile(filepath.Join(dir, "sluice.db"))
	require.NoError(t, err)
	require.NotContains(t, string(all), first, "the store knows a hash only")
}

func TestAFileThatStandsInTheFirstKeysPlaceIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "first-key")
	require.NoError(t, os.WriteFile(path, []byte("anybody can read this"), 0o644)) //nolint:gosec // that is the point
	s := start(t, dir)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, stop(s))
	left, err := filepath.Glob(filepath.Join(dir, ".secret-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestASecondServerOnTheSameFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	_, err := serve.Start(t.Context(), options(t, dir))
	require.ErrorContains(t, err, fmt.Sprintf("in use by another sluice serve: process %d on ", os.Getpid()))
	require.ErrorContains(t, err, " since 20")
	require.ErrorContains(t, err, "end that one first, or give another --data")
	_, err = client(t, s, s.FirstKey).WhoAmI(t.Context())
	require.NoError(t, err, "the first one does not notice")
}

func TestAnythingBeyondLoopbackNeedsTLSOrAWord(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.0.0.1.example.org:0", "nonsense"} {
		o := options(t, t.TempDir())
		o.Listen = address
		_, err := serve.Start(t.Context(), o)
		require.ErrorContains(t, err, "refusing to serve plain HTTP on "+address)
		o = options(t, t.TempDir())
		o.GatewayListen = address
		_, err = serve.Start(t.Context(), o)
		require.ErrorContains(t, err, "refusing to serve plain HTTP on "+address)
	}
	o := options(t, t.TempDir())
	o.TLSCert, o.TLSKey = "none.pem", "none.pem"
	_, err := serve.Start(t.Context(), o)
	require.ErrorContains(t, err, "TLS certificate")
	o = options(t, t.TempDir())
	o.Listen, o.Exposure = "0.0.0.0:0", serve.AllowPlainHTTP
	s, err := serve.Start(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, stop(s))
}

func TestAFailedStartLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sluice.db"), []byte("not a database at all, but notes"), 0o600))
	_, err := serve.Start(t.Context(), options(t, dir))
	require.ErrorContains(t, err, "sluice.db")
	require.NoError(t, os.Remove(filepath.Join(dir, "sluice.db")))
	s, err := serve.Start(t.Context(), options(t, dir)) // the lock is free again
	require.NoError(t, err)
	require.NoError(t, stop(s))
	require.NoError(t, s.Stop(t.Context()), "a second stop is none")
}

// setting makes an endpoint with a source that serves and a stopped target.
func setting(t *testing.T, c *engineclient.Client, model string) (api.Endpoint, api.Deployment, api.Deployment) {
	t.Helper()
	ctx := t.Context()
	ep, err := c.CreateEndpoint(ctx, api.CreateEndpoint{Name: "chat"}, "")
	require.NoError(t, err)
	one, zero := 1, 0
	source, err := c.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "a", Model: model, Autoscaling: api.Autoscaling{MinReplicas: &one}}, "")
	require.NoError(t, err)
	target, err := c.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "b", Model: "m/a", Autoscaling: api.Autoscaling{MinReplicas: &zero}}, "")
	require.NoError(t, err)
	_, err = c.SetWeight(ctx, ep.ID, source.ID, 1)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		d, err := c.GetDeployment(ctx, ep.ID, source.ID)
		return err == nil && d.Status.ReadyReplicas == 1
	}, 20*time.Second, 10*time.Millisecond)
	return ep, source, target
}

func chat(ctx context.Context, s *serve.Server) (int, error) {
	body := strings.NewReader(`{"model":"demo/chat","messages":[{"role":"user","content":"hello"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.GatewayURL+"/v1/chat/completions", body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && !json.Valid(text) {
		err = fmt.Errorf("a cut answer: %q", text)
	}
	return res.StatusCode, err
}

func TestAStopAnswersWhatIsInFlight(t *testing.T) {
	s := start(t, t.TempDir())
	setting(t, client(t, s, s.FirstKey), "m/slow")
	type result struct {
		status int
		err    error
	}
	results := make(chan result, 4)
	for range cap(results) {
		go func() {
			status, err := chat(context.Background(), s)
			results <- result{status, err}
		}()
	}
	require.Eventually(t, func() bool { return inflight(t, s) == cap(results) }, 5*time.Second, 5*time.Millisecond)
	require.NoError(t, stop(s))
	for range cap(results) {
		r := <-results
		require.NoError(t, r.err)
		require.Equal(t, http.StatusOK, r.status)
	}
	_, err := chat(t.Context(), s)
	require.Error(t, err, "nobody listens any more")
}

// inflight reads how many requests the gateway holds.
func inflight(t *testing.T, s *serve.Server) int {
	t.Helper()
	res, err := http.Get(s.APIURL + "/metrics") //nolint:noctx // a test's look
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte("inflight")) && !bytes.HasPrefix(line, []byte("#")) {
			var v float64
			_, _ = fmt.Sscan(string(line[bytes.LastIndexByte(line, ' ')+1:]), &v)
			n += int(v)
		}
	}
	return n
}

func TestARestartTakesUpARunningRollout(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	key := s.FirstKey
	c := client(t, s, key)
	ep, source, target := setting(t, c, "m/a")
	r, err := c.CreateRollout(t.Context(), ep.ID, api.RolloutSpec{SourceDeploymentID: source.ID, TargetDeploymentID: target.ID, BlueGreen: &api.BlueGreen{}}, "")
	require.NoError(t, err)
	_, err = c.StartRollout(t.Context(), ep.ID, r.ID)
	require.NoError(t, err)
	require.NoError(t, stop(s))

	s = start(t, dir)
	c = client(t, s, key)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res, err := c.Await(ctx, ep.ID, r.ID, nil)
	require.NoError(t, err)
	require.Equal(t, engineclient.Completed, res.Outcome)
	status, err := chat(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	started := 0
	for e, err := range c.Events(t.Context(), ep.ID, engineclient.EventQuery{SubjectID: r.ID}) {
		require.NoError(t, err)
		if e.Type == "rollout.started" {
			started++
		}
	}
	require.Equal(t, 1, started)
	res2, err := http.Get(s.APIURL + "/metrics") //nolint:noctx // a test's look
	require.NoError(t, err)
	defer func() { _ = res2.Body.Close() }()
	text, err := io.ReadAll(res2.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `sluice_open_rollouts{state="RUNNING"} 0`)
	require.NoError(t, stop(s))
}

func TestConfigurationErrorsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text, says string
	}{
		"an unknown field":     {"project:\n  slug: a\n  sulg: b\n", `engine.yaml:3: "sulg" is not a setting here; did you mean "slug"?`},
		"a bad duration":       {"timings:\n  propagation: soon\n", `engine.yaml:2: "soon" is not a duration`},
		"a negative duration":  {"timings:\n  propagation: -1s\n", "engine.yaml:2: duration -1s is negative"},
		"a bad slug":           {"project:\n  slug: A B\n", "engine.yaml:2: project.slug"},
		"an unknown driver":    {"# c\nfleet:\n  driver: magic\n", "engine.yaml:3: fleet.driver"},
		"unknown hardware":     {"hardware:\n  - id: h\nconfigs:\n  - id: cr_a\n    models: [m]\n    command: [x]\n    hardware: g\n", "engine.yaml:7: configs[0].hardware"},
		"no command":           {"hardware:\n  - id: h\nconfigs:\n  - id: cr_a\n    models: [m]\n    hardware: h\n", "engine.yaml:4: configs[0].command"},
		"an id twice":          {"hardware:\n  - id: h\n  - id: h\n", "engine.yaml:3: hardware[1].id"},
		"a config's id":        {"hardware:\n  - id: h\nconfigs:\n  - id: a\n", "engine.yaml:4: configs[0].id"},
		"a bad latency":        {"fleet: {driver: simulated}\nhardware:\n  - id: h\nconfigs:\n  - id: cr_a\n    models: [m]\n    hardware: h\n    simulated:\n      latency: slow\n", "configs[0].simulated"},
		"slot too long":        {"timings:\n  minimum_window: 1s\n", "meter.slot"},
		"window below minimum": {"timings:\n  default_window: 30s\n", "engine.yaml:2: timings.default_window"},
		"a field far off":      {"project:\n  colour: red\n", `engine.yaml:2: "colour" is not a setting here; there are id, name, slug, organization`},
		"a bare number":        {"timings:\n  propagation: 30\n", "engine.yaml:2: duration 30 has no unit: use 30s"},
		"a text for a number":  {"hardware:\n  - id: h\n    capacity: many\n", `engine.yaml:3: "many" is not a whole number`},
		"a list for a block":   {"fleet: [a]\n", "engine.yaml:1: a list stands where a block of settings belongs"},
		"a key twice":          {"fleet:\n  driver: process\n  driver: process\n", `engine.yaml:3: "driver" stands twice, first on line 2`},
		"negative capacity":    {"hardware:\n  - id: h\n    capacity: -5\n", "engine.yaml:3: hardware[0].capacity: -5 is negative"},
		"a GPU twice":          {"hardware:\n  - id: h\n    gpus: [0, 0]\n", "engine.yaml:3: hardware[0].gpus[1]: GPU 0 stands twice"},
		"misspelt hardware":    {"hardware:\n  - id: h100\nconfigs:\n  - id: cr_a\n    models: [m]\n    command: [x]\n    hardware: h10\n", `engine.yaml:7: configs[0].hardware: "h10" is not in the inventory; did you mean "h100"?`},
		"a placeholder":        {"hardware:\n  - id: h\nconfigs:\n  - id: cr_a\n    models: [m]\n    hardware: h\n    command:\n      - x\n      - \"{mode}\"\n", "engine.yaml:9: configs[0].command[1]: {mode} is not a placeholder; did you mean {model}?"},
		"a status":             {"hardware:\n  - id: h\nconfigs:\n  - id: cr_a\n    models: [m]\n    hardware: h\n    command: [x]\n    probe: {status: 20}\n", "engine.yaml:8: configs[0].probe.status"},
		"two documents":        {"project: {slug: a}\n---\nproject: {slug: b}\n", "more than one"},
		"not YAML":             {"project: [\n", "engine.yaml:1: did not find"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "engine.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := serve.ReadFile(path)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "engine.yaml")
		})
	}
	_, err := serve.ReadFile(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	f, err := serve.ReadFile("")
	require.NoError(t, err)
	require.NoError(t, f.Check(), "the defaults can be run")
	_, err = serve.ReadFile(filepath.Join("..", "..", "examples", "engine", "demo.yaml"))
	require.NoError(t, err)
}

// Only the first mistake was told, with the name of a Go type.
func TestEveryUnknownSettingIsToldAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte("fleet:\n  drivr: process\nconfigs:\n  - hardwear: h\n"), 0o600))
	_, err := serve.ReadFile(path)
	require.ErrorContains(t, err, `engine.yaml:2: "drivr" is not a setting here; did you mean "driver"?`)
	require.ErrorContains(t, err, `engine.yaml:4: "hardwear" is not a setting here; did you mean "hardware"?`)
	require.NotContains(t, err.Error(), "serve.")
}

func TestBracesOfACommandsOwnAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte("hardware:\n  - id: h\nconfigs:\n  - id: cr_a\n    models: [m]\n    hardware: h\n    command: [x, '{\"a\": {}}', '{messages}', '{port}']\n"), 0o600))
	_, err := serve.ReadFile(path)
	require.NoError(t, err)
}

func TestAnEngineThatCanRunNothingSaysSo(t *testing.T) {
	var log bytes.Buffer
	o := options(t, t.TempDir())
	o.File.Configs, o.Logger = nil, slog.New(slog.NewTextHandler(&log, nil))
	s, err := serve.Start(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, stop(s))
	require.Contains(t, log.String(), "no configs")
}

// A database that was lost must not look like a beginning: the replicas that serve
// would be ended as nobody's.
func TestALostDatabaseIsNotABeginning(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, stop(start(t, dir)))
	require.NoError(t, os.Truncate(filepath.Join(dir, "sluice.db"), 0))
	records := filepath.Join(dir, "fleet", "replicas")
	require.NoError(t, os.MkdirAll(records, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(records, "rep_1.json"), []byte("{}"), 0o600))
	_, err := serve.Start(t.Context(), options(t, dir))
	require.ErrorContains(t, err, "rep_1.json")
}

func TestTheDriverIsNotChangedUnderReplicasThatRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, stop(start(t, dir)))
	records := filepath.Join(dir, "fleet", "replicas")
	require.NoError(t, os.MkdirAll(records, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(records, "rep_1.json"), []byte("{}"), 0o600))
	o := options(t, dir)
	o.File.Fleet.Driver = "simulated"
	_, err := serve.Start(t.Context(), o)
	require.ErrorContains(t, err, "process driver")
}
