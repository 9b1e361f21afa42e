package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// breaker counts the engine's outward calls and breaks the power at one of them:
// before or after it took effect, and for every call from then on.
type breaker struct {
	mu    sync.Mutex
	at    int // the call that breaks; 0 for none
	after bool
	n     int
	dead  bool
	trip  func()
}

var errPower = errors.New("the power is gone")

func (b *breaker) through(do func() error) error {
	b.mu.Lock()
	if b.dead {
		b.mu.Unlock()
		return errPower
	}
	b.n++
	if b.n != b.at {
		b.mu.Unlock()
		return do()
	}
	b.dead = true
	b.mu.Unlock()
	if b.after {
		_ = do()
	}
	b.trip()
	return errPower
}

type breakingStore struct {
	engine.Store
	b *breaker
}

func (s breakingStore) Commit(ctx context.Context, c rollout.Change) error {
	return s.b.through(func() error { return s.Store.Commit(ctx, c) })
}

type breakingFleet struct {
	engine.Fleet
	b *breaker
}

func (f breakingFleet) Ensure(ctx context.Context, w rollout.Workload) error {
	return f.b.through(func() error { return f.Fleet.Ensure(ctx, w) })
}

type breakingRouter struct {
	engine.Router
	b *breaker
}

func (r breakingRouter) Apply(route rollout.Route) error {
	return r.b.through(func() error { return r.Router.Apply(route) })
}

// crashedRun runs one rollout to its end with a crash at one call, and returns the
// feed, the record and the split, without what differs by the clock.
func crashedRun(t *testing.T, at int, after bool, end func(w *world, s setting) rollout.Rollout) (feed []string, r rollout.Rollout, shares []float64, calls int) {
	t.Helper()
	b := &breaker{at: at, after: after}
	p := ports{
		brisk:  &brisk{},
		store:  func(s engine.Store) engine.Store { return breakingStore{s, b} },
		fleet:  func(f engine.Fleet) engine.Fleet { return breakingFleet{f, b} },
		router: func(r engine.Router) engine.Router { return breakingRouter{r, b} },
	}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		crashed := make(chan struct{})
		b.trip = func() { close(crashed) }
		target := b.at
		b.at = 0
		s := w.settle(2)
		b.mu.Lock()
		b.n, b.at = 0, target
		b.mu.Unlock()
		done := make(chan struct{})
		go func() {
			select {
			case <-crashed:
			case <-done:
				return
			}
			w.stop()
			b.mu.Lock()
			b.dead, calls = false, b.n
			b.mu.Unlock()
			w.router = newRouters() // the gateway died with the engine
			w.start()
			close(done)
		}()
		if target == 0 {
			close(done)
		}
		r = end(w, s)
		if target != 0 {
			select {
			case <-done:
			default: // notifications of the fleet came together, and there was no such call
				close(done)
			}
		}
		feed = w.feed(r)
		for i := range feed {
			feed[i] = strings.NewReplacer(r.ID, "ROL", s.source.ID, "SOURCE", s.target.ID, "TARGET").Replace(feed[i])
		}
		got := w.shares(s.ep.ID)
		shares = []float64{got[s.source.ID], got[s.target.ID]}
		calls = b.n
	})
	return feed, r, shares, calls
}

// eventually repeats a command over a crash, as a client does.
func eventually(w *world, do func() error) {
	w.t.Helper()
	w.until(time.Hour, func() bool {
		err := do()
		var refused *engine.Error
		if errors.As(err, &refused) {
			require.NoError(w.t, err)
		}
		return err == nil
	}, "the command never gets through")
}

func TestCrashAtEveryEffectBoundary(t *testing.T) {
	completes := func(w *world, s setting) rollout.Rollout {
		return driven(w, s, nil)
	}
	cancels := func(w *world, s setting) rollout.Rollout {
		return driven(w, s, func(r rollout.Rollout) bool { return r.Step == 1 && r.Phase == rollout.PhaseSoaking })
	}
	for name, end := range map[string]func(*world, setting) rollout.Rollout{"completes": completes, "is canceled": cancels} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, wantRecord, wantShares, calls := crashedRun(t, 0, false, end)
			require.Greater(t, calls, 20)
			stride := everyCall
			if testing.Short() {
				stride = 7
			}
			for at := 1; at <= calls; at += stride {
				for _, after := range []bool{false, true} {
					feed, r, shares, _ := crashedRun(t, at, after, end)
					require.Equal(t, want, feed, "a crash at call %d (after it took effect: %v)", at, after)
					require.Equal(t, wantRecord.State, r.State)
					require.Equal(t, wantRecord.Percent, r.Percent)
					require.InDeltaSlice(t, wantShares, shares, 1e-9)
					require.True(t, slices.EqualFunc(wantRecord.Steps, r.Steps, func(a, b rollout.StepRecord) bool { return a.State == b.State }))
				}
			}
			t.Logf("measured: %d outward calls, each crashed before and after it took effect", calls)
		})
	}
}

