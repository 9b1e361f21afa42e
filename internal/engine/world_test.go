package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// world is a whole engine on a virtual clock: the real store in a file, the
// simulated fleet, and routers and a meter of which a test decides what they do.
type world struct {
	*engine.Engine
	t       *testing.T
	disk    *store.SQLite
	fleet   *simulated.Fleet
	router  *routers
	meter   *readings
	ports   ports
	config  engine.Config
	alice   engine.Caller
	running *running
}

// ports lets a test put itself between the engine and the world.
type ports struct {
	store  func(engine.Store) engine.Store
	fleet  func(engine.Fleet) engine.Fleet
	router func(engine.Router) engine.Router
	brisk  *brisk
}

// brisk compresses the waits, for tests that run very many rollouts.
type brisk struct{}

func (b *brisk) coldStart() time.Duration {
	if b == nil {
		return coldStart
	}
	return 5 * time.Second
}

func (b *brisk) timings() rollout.Timings {
	t := rollout.DefaultTimings()
	if b != nil {
		t.Propagation, t.IngestionLag, t.DefaultWindow, t.Confirmation, t.PeekEvery = 2*time.Second, 2*time.Second, 6*time.Second, 2*time.Second, time.Second
		t.GateSettle, t.MinimumWindow, t.DefaultInterval = time.Second, time.Second, 6*time.Second
	}
	return t
}

// running is an engine that Run works on.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

const (
	stableConfig    = "cr_stable"
	candidateConfig = "cr_candidate"
	hardware        = "1xgpu"
	coldStart       = 237 * time.Second
)

// inWorld runs a test in a bubble with a virtual clock.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) { inWorldWith(t, ports{}, test) }

func inWorldWith(t *testing.T, p ports, test func(t *testing.T, w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk, err := store.Open(t.Context(), dir)
		require.NoError(t, err)
		f, err := simulated.New(simulated.Config{Pools: pools()})
		require.NoError(t, err)
		f.Start()
		w := &world{t: t, disk: disk, fleet: f, router: newRouters(), meter: &readings{}, ports: p, alice: engine.Caller{Name: "alice"}}
		serving := func(id, model string) rollout.ServingConfig {
			return fleet.WithDefaults(rollout.ServingConfig{ID: id, Models: []string{model}, Hardware: hardware, Simulated: rollout.SimulatedServing{ColdStart: p.brisk.coldStart()}})
		}
		w.config = engine.Config{
			Timings: p.brisk.timings(), Project: rollout.Project{ID: "proj_a", Slug: "demo", Organization: "org"},
			Serving: []rollout.ServingConfig{serving(stableConfig, "m/stable"), serving(candidateConfig, "m/candidate")},
			Logger:  slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelError})),
		}
		w.start()
		test(t, w)
		w.stop()
		require.NoError(t, w.fleet.Close(context.Background()))
		require.NoError(t, disk.Close())
	})
}

func pools() []fleet.Pool {
	return []fleet.Pool{{Hardware: rollout.Hardware{ID: hardware, Capacity: 100}}}
}

