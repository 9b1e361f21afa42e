package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/server"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

// epoch is when every world begins.
var epoch = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// stage is a reconciler on a real engine, all in one goroutine on one virtual clock: Git
// and the forge are in memory, the engine's API is called in the process.
type stage struct {
	t       *testing.T
	now     time.Time
	engine  *engine.Engine
	hand    *engine.Stepper
	fleet   *simulated.Fleet
	meter   *virtualMeter
	door    http.Handler
	key     string
	Client  *engineclient.Client
	calls   []call
	fault   func(*http.Request) error // before a call reaches the engine
	lost    func(*http.Request) bool  // its answer is lost
	ids     int                       // that the engine has given
	remotes map[string]*memoryRemote
	forges  map[string]forge.Forge
	journal *journaltest.Memory
	config  Config
	r       *Reconciler
	traces  *sdktrace.TracerProvider // nil for none
	lag     time.Duration            // of the reconciler's clock behind the engine's
}

// call is one request that reached the engine.
type call struct{ Method, Path string }

func newStage(t *testing.T) *stage {
	t.Helper()
	w := &stage{t: t, now: epoch, remotes: map[string]*memoryRemote{}, forges: map[string]forge.Forge{}, journal: journaltest.New(), meter: &virtualMeter{value: map[string]float64{}}}
	w.meter.w = w
	disk, err := store.OpenMemory(t.Context())
	require.NoError(t, err)
	clock := func() time.Time { return w.now }
	w.fleet, err = simulated.New(simulated.Config{Now: clock, Pools: []fleet.Pool{{Hardware: rollout.Hardware{ID: "1xgpu", Name: "GPU", GPUType: "h100", GPUCount: 1, PriceCentsPerHour: 250, Capacity: 2000}}}})
	require.NoError(t, err)
	serving := func(id, model string) rollout.ServingConfig {
		return fleet.WithDefaults(rollout.ServingConfig{ID: id, Name: id, Models: []string{model}, Hardware: "1xgpu", Simulated: rollout.SimulatedServing{ColdStart: 30 * time.Second}})
	}
	w.engine = engine.New(engine.Config{
		Store: disk, Fleet: w.fleet, Router: &memoryRouter{routes: map[string]rollout.Route{}}, Meter: w.meter, Timings: rollout.DefaultTimings(), Now: clock, NewID: w.id,
		Project: rollout.Project{ID: "proj_a", Name: "A", Slug: "acme", Organization: "org_a"}, Serving: []rollout.ServingConfig{serving("cr_a", "m/a"), serving("cr_b", "m/b"), serving("cr_c", "m/c")},
	})
	require.NoError(t, w.engine.Load(t.Context()))
	w.hand, err = w.engine.Stepper(t.Context())
	require.NoError(t, err)
	w.door = server.New(server.Config{Engine: w.engine, Version: "test"})
	k, secret, err := w.engine.NewKey("reconciler", []rollout.Scope{rollout.ScopeAdmin})
	require.NoError(t, err)
	require.NoError(t, w.engine.SaveKey(t.Context(), k))
	w.key = secret
	w.Client = w.client(secret)
	t.Cleanup(func() {
		w.onlyKnownKinds()
		w.hand.Close()
		require.NoError(t, w.fleet.Close(context.Background()))
		require.NoError(t, disk.Close())
	})
	return w
}

// id is the engine's next one: they are counted, so that a stage plays the same twice.
func (w *stage) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s_%020x", prefix, w.ids)
}

func (w *stage) client(secret string) *engineclient.Client {
	w.t.Helper()
	return w.clientOver(w, secret)
}

// clientOver is a client whose calls go another way to the engine.
func (w *stage) clientOver(way http.RoundTripper, secret string) *engineclient.Client {
	w.t.Helper()
	c, err := engineclient.New(engineclient.Config{BaseURL: "http://engine.test", APIKey: secret, Transport: way, Retries: engineclient.Retries{Attempts: 1}})
	require.NoError(w.t, err)
	return c
}

// person is a client with a key of somebody else's name.
func (w *stage) person(name string) *engineclient.Client {
	w.t.Helper()
	k, secret, err := w.engine.NewKey(name, []rollout.Scope{rollout.ScopeAdmin})
	require.NoError(w.t, err)
	require.NoError(w.t, w.engine.SaveKey(w.t.Context(), k))
	return w.client(secret)
}

