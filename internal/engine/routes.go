package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	failing map[string]behind          // endpoints whose last route could not be applied
	unsure  map[string]struct{}        // deployments that the fleet could not be told of
	late    map[string]struct{}        // deployments to follow again, without haste
	states  map[string]DeploymentState // by deployment: what was told last
	dirty   map[string]struct{}        // deployments whose replicas changed
	start   []string                   // deployments to compare with what Load saw, see missed
	wake    chan struct{}
}

func newRoutes(e *Engine) *routes {
	return &routes{
		e: e, locks: map[string]*sync.Mutex{}, failing: map[string]behind{}, unsure: map[string]struct{}{}, late: map[string]struct{}{}, states: map[string]DeploymentState{},
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

// floor lifts the generation above every stored one, and above those that are served
// still: the clock may have gone back meanwhile.
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
		if served, ok := r.e.Router.Serving(ep.ID); ok {
			top = max(top, served.Generation)
		}
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
		r.forget(endpoint)
		return nil
	}
	if err == nil {
		err = r.replace(ctx, ep)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failing[endpoint] = r.failing[endpoint].after(err, r.e.Now())
		return err
	}
	delete(r.failing, endpoint)
	return nil
}

// replace builds a route and hands it over; the endpoint's lock is held.
func (r *routes) replace(ctx context.Context, ep rollout.Endpoint) error {
	route, err := r.build(ctx, ep)
	if err != nil {
		return err
	}
	if err := r.e.Store.Held(ctx); err != nil {
		return err
	}
	if err := r.e.Router.Apply(route); err != nil {
		return &routeError{err}
	}
	return nil
}

// sameRoute reports whether two routes send every request alike, with whatever is told
// beside them.
func sameRoute(a, b rollout.Route) bool {
	a.Generation, b.Generation = 0, 0
	return reflect.DeepEqual(a, b)
}

// routeError is a route that the data plane refused; the old one still serves.
type routeError struct{ err error }

func (e *routeError) Error() string { return e.err.Error() }
func (e *routeError) Unwrap() error { return e.err }

// forget drops what is kept about an endpoint that is gone. Its lock stays: somebody
// may be waiting for it.
func (r *routes) forget(endpoint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failing, endpoint)
}

// ensureLater has the fleet told of a deployment again until it can be.
func (r *routes) ensureLater(deployment string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsure[deployment] = struct{}{}
}

func (r *routes) build(ctx context.Context, ep rollout.Endpoint) (rollout.Route, error) {
	deployments, err := r.e.Store.Deployments(ctx, ep.ID)
	if err != nil {
		return rollout.Route{}, err
	}
	served, _ := r.e.Router.Serving(ep.ID)
	route := rollout.Route{EndpointID: ep.ID, Name: r.e.QualifiedName(ep), Salt: ep.ID, Pair: ep.Pair}
	for _, d := range deployments {
		m := rollout.Member{Deployment: d.ID, Name: route.Name + "/" + d.Name, Model: d.Model, Weight: ep.WeightOf(d.ID)}
		m.Replicas = r.replicas(ctx, d.ID, served)
		route.Members = append(route.Members, m)
	}
	route.Generation = r.next()
	return route, nil
}

// replicas are those of a deployment that serve. While the fleet does not answer,
// the ones that are served already stay: an outage of the fleet must not keep a
// person's cancel from freezing the split.
func (r *routes) replicas(ctx context.Context, deployment string, served rollout.Route) []rollout.Replica {
	status, err := r.e.Fleet.Observe(ctx, deployment)
	if err != nil {
		r.e.Logger.Warn("observe for a route; what is served stays", "deployment", deployment, "error", err)
		r.followLater(deployment)
		return memberOf(served, deployment).Replicas
	}
	var out []rollout.Replica
	for _, rep := range status.Replicas {
		if rep.State == rollout.ReplicaReady || rep.State == rollout.ReplicaDraining {
			out = append(out, rep)
		}
	}
	return out
}

func memberOf(route rollout.Route, deployment string) rollout.Member {
	for _, m := range route.Members {
		if m.Deployment == deployment {
			return m
		}
	}
	return rollout.Member{}
}

// followLater has a deployment followed again at the next tick.
func (r *routes) followLater(deployment string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late[deployment] = struct{}{}
}

// changed notes that a deployment's replicas changed. It never blocks.
func (r *routes) changed(deployment string) {
	r.mu.Lock()
	r.dirty[deployment] = struct{}{}
	r.mu.Unlock()
	r.signal()
}

// missed has a deployment compared with what Load saw of it: what changed until the
// fleet was followed was told to nobody. It never blocks.
func (r *routes) missed(deployment string) {
	r.mu.Lock()
	r.start = append(r.start, deployment)
	r.mu.Unlock()
	r.signal()
}

