package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// routes keeps the data plane's routes as the records and the fleet say. A route
// is built and applied under its endpoint's lock, so a late builder never puts an
// older view over a newer one.
type routes struct {
	e          *Engine
	generation atomic.Uint64

	mu      sync.Mutex
	locks   map[string]*sync.Mutex     // by endpoint
	failing map[string]string          // by endpoint: why its last route was refused
	states  map[string]DeploymentState // by deployment: what was told last
	dirty   map[string]struct{}        // deployments whose replicas changed
	wake    chan struct{}
}

func newRoutes(e *Engine) *routes {
	return &routes{
		e: e, locks: map[string]*sync.Mutex{}, failing: map[string]string{}, states: map[string]DeploymentState{},
		dirty: map[string]struct{}{}, wake: make(chan struct{}, 1),
	}
}

// next returns a generation above all earlier ones, also those of an earlier
// process: it follows the clock, but never goes back with it.
func (r *routes) next() uint64 {
	for {
		last := r.generation.Load()
		n := max(last+1, uint64(r.e.Now().UnixMicro()))
		if r.generation.CompareAndSwap(last, n) {
			return n
		}
	}
}

// floor lifts the generation above every stored one.
func (r *routes) floor(ctx context.Context) error {
	endpoints, err := r.e.Store.Endpoints(ctx)
	if err != nil {
		return fmt.Errorf("load endpoints: %w", err)
	}
	open, err := r.e.Store.OpenRollouts(ctx)
	if err != nil {
		return fmt.Errorf("load open rollouts: %w", err)
	}
	top := r.generation.Load()
	for _, ep := range endpoints {
		top = max(top, ep.Generation)
	}
	for _, ro := range open {
		top = max(top, ro.Generation)
	}
	r.generation.Store(top)
	return nil
}

func (r *routes) lock(endpoint string) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.locks[endpoint]
	if !ok {
		l = &sync.Mutex{}
		r.locks[endpoint] = l
	}
	return l
}

// apply builds an endpoint's route from what is stored and observed now and hands
// it to the data plane. An endpoint that is gone has its route removed.
func (r *routes) apply(ctx context.Context, endpoint string) error {
	l := r.lock(endpoint)
	l.Lock()
	defer l.Unlock()
	ep, err := r.e.Store.Endpoint(ctx, endpoint)
	if errors.Is(err, rollout.ErrNotFound) {
		r.e.Router.Remove(endpoint)
		return nil
	}
	if err != nil {
		return err
	}
	route, err := r.build(ctx, ep)
	if err != nil {
		return err
	}
	err = r.e.Router.Apply(route)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failing[endpoint] = err.Error()
		return err
	}
	delete(r.failing, endpoint)
	return nil
}

// failure tells why an endpoint's last route was refused; empty when it was not.
func (r *routes) failure(endpoint string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing[endpoint]
}

func (r *routes) build(ctx context.Context, ep rollout.Endpoint) (rollout.Route, error) {
	deployments, err := r.e.Store.Deployments(ctx, ep.ID)
	if err != nil {
		return rollout.Route{}, err
	}
	route := rollout.Route{EndpointID: ep.ID, Name: r.e.QualifiedName(ep), Salt: ep.ID, Pair: ep.Pair}
	for _, d := range deployments {
		status, err := r.e.Fleet.Observe(ctx, d.ID)
		if err != nil {
			return rollout.Route{}, err
		}
		m := rollout.Member{Deployment: d.ID, Name: route.Name + "/" + d.Name, Model: d.Model, Weight: ep.WeightOf(d.ID)}
		for _, rep := range status.Replicas {
			if rep.State == rollout.ReplicaReady || rep.State == rollout.ReplicaDraining {
				m.Replicas = append(m.Replicas, rep)
			}
		}
		route.Members = append(route.Members, m)
	}
	route.Generation = r.next()
	return route, nil
}

// changed notes that a deployment's replicas changed. It never blocks.
func (r *routes) changed(deployment string) {
	r.mu.Lock()
	r.dirty[deployment] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run follows the fleet: a replica that became ready, drains or died changes its
// endpoint's route at once, and may be what a rollout waits for.
func (r *routes) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.mu.Lock()
		dirty := r.dirty
		r.dirty = map[string]struct{}{}
		r.mu.Unlock()
		for id := range dirty {
			if err := r.follow(ctx, id); err != nil && ctx.Err() == nil {
				r.e.Logger.Error("follow the fleet", "deployment", id, "error", err)
			}
		}
	}
}

func (r *routes) follow(ctx context.Context, deployment string) error {
	d, err := r.e.Store.Deployment(ctx, deployment)
	if errors.Is(err, rollout.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.apply(ctx, d.EndpointID); err != nil {
		return err
	}
	if err := r.tellState(ctx, d); err != nil {
		return err
	}
	r.e.pokeEndpoint(ctx, d.EndpointID)
	return nil
}

// tellState puts a change of a deployment's state into the feed.
func (r *routes) tellState(ctx context.Context, d rollout.Deployment) error {
	v, err := r.e.View(ctx, d)
	if err != nil {
		return err
	}
	r.mu.Lock()
	last, seen := r.states[d.ID]
	r.states[d.ID] = v.State
	r.mu.Unlock()
	if !seen || last == v.State {
		return nil
	}
	ev := r.e.deploymentEvent(d, Caller{}, "deployment.status_updated")
	ev.Status, ev.Reason, ev.Message = string(v.State), v.Message, v.Message
	if v.State == Degraded {
		ev.Level = rollout.LevelWarn
	}
	return r.e.Store.Commit(ctx, rollout.Change{Events: []rollout.Event{ev}})
}

// pokeEndpoint has the endpoint's open rollout decided again soon.
func (e *Engine) pokeEndpoint(ctx context.Context, endpoint string) {
	ep, err := e.Store.Endpoint(ctx, endpoint)
	if err == nil && ep.ActiveRollout != "" {
		e.runner.poke(ep.ActiveRollout)
	}
}