// RoundTrip carries a request to the engine in the caller's goroutine.
func (w *stage) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if w.fault != nil {
		if err := w.fault(req); err != nil {
			return nil, err
		}
	}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	w.calls = append(w.calls, call{req.Method, req.URL.Path})
	rec := httptest.NewRecorder()
	w.door.ServeHTTP(rec, req)
	if w.lost != nil && w.lost(req) {
		return nil, errors.New("connection reset")
	}
	return rec.Result(), nil
}

// writes are the calls since n that changed something at the engine. A preview asks only.
func (w *stage) writes(n int) []call {
	return slices.DeleteFunc(slices.Clone(w.calls[n:]), func(c call) bool { return c.Method == http.MethodGet || strings.Contains(c.Path, "preview") })
}

// parts are what a process of this world works with.
func (w *stage) parts() Parts {
	remotes := map[string]gitsource.Remote{}
	for name, m := range w.remotes {
		remotes[name] = m
	}
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("SLUICE_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return Parts{Engine: w.Client, Journal: w.journal, Remotes: remotes, Forges: w.forges, Now: func() time.Time { return w.now.Add(-w.lag) }, Logger: log, Traces: w.traces, Out: io.Discard}
}

// open starts a reconciler over the world's journal, as a process does.
func (w *stage) open() *Reconciler {
	w.t.Helper()
	r, err := New(w.config, w.parts())
	require.NoError(w.t, err)
	w.r = r
	return r
}

// begin starts a reconciler and takes the lease; the process before it is dead.
func (w *stage) begin() *Reconciler {
	w.t.Helper()
	if w.r != nil {
		w.advance(leaseFor + time.Second)
	}
	r := w.open()
	require.NoError(w.t, r.Begin(w.t.Context()))
	return r
}

// advance lets time go by: the engine and the fleet do what is due.
func (w *stage) advance(d time.Duration) {
	w.t.Helper()
	until := w.now.Add(d)
	for {
		at := w.step()
		if !at.After(w.now) || at.After(until) {
			break
		}
		w.now = at
	}
	w.now = until
	w.step()
}

// step does what is due now and returns when the next thing is.
func (w *stage) step() time.Time {
	for range 1000 {
		w.fleet.Step(w.now)
		next, pending, err := w.hand.Step(w.t.Context())
		require.NoError(w.t, err)
		due, moving := w.fleet.Step(w.now)
		if moving && due.Before(next) || !pending && moving {
			next, pending = due, true
		}
		if !pending {
			return w.now
		}
		if next.After(w.now) {
			return next
		}
	}
	w.t.Fatal("the engine does not come to rest")
	return time.Time{}
}

// pass makes one pass over everything. The lease is kept.
func (w *stage) pass() error {
	w.t.Helper()
	return w.r.Once(w.t.Context())
}

// passes makes passes, one in each interval, for a stretch of time.
func (w *stage) passes(d, every time.Duration) {
	w.t.Helper()
	for until := w.now.Add(d); w.now.Before(until); {
		require.NoError(w.t, w.pass())
		w.advance(every)
	}
}

// until makes passes until something is so.
func (w *stage) until(what string, most time.Duration, so func() bool) {
	w.t.Helper()
	for until := w.now.Add(most); !so(); {
		require.True(w.t, w.now.Before(until), "%s: not within %s\n%s", what, most, w.show())
		require.NoError(w.t, w.pass())
		if so() {
			return
		}
		w.advance(10 * time.Second)
	}
}

// show is the status for a failing test.
func (w *stage) show() string {
	s, err := w.r.Status(w.t.Context())
	if err != nil {
		return err.Error()
	}
	out := ""
	for _, r := range s.Repositories {
		for _, k := range r.Stacks {
			out += fmt.Sprintf("%s/%s %s %s %v %+v\n", r.Name, k.Name, k.Phase, k.Error, k.Waits, k.Rollouts)
		}
		out += r.Error + "\n"
	}
	lines, err := w.r.History(w.t.Context(), journal.Query{Most: 15})
	if err != nil {
		return err.Error()
	}
	for _, l := range slices.Backward(lines) {
		out += l.At.Format(time.TimeOnly) + " " + l.Kind + " " + l.Text + "\n"
	}
	return out
}

// stack is the status of one stack.
func (w *stage) stack(repository, stack string) StackStatus {
	w.t.Helper()
	s, err := w.r.Status(w.t.Context())
	require.NoError(w.t, err)
	for _, r := range s.Repositories {
		for _, k := range r.Stacks {
			if r.Name == repository && k.Name == stack {
				return k
			}
		}
	}
	w.t.Fatalf("no stack %s/%s", repository, stack)
	return StackStatus{}
}

// all are an endpoint's rollouts at the engine, oldest first.
func (w *stage) all(endpoint string) []api.Rollout {
	w.t.Helper()
	var out []api.Rollout
	for ep, err := range w.Client.Endpoints(w.t.Context(), engineclient.ListOptions{}) {
		require.NoError(w.t, err)
		if !strings.HasSuffix(ep.Name, "/"+endpoint) {
			continue
		}
		for r, err := range w.Client.Rollouts(w.t.Context(), ep.ID, "") {
			require.NoError(w.t, err)
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b api.Rollout) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	return out
}

// follow adds a repository of one stack in its folder "prod" to the configuration.
func (w *stage) follow(name string, files map[string]string) *memoryRemote {
	w.t.Helper()
	m := newMemoryRemote(w)
	w.remotes[name] = m
	if files != nil {
		m.push("main", "first", files)
	}
	w.config.Repositories = append(w.config.Repositories, RepositoryConfig{
		Name: name, URL: "https://git.test/" + name + ".git", Wanted: gitsource.Wanted{Branch: "main"}, Store: Mirror,
		Interval: time.Minute, Deadline: 2 * time.Minute, Approval: ApproveByMerge, Supersede: Latest, Drift: ReportDrift,
		Stacks: []StackConfig{{Name: "prod", Folder: "prod"}}, Prune: PruneConfig{MostShrink: 30},
	})
	w.config.State.Keep = 90 * 24 * time.Hour
	return m
}

// repository is the configuration of one to change.
func (w *stage) repository(name string) *RepositoryConfig {
	for i := range w.config.Repositories {
		if w.config.Repositories[i].Name == name {
			return &w.config.Repositories[i]
		}
	}
	return nil
}

// canaryHouse is a declaration: an endpoint with a serving deployment and a candidate, and a
// canary between them when steps are given.
func canaryHouse(endpoint string, steps ...int) string {
	out := fmt.Sprintf(`
resource "sluice_endpoint" "e" {
  name = %q
}

resource "sluice_deployment" "stable" {
  endpoint_id            = sluice_endpoint.e.id
  name                   = "stable"
  model                  = "m/a"
  initial_traffic_weight = 100
  autoscaling            = { min_replicas = 2, max_replicas = 4 }
}

resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.e.id
  name        = "candidate"
  model       = "m/b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`, endpoint)
	if len(steps) == 0 {
		return out
	}
	var rungs []string
	for _, s := range steps {
		rungs = append(rungs, fmt.Sprintf("{ traffic = %d }", s))
	}
	return out + fmt.Sprintf(`
resource "sluice_rollout" "r" {
  endpoint_id          = sluice_endpoint.e.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  canary               = { steps = [%s], step_interval = "10m" }
  metrics = [{
    name = "router_latency", stat = "PERCENTILE", percentile = 95
    regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 25 }
  }]
}
`, strings.Join(rungs, ", "))
}

// virtualMeter answers every query with a plain number of a deployment.
type virtualMeter struct {
	w     *stage
	value map[string]float64 // milliseconds by model; default 100
	blind bool
}

func (m *virtualMeter) Read(_ context.Context, q rollout.Query) (rollout.Reading, error) {
	if m.blind {
		return rollout.Reading{}, errors.New("the meter is away")
	}
	v := 100.0
	if slow, ok := m.value[q.Deployment]; ok {
		v = slow
	}
	return rollout.Reading{Value: v, Samples: 5000, Touched: true, Complete: true}, nil
}

func (m *virtualMeter) Rate(string, time.Duration) engine.Rate {
	return engine.Rate{Requests: 600, PerSecond: 10, Since: epoch}
}

func (m *virtualMeter) Usage(_ string, from, to time.Time) engine.Usage {
	return engine.Usage{Requests: int64(to.Sub(from).Seconds() * 10), PerSecond: 10}
}

func (m *virtualMeter) Forget(string) {}

// memoryRouter keeps routes.
type memoryRouter struct{ routes map[string]rollout.Route }

func (r *memoryRouter) Apply(route rollout.Route) error {
	r.routes[route.EndpointID] = route
	return route.Validate()
}
func (r *memoryRouter) Remove(endpoint string) { delete(r.routes, endpoint) }
func (r *memoryRouter) Serving(endpoint string) (rollout.Route, bool) {
	route, ok := r.routes[endpoint]
	return route, ok
}

func newJournal() *journaltest.Memory { return journaltest.New() }