// testLog shows an engine's log with the test's output.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// start makes an engine on what stands and runs it, as after a restart: the routers
// begin empty when a test has put new ones.
func (w *world) start() {
	w.t.Helper()
	c := w.config
	c.Store, c.Fleet, c.Router, c.Meter = w.disk, w.fleet, w.router, w.meter
	if w.ports.store != nil {
		c.Store = w.ports.store(c.Store)
	}
	if w.ports.fleet != nil {
		c.Fleet = w.ports.fleet(c.Fleet)
	}
	if w.ports.router != nil {
		c.Router = w.ports.router(c.Router)
	}
	w.Engine = engine.New(c)
	require.NoError(w.t, w.Load(w.t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	w.running = &running{cancel: cancel, done: make(chan error, 1)}
	go func(e *engine.Engine) { w.running.done <- e.Run(ctx) }(w.Engine)
}

func (w *world) stop() {
	w.t.Helper()
	if w.running == nil {
		return
	}
	w.running.cancel()
	require.NoError(w.t, <-w.running.done)
	w.running = nil
}

// routers are a data plane that only remembers.
type routers struct {
	mu      sync.Mutex
	serving map[string]rollout.Route
	history []served
	refuse  func(rollout.Route) error
}

// served is one route that was taken.
type served struct {
	at    time.Time
	route rollout.Route
}

func newRouters() *routers { return &routers{serving: map[string]rollout.Route{}} }

func (r *routers) Apply(route rollout.Route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := route.Validate(); err != nil {
		return err
	}
	if now, ok := r.serving[route.EndpointID]; ok && route.Generation <= now.Generation {
		return fmt.Errorf("generation %d is not above %d", route.Generation, now.Generation)
	}
	if r.refuse != nil {
		if err := r.refuse(route); err != nil {
			return err
		}
	}
	r.serving[route.EndpointID] = route
	r.history = append(r.history, served{time.Now(), route})
	return nil
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

func (r *routers) refuseWhen(f func(rollout.Route) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = f
}

// readings are a meter that answers what a test says.
type readings struct {
	mu   sync.Mutex
	read func(rollout.Query) (rollout.Reading, error)

	forgotten []string // deployments
}

func (m *readings) Read(_ context.Context, q rollout.Query) (rollout.Reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil {
		return rollout.Reading{Value: 100, Samples: 1000, Complete: true}, nil
	}
	return m.read(q)
}

func (m *readings) Rate(string, time.Duration) engine.Rate              { return engine.Rate{Requests: 60} }
func (m *readings) Usage(string, time.Time, time.Time) (u engine.Usage) { return u }
func (m *readings) Forget(deployment string)                            { m.forgotten = append(m.forgotten, deployment) }

// setting is one endpoint with what stands on it.
type setting struct {
	ep     rollout.Endpoint
	source rollout.Deployment
	target rollout.Deployment
}

// settle makes an endpoint with a source of n ready replicas that has all traffic,
// and a stopped target.
func (w *world) settle(n int) setting {
	w.t.Helper()
	ctx := w.t.Context()
	ep, err := w.CreateEndpoint(ctx, w.alice, "chat", "VISIBILITY_PRIVATE")
	require.NoError(w.t, err)
	s := setting{ep: ep, source: w.deploy(ep.ID, "stable", "m/stable", n), target: w.deploy(ep.ID, "candidate", "m/candidate", 0)}
	w.ready(ep.ID, s.source.ID, n)
	w.split(ep.ID, rollout.Weight{Deployment: s.source.ID, Weight: 1})
	return s
}

func (w *world) deploy(endpoint, name, model string, n int) rollout.Deployment {
	w.t.Helper()
	d, err := w.CreateDeployment(w.t.Context(), w.alice, endpoint, engine.DeploymentSpec{Name: name, Model: model, Bounds: rollout.Bounds{Min: n, Max: n}}, engine.ForReal)
	require.NoError(w.t, err)
	return d
}

// ready waits until a deployment has n replicas that the routers send to.
func (w *world) ready(endpoint, deployment string, n int) {
	w.t.Helper()
	w.until(10*time.Minute, func() bool {
		route, _ := w.router.Serving(endpoint)
		for _, m := range route.Members {
			if m.Deployment == deployment {
				return m.Ready() == n
			}
		}
		return false
	}, "deployment %s never has %d ready replicas", deployment, n)
}

func (w *world) split(endpoint string, weights ...rollout.Weight) {
	w.t.Helper()
	_, err := w.UpdateEndpoint(w.t.Context(), w.alice, endpoint, "", engine.EndpointChange{Split: &weights})
	require.NoError(w.t, err)
}

// until lets virtual time pass until something holds.
func (w *world) until(most time.Duration, holds func() bool, format string, args ...any) {
	w.t.Helper()
	for end := time.Now().Add(most); !holds(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			require.FailNow(w.t, fmt.Sprintf(format, args...))
		}
		synctest.Wait()
	}
}

func (s setting) canary(steps ...int) rollout.Spec {
	spec := rollout.Spec{Source: s.source.ID, Target: s.target.ID, Strategy: rollout.Canary}
	for _, p := range steps {
		spec.Steps = append(spec.Steps, rollout.StepSpec{Percent: p})
	}
	return spec
}

func (s setting) gated(steps ...int) rollout.Spec {
	spec := s.canary(steps...)
	spec.Rules = []rollout.Rule{{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 95, Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 25}}}
	return spec
}

func (s setting) back() rollout.Spec {
	return rollout.Spec{Source: s.target.ID, Target: s.source.ID, Strategy: rollout.BlueGreen}
}

// begin creates and starts a rollout.
func (w *world) begin(s setting, spec rollout.Spec) rollout.Rollout {
	w.t.Helper()
	r, err := w.CreateRollout(w.t.Context(), w.alice, s.ep.ID, spec)
	require.NoError(w.t, err)
	r, err = w.StartRollout(w.t.Context(), w.alice, s.ep.ID, r.ID)
	require.NoError(w.t, err)
	return r
}

func (w *world) now(r rollout.Rollout) rollout.Rollout {
	w.t.Helper()
	r, err := w.disk.Rollout(w.t.Context(), r.ID)
	require.NoError(w.t, err)
	return r
}

// reach waits until a rollout is in a state.
func (w *world) reach(r rollout.Rollout, state rollout.State) rollout.Rollout {
	w.t.Helper()
	w.until(6*time.Hour, func() bool { return w.now(r).State == state }, "rollout never becomes %s", state)
	return w.now(r)
}

// phase waits until a rollout is in a phase of a step.
func (w *world) phase(r rollout.Rollout, step int, p rollout.Phase) rollout.Rollout {
	w.t.Helper()
	w.until(6*time.Hour, func() bool { now := w.now(r); return now.Step == step && now.Phase == p }, "rollout never is in %s of step %d", p, step)
	return w.now(r)
}

func (w *world) shares(endpoint string) map[string]float64 {
	route, _ := w.router.Serving(endpoint)
	return engine.Shares(route)
}

// feed is a rollout's events as "type: message", oldest first.
func (w *world) feed(r rollout.Rollout) []string {
	w.t.Helper()
	rows, next, err := w.disk.Events(w.t.Context(), rollout.EventQuery{EndpointID: r.EndpointID, Subject: r.ID, Limit: 1000})
	require.NoError(w.t, err)
	require.Zero(w.t, next)
	out := make([]string, len(rows))
	for i, e := range rows {
		out[len(rows)-1-i] = string(e.Type) + ": " + e.Message
	}
	return out
}

func types(feed []string) []string {
	out := make([]string, 0, len(feed))
	for _, line := range feed {
		kind, _, _ := strings.Cut(line, ": ")
		out = append(out, kind)
	}
	return out
}

// refusedAs asserts what kind of refusal an error is, and that it says this.
func refusedAs(t *testing.T, err error, kind engine.Kind, says ...string) {
	t.Helper()
	var refused *engine.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, kind, refused.Kind, refused.Message)
	for _, s := range says {
		require.Contains(t, refused.Message, s)
	}
}

var errDown = errors.New("down for a test")