func (r *routes) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run follows the fleet: a replica that became ready, drains or died changes its
// endpoint's route at once, and may be what a rollout waits for. What failed is
// tried again at each tick.
func (r *routes) run(ctx context.Context) {
	tick := time.NewTicker(r.e.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-tick.C:
			r.repeat(ctx)
		}
		r.followAll(ctx)
	}
}

// followAll follows every deployment that changed.
func (r *routes) followAll(ctx context.Context) {
	for _, id := range r.take(&r.dirty) {
		if err := r.follow(ctx, id); err != nil && ctx.Err() == nil {
			r.e.Logger.Error("follow the fleet", "deployment", id, "error", err)
			r.followLater(id)
		}
	}
	r.followStart(ctx)
}

// atOnce is how many deployments of a start are compared between two looks at what
// changes now.
const atOnce = 16

// followStart compares some of the deployments that stood at the start, and has the
// routes wake again for those that are left. A rollout is poked only for a route that
// differs: every open one is taken up anyway.
func (r *routes) followStart(ctx context.Context) {
	r.mu.Lock()
	n := min(len(r.start), atOnce)
	some := r.start[:n]
	r.start = r.start[n:]
	left := len(r.start)
	r.mu.Unlock()
	for _, id := range some {
		if err := r.compare(ctx, id); err != nil && ctx.Err() == nil {
			r.e.Logger.Error("compare with the fleet", "deployment", id, "error", err)
			r.followLater(id)
		}
	}
	if left > 0 {
		r.signal()
	}
}

func (r *routes) compare(ctx context.Context, deployment string) error {
	d, err := r.e.Store.Deployment(ctx, deployment)
	if errors.Is(err, rollout.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	same, err := r.served(ctx, d.EndpointID)
	if err != nil {
		return err
	}
	if !same {
		return r.follow(ctx, deployment)
	}
	return r.tellState(ctx, d)
}

// served reports whether the routers serve an endpoint as it stands.
func (r *routes) served(ctx context.Context, endpoint string) (bool, error) {
	ep, err := r.e.Store.Endpoint(ctx, endpoint)
	if err != nil {
		return false, err
	}
	route, err := r.build(ctx, ep)
	if err != nil {
		return false, err
	}
	now, ok := r.e.Router.Serving(endpoint)
	return ok && now.Generation >= ep.Generation && sameRoute(route, now) && r.failed(endpoint) == behind{}, nil
}

// take empties one of the sets and returns what was in it, in an order that two runs
// agree upon.
func (r *routes) take(set *map[string]struct{}) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := slices.Sorted(maps.Keys(*set))
	clear(*set)
	return was
}

// waiting reports whether a deployment is to be followed now, and whether anything is
// to be tried again at a tick.
func (r *routes) waiting() (now, later bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.dirty)+len(r.start) > 0, len(r.unsure)+len(r.failing)+len(r.late) > 0
}

// repeat tries again what failed: deployments of which the fleet could not be told,
// routes that could not be applied, deployments that could not be followed.
// An engine that is idle learns here that another has taken its place.
func (r *routes) repeat(ctx context.Context) {
	if err := r.e.Store.Held(ctx); err != nil {
		r.e.Logger.Warn("the store is not known to be this engine's", "error", err)
		return
	}
	for _, id := range r.take(&r.unsure) {
		d, err := r.e.Store.Deployment(ctx, id)
		if errors.Is(err, rollout.ErrNotFound) {
			continue
		}
		if err == nil {
			err = r.e.ensureLatest(ctx, d)
		}
		if err != nil {
			r.e.Logger.Warn("tell the fleet of a deployment", "deployment", id, "error", err)
			r.ensureLater(id)
		}
	}
	for _, id := range r.unapplied() {
		if err := r.apply(ctx, id); err != nil { // which notes it as failing again
			r.e.Logger.Warn("apply a route again", "endpoint", id, "error", err)
			continue
		}
		r.e.pokeEndpoint(ctx, id)
	}
	late := r.take(&r.late)
	r.mu.Lock()
	for _, id := range late {
		r.dirty[id] = struct{}{}
	}
	r.mu.Unlock()
}

func (r *routes) follow(ctx context.Context, deployment string) error {
	d, err := r.e.Store.Deployment(ctx, deployment)
	if errors.Is(err, rollout.ErrNotFound) {
		r.mu.Lock()
		delete(r.states, deployment)
		r.mu.Unlock()
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.apply(ctx, d.EndpointID); err != nil {
		r.e.pokeEndpoint(ctx, d.EndpointID) // a step does not go on for long on an old route
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
