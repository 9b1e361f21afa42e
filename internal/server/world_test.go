package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/server"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door is the API over HTTP on the real engine.
type door struct {
	t      *testing.T
	engine *engine.Engine
	api    *server.Server
	disk   *store.SQLite
	url    string
	admin  string // secrets
	writer string
	reader string
}

func newDoor(t *testing.T) *door {
	t.Helper()
	return newDoorWith(t, server.StreamLimits{})
}

func newDoorWith(t *testing.T, limits server.StreamLimits) *door {
	t.Helper()
	disk, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	f, err := simulated.New(simulated.Config{Pools: []fleet.Pool{{Hardware: rollout.Hardware{ID: "1xgpu", Name: "GPU", GPUType: "h100", GPUCount: 1, Capacity: 40}}}})
	require.NoError(t, err)
	f.Start()
	timings := rollout.DefaultTimings()
	config := func(id string, models ...string) rollout.ServingConfig {
		return fleet.WithDefaults(rollout.ServingConfig{ID: id, Name: id, Models: models, Hardware: "1xgpu", Simulated: rollout.SimulatedServing{ColdStart: time.Millisecond}})
	}
	e := engine.New(engine.Config{
		Store: disk, Fleet: f, Router: &routers{serving: map[string]rollout.Route{}}, Meter: noTraffic{}, Timings: timings,
		Project: rollout.Project{ID: "proj_a", Name: "A", Slug: "demo", Organization: "org_a"}, Serving: []rollout.ServingConfig{config("cr_a", "m/a"), config("cr_b", "m/b")},
	})
	require.NoError(t, e.Load(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	api := server.New(server.Config{Streams: limits, Engine: e, Version: "test", GatewayURL: "http://gateway/v1", Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "m 1\n") })})
	srv := httptest.NewServer(api)
	d := &door{t: t, engine: e, api: api, disk: disk, url: srv.URL}
	d.admin, d.writer, d.reader = d.key("admin", rollout.ScopeAdmin), d.key("writer", rollout.ScopeOperate), d.key("reader", rollout.ScopeRead)
	t.Cleanup(func() {
		api.EndStreams()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, f.Close(context.Background()))
		require.NoError(t, disk.Close())
	})
	return d
}

func (d *door) key(name string, s rollout.Scope) string {
	d.t.Helper()
	k, secret, err := d.engine.NewKey(name, []rollout.Scope{s})
	require.NoError(d.t, err)
	require.NoError(d.t, d.engine.SaveKey(d.t.Context(), k))
	return secret
}

// answer is what came back.
type answer struct {
	t      *testing.T
	Status int
	Header http.Header
	Raw    string
}

// json decodes the body into a tree.
func (a answer) json() map[string]any {
	a.t.Helper()
	var v map[string]any
	require.NoError(a.t, json.Unmarshal([]byte(a.Raw), &v), a.Raw)
	return v
}

func (a answer) text(key string) string {
	a.t.Helper()
	s, ok := a.json()[key].(string)
	require.True(a.t, ok, "%s in %s", key, a.Raw)
	return s
}

// refused asserts an error in both of its forms.
func (a answer) refused(status int, code string, says ...string) {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, a.Raw)
	require.Equal(a.t, "application/json", a.Header.Get("Content-Type"))
	nested, ok := a.json()["error"].(map[string]any)
	require.True(a.t, ok, a.Raw)
	require.Equal(a.t, a.text("message"), nested["message"])
	require.NotEmpty(a.t, nested["type"])
	require.Equal(a.t, code, nested["code"])
	require.Contains(a.t, nested, "param")
	for _, s := range says {
		require.Contains(a.t, a.text("message"), s)
	}
	require.Equal(a.t, status == http.StatusConflict, a.Header.Get("x-should-retry") == "false")
}

func (a answer) param() any { return a.json()["error"].(map[string]any)["param"] }

func (a answer) ok() answer {
	a.t.Helper()
	require.Equal(a.t, http.StatusOK, a.Status, a.Raw)
	return a
}

func (d *door) call(method, path, body string) answer { return d.as(d.admin, method, path, body) }

func (d *door) as(key, method, path, body string, headers ...string) answer {
	d.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, in)
	require.NoError(d.t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return d.send(req)
}

func (d *door) send(req *http.Request) answer {
	d.t.Helper()
	res, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	defer func() { _ = res.Body.Close() }()
	var b bytes.Buffer
	_, err = b.ReadFrom(res.Body)
	require.NoError(d.t, err)
	return answer{t: d.t, Status: res.StatusCode, Header: res.Header, Raw: b.String()}
}

const base = "/v2/projects/proj_a/endpoints"

// endpoint makes an endpoint with a serving source and a stopped target.
func (d *door) endpoint(name string) (ep, source, target string) {
	d.t.Helper()
	ep = d.call("POST", base, `{"name":"`+name+`"}`).ok().text("id")
	source = d.call("POST", base+"/"+ep+"/deployments", `{"name":"stable","model":"m/a","autoscaling":{"minReplicas":1}}`).ok().text("id")
	target = d.call("POST", base+"/"+ep+"/deployments", `{"name":"candidate","model":"projects/proj_a/models/m/b/revisions/rv_1","autoscaling":{"minReplicas":0,"maxReplicas":0}}`).ok().text("id")
	require.Eventually(d.t, func() bool {
		st, err := d.engine.Fleet.Observe(d.t.Context(), source)
		return err == nil && st.Ready == 1
	}, 10*time.Second, time.Millisecond)
	d.call("PATCH", base+"/"+ep, `{"trafficSplit":[{"deploymentId":"`+source+`","weight":1}]}`).ok()
	return ep, source, target
}

type noTraffic struct{}

func (noTraffic) Read(context.Context, rollout.Query) (rollout.Reading, error) {
	return rollout.Reading{Complete: true}, nil
}
func (noTraffic) Rate(string, time.Duration) (r engine.Rate)          { return r }
func (noTraffic) Usage(string, time.Time, time.Time) (u engine.Usage) { return u }
func (noTraffic) Forget(string)                                       {}

type routers struct {
	mu      sync.Mutex
	serving map[string]rollout.Route
}

func (r *routers) Apply(route rollout.Route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving[route.EndpointID] = route
	return route.Validate()
}

func (r *routers) Remove(endpoint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.serving, endpoint)
}

func (r *routers) Serving(endpoint string) (rollout.Route, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	route, ok := r.serving[endpoint]
	return route, ok
}

func newPipe() (*io.PipeReader, *io.PipeWriter) { return io.Pipe() }

func escape(s string) string { return url.QueryEscape(s) }