// driven creates, starts and follows one rollout as a client that repeats what was
// not answered, and cancels it once.
func driven(w *world, s setting, cancelAt func(rollout.Rollout) bool) rollout.Rollout {
	w.t.Helper()
	ctx := context.Background()
	by := engine.Caller{Name: "alice", IdempotencyKey: "key", Digest: "d"}
	var r rollout.Rollout
	eventually(w, func() (err error) {
		r, err = w.CreateRollout(ctx, by, s.ep.ID, s.gated(50, 100))
		return err
	})
	eventually(w, func() error { _, err := w.StartRollout(ctx, w.alice, s.ep.ID, r.ID); return err })
	canceled := cancelAt == nil
	w.until(12*time.Hour, func() bool {
		now, err := w.disk.Rollout(ctx, r.ID)
		if err != nil {
			return false
		}
		if !canceled && cancelAt(now) {
			if now.State != rollout.Cancelling {
				_, err := w.ControlRollout(ctx, w.alice, s.ep.ID, r.ID, "", w.Cancel("enough"))
				canceled = err == nil
			}
		}
		r = now
		return now.State.Terminal()
	}, "the rollout never ends")
	time.Sleep(time.Minute) // what is late comes
	return r
}

func TestAStoreThatFailsForAWhileOnlyDelays(t *testing.T) {
	var down atomic.Bool
	p := ports{store: func(s engine.Store) engine.Store { return flakyStore{s, &down} }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		for range 5 { // shorter than the engine's patience
			time.Sleep(70 * time.Second)
			down.Store(true)
			time.Sleep(40 * time.Second)
			down.Store(false)
		}
		r = w.reach(r, rollout.Completed)
		require.NotContains(t, types(w.feed(r)), "rollout.system_paused")
	})
}

type flakyStore struct {
	engine.Store
	down *atomic.Bool
}

func (s flakyStore) Commit(ctx context.Context, c rollout.Change) error {
	if s.down.Load() {
		return errDown
	}
	return s.Store.Commit(ctx, c)
}

// A write that was kept while its answer was lost is met again as what it is.
func TestALostAnswerOfTheStoreIsNoSecondWrite(t *testing.T) {
	var every atomic.Int64
	p := ports{store: func(s engine.Store) engine.Store { return forgetfulStore{s, &every} }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		s := w.settle(2)
		every.Store(3)
		by := engine.Caller{Name: "alice", IdempotencyKey: "key", Digest: "d"}
		var r rollout.Rollout
		eventually(w, func() (err error) {
			r, err = w.CreateRollout(t.Context(), by, s.ep.ID, s.canary(50, 100))
			return err
		})
		eventually(w, func() error { _, err := w.StartRollout(t.Context(), w.alice, s.ep.ID, r.ID); return err })
		r = w.reach(r, rollout.Completed)
		feed := w.feed(r)
		require.Len(t, feed, 2+2*6+1)
		all, err := w.disk.Rollouts(t.Context(), s.ep.ID)
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
}

type forgetfulStore struct {
	engine.Store
	every *atomic.Int64
}

func (s forgetfulStore) Commit(ctx context.Context, c rollout.Change) error {
	err := s.Store.Commit(ctx, c)
	if every := s.every.Load(); err == nil && every > 0 && time.Now().Unix()%every == 0 {
		return errDown
	}
	return err
}

func TestARouterThatRefusesParksAndIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		w.router.refuseWhen(func(route rollout.Route) error {
			if route.Pair != nil && route.Pair.Percent == 100 {
				return errDown
			}
			return nil
		})
		r = w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.RoutingError, r.Condition.Category)
		require.Contains(t, r.Condition.Message, errDown.Error())
		// Whatever changes the route while it is parked does not move the traffic.
		status, err := w.fleet.Observe(t.Context(), s.source.ID)
		require.NoError(t, err)
		w.router.refuseWhen(nil)
		require.NoError(t, w.fleet.Kill(status.Replicas[0].ID))
		time.Sleep(5 * time.Minute)
		require.InDelta(t, 0.5, w.shares(s.ep.ID)[s.target.ID], 1e-9, "a parked rollout keeps its split")
		ep, err := w.Endpoint(t.Context(), s.ep.ID)
		require.NoError(t, err)
		require.Equal(t, 50, ep.Pair.Percent)

		_, err = w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Resume())
		require.NoError(t, err)
		w.reach(r, rollout.Completed)
	})
}

