package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// overlap notices two turns at one rollout at a time: a turn begins by reading its
// record and writes it before the next.
type overlap struct {
	engine.Store
	mu   sync.Mutex
	at   map[string]int
	most int
	hold time.Duration
}

func (s *overlap) Commit(ctx context.Context, c rollout.Change) error {
	for _, r := range c.Rollouts {
		if r.State == rollout.Pending || r.StartedAt.Equal(r.UpdatedAt) {
			continue // the commands'
		}
		s.mu.Lock()
		s.at[r.ID]++
		s.most = max(s.most, s.at[r.ID])
		s.mu.Unlock()
		time.Sleep(s.hold)
		s.mu.Lock()
		s.at[r.ID]--
		s.mu.Unlock()
	}
	return s.Store.Commit(ctx, c)
}

func TestOneWorkerAtARolloutHoweverOftenItIsPoked(t *testing.T) {
	o := &overlap{at: map[string]int{}, hold: 300 * time.Millisecond}
	p := ports{store: func(s engine.Store) engine.Store { o.Store = s; return o }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		for range 200 {
			_, err := w.StartRollout(t.Context(), w.alice, s.ep.ID, r.ID) // pokes
			require.NoError(t, err)
			time.Sleep(50 * time.Millisecond)
		}
		w.reach(r, rollout.Completed)
		require.Equal(t, 1, o.most)
	})
}

// A control that comes while a turn is under way is seen by the next turn at once,
// and not at the next tick.
func TestAPokeDuringATurnIsNotLost(t *testing.T) {
	o := &overlap{at: map[string]int{}, hold: 300 * time.Millisecond}
	p := ports{store: func(s engine.Store) engine.Store { o.Store = s; return o }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		w.stop()
		w.config.Poll = time.Hour
		w.start()
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhaseScaling)
		for !func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.at[r.ID] > 0 }() {
			time.Sleep(10 * time.Millisecond)
		}
		_, err := w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Cancel("now"))
		require.NoError(t, err)
		asked := time.Now()
		r = w.reach(r, rollout.Canceled)
		require.Less(t, r.CompletedAt.Sub(asked), 3*time.Second)
	})
}

// many fills a store with endpoints that each have a rollout in a long soak.
func many(t *testing.T, s *store.SQLite, n int) {
	t.Helper()
	now := time.Now()
	var c rollout.Change
	for i := range n {
		ep := rollout.Endpoint{ID: fmt.Sprintf("ep_%d", i), ProjectID: "proj_a", Name: fmt.Sprintf("e%d", i), CreatedAt: now, Generation: 1, ActiveRollout: fmt.Sprintf("rol_%d", i)}
		for _, side := range []string{"s", "t"} {
			c.Deployments = append(c.Deployments, rollout.Deployment{ID: fmt.Sprintf("dep_%s%d", side, i), EndpointID: ep.ID, Name: side, Config: stableConfig, Hardware: hardware, CreatedAt: now})
		}
		spec := rollout.Spec{Source: fmt.Sprintf("dep_s%d", i), Target: fmt.Sprintf("dep_t%d", i), Strategy: rollout.BlueGreen}
		j, ps := rollout.NewJourney(spec, rollout.Basis{SourceReplicas: 1}, rollout.DefaultTimings())
		require.Empty(t, ps)
		r, _ := rollout.New(ep.ActiveRollout, "proj_a", ep.ID, spec, j, rollout.DefaultTimings(), now)
		r, _, err := r.Start(now)
		require.NoError(t, err)
		r, _, err = r.PauseBy("alice", "", now)
		require.NoError(t, err)
		r.State = rollout.SystemPaused
		r.RetryAt = now.Add(time.Hour)
		c.Endpoints, c.Rollouts = append(c.Endpoints, ep), append(c.Rollouts, r)
	}
	require.NoError(t, s.Commit(t.Context(), c))
}