func TestARouterThatRefusesTheHoldParksBeforeAnythingMoves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		w.router.refuseWhen(func(route rollout.Route) error {
			if route.Pair != nil {
				return errDown
			}
			return nil
		})
		r := w.reach(w.begin(s, s.canary(50, 100)), rollout.SystemPaused)
		require.Equal(t, rollout.RoutingError, r.Condition.Category)
		status, err := w.fleet.Observe(t.Context(), s.target.ID)
		require.NoError(t, err)
		require.Zero(t, status.Scheduled)
		w.router.refuseWhen(nil)
		r = w.reach(r, rollout.Completed) // by the retry
		require.Contains(t, types(w.feed(r)), "rollout.retried")
	})
}

// A cancel freezes the split also while the fleet does not answer.
func TestCancelWhileTheFleetIsDown(t *testing.T) {
	var down atomic.Bool
	p := ports{fleet: func(f engine.Fleet) engine.Fleet { return flakyFleet{f, &down} }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		down.Store(true)
		time.Sleep(10 * time.Second)
		_, err := w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Cancel("the fleet is down"))
		require.NoError(t, err)
		asked := time.Now()
		r = w.reach(r, rollout.Canceled)
		require.Less(t, r.CompletedAt.Sub(asked), 2*time.Second)
		require.InDelta(t, 0.5, w.shares(s.ep.ID)[s.target.ID], 1e-9)
		down.Store(false)
		time.Sleep(time.Minute)
		require.InDelta(t, 0.5, w.shares(s.ep.ID)[s.target.ID], 1e-9)
	})
}

type flakyFleet struct {
	engine.Fleet
	down *atomic.Bool
}

func (f flakyFleet) Observe(ctx context.Context, id string) (rollout.FleetStatus, error) {
	if f.down.Load() {
		return rollout.FleetStatus{}, errDown
	}
	return f.Fleet.Observe(ctx, id)
}

func (f flakyFleet) Ensure(ctx context.Context, w rollout.Workload) error {
	if f.down.Load() {
		return errDown
	}
	return f.Fleet.Ensure(ctx, w)
}

func TestAFleetThatStaysDownParksAndIsTakenUpAgain(t *testing.T) {
	var down atomic.Bool
	p := ports{fleet: func(f engine.Fleet) engine.Fleet { return flakyFleet{f, &down} }}
	inWorldWith(t, p, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		down.Store(true)
		began := time.Now()
		r = w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.DependencyOutage, r.Condition.Category)
		require.Contains(t, r.Condition.Message, errDown.Error())
		require.Less(t, time.Since(began), 90*time.Second)
		down.Store(false)
		w.reach(r, rollout.Completed)
	})
}

// The operator removes a config from the configuration file while a rollout needs it.
func TestAConfigThatVanishedParksAndDoesNotKeepTheEngineFromStarting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		w.stop()
		all := w.config.Serving
		w.config.Serving = all[:1]
		w.start()
		require.InDelta(t, 0.5, w.shares(s.ep.ID)[s.target.ID], 1e-9, "what runs goes on serving")
		r = w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.DependencyOutage, r.Condition.Category)
		require.Contains(t, r.Condition.Message, candidateConfig)
		target, err := w.Deployment(t.Context(), s.ep.ID, s.target.ID)
		require.NoError(t, err)
		v, err := w.View(t.Context(), target)
		require.NoError(t, err)
		require.Equal(t, engine.Degraded, v.State)
		require.Contains(t, v.Message, candidateConfig)

		w.stop()
		w.config.Serving = all
		w.start()
		_, err = w.ControlRollout(t.Context(), w.alice, s.ep.ID, r.ID, "", w.Resume())
		require.NoError(t, err)
		w.reach(r, rollout.Completed)
	})
}