func TestThousandsOfWaitingRolloutsTakeNoGoroutines(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	const n = 2000
	many(t, s, n)
	f, err := simulated.New(simulated.Config{Pools: pools()})
	require.NoError(t, err)
	e := engine.New(engine.Config{Store: s, Fleet: f, Router: newRouters(), Meter: &readings{}, Timings: rollout.DefaultTimings(), Serving: []rollout.ServingConfig{{ID: stableConfig, Models: []string{"*"}, Hardware: hardware}}})
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	// Until it has looked at all of them, its queries have goroutines of their own.
	var during int
	calm := 0
	require.Eventually(t, func() bool {
		if during = runtime.NumGoroutine(); during-before >= 30 {
			calm = 0
		}
		calm++
		return calm > 20
	}, time.Minute, 10*time.Millisecond, "%d goroutines more", during-before)
	cancel()
	require.NoError(t, <-done)
	t.Logf("measured: %d waiting rollouts, %d goroutines more", n, during-before)
	require.NoError(t, f.Close(t.Context()))
	require.NoError(t, s.Close())
}

// From the request to the routers: on the real clock, with a store that syncs.
func TestCancelLatency(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	f, err := simulated.New(simulated.Config{Pools: pools()})
	require.NoError(t, err)
	f.Start()
	router := newRouters()
	e := engine.New(engine.Config{
		Store: s, Fleet: f, Router: router, Meter: &readings{}, Timings: rollout.DefaultTimings(), Project: rollout.Project{ID: "proj_a", Slug: "demo"},
		Serving: []rollout.ServingConfig{{ID: stableConfig, Models: []string{"*"}, Hardware: hardware, ColdStart: time.Minute, Simulated: rollout.SimulatedServing{ColdStart: time.Millisecond}}},
	})
	require.NoError(t, e.Load(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	by := engine.Caller{Name: "alice"}
	ep, err := e.CreateEndpoint(ctx, by, "chat", "")
	require.NoError(t, err)
	var ids []string
	for i, name := range []string{"a", "b"} {
		d, err := e.CreateDeployment(ctx, by, ep.ID, engine.DeploymentSpec{Name: name, Model: "m", Bounds: rollout.Bounds{Min: 1 - i, Max: 1 - i}}, engine.ForReal)
		require.NoError(t, err)
		ids = append(ids, d.ID)
	}
	_, err = e.UpdateEndpoint(ctx, by, ep.ID, "", engine.EndpointChange{Split: &[]rollout.Weight{{Deployment: ids[0], Weight: 1}}})
	require.NoError(t, err)
	var worst time.Duration
	const rounds = 5
	for round := range rounds {
		if round > 0 { // back to where it was
			_, err = e.UpdateEndpoint(ctx, by, ep.ID, "", engine.EndpointChange{Split: &[]rollout.Weight{{Deployment: ids[0], Weight: 1}}})
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { st, err := f.Observe(ctx, ids[0]); return err == nil && st.Ready == 1 }, 5*time.Second, time.Millisecond)
		r, err := e.CreateRollout(ctx, by, ep.ID, rollout.Spec{Source: ids[0], Target: ids[1], Strategy: rollout.Canary, Steps: []rollout.StepSpec{{Percent: 10}, {Percent: 100}}})
		require.NoError(t, err)
		_, err = e.StartRollout(ctx, by, ep.ID, r.ID)
		require.NoError(t, err)
		require.Eventually(t, func() bool { route, _ := router.Serving(ep.ID); return route.Pair != nil && route.Pair.Percent == 10 }, 5*time.Second, time.Millisecond)
		asked := time.Now()
		_, err = e.ControlRollout(ctx, by, ep.ID, r.ID, "", e.Cancel("measure"))
		require.NoError(t, err)
		accepted := time.Since(asked)
		var frozen time.Duration
		require.Eventually(t, func() bool {
			router.mu.Lock()
			defer router.mu.Unlock()
			last := router.history[len(router.history)-1]
			frozen = last.at.Sub(asked)
			return last.route.Pair == nil
		}, 5*time.Second, time.Millisecond)
		worst = max(worst, frozen)
		t.Logf("measured: cancel accepted after %s, split frozen in the router after %s", accepted, frozen)
		require.Eventually(t, func() bool { now, err := s.Rollout(ctx, r.ID); return err == nil && now.State == rollout.Canceled }, 5*time.Second, time.Millisecond)
	}
	t.Logf("measured: worst of %d from a cancel's request to the frozen split: %s", rounds, worst)
	require.Less(t, worst, 5*time.Second)
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, f.Close(context.Background()))
	require.NoError(t, s.Close())
}
