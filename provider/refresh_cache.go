package provider

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A refresh reads every resource of a configuration one by one, and an endpoint may
// have many. The first one of an endpoint is read by itself; with the second the whole
// list is, once, so that calls grow with endpoints. Only reads of a refresh look here:
// what an apply decides on is read afresh.

// freshFor is how long an answer may serve a refresh. Terraform starts the provider
// anew for each of plan and apply; this is for those that keep it running.
const freshFor = 20 * time.Second

// seen is what a refresh has read already.
type seen struct {
	now         func() time.Time
	mu          sync.Mutex
	endpoints   map[string]*remembered[api.Endpoint]
	rollouts    map[string]*remembered[api.Rollout]
	deployments map[string]*remembered[api.Deployment]
	kept        map[string]bool // rollouts that a plan has found in the state, and that a destroy would not cancel
}

func newSeen() *seen {
	return &seen{
		now: time.Now, endpoints: map[string]*remembered[api.Endpoint]{},
		rollouts: map[string]*remembered[api.Rollout]{}, deployments: map[string]*remembered[api.Deployment]{},
		kept: map[string]bool{},
	}
}

// keep notes a rollout of the state. Terraform plans a replacement as a change of what
// stands and then as a create, of which it shows only errors: the create knows by this
// note that it is one.
func (s *seen) keep(rollout string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[rollout] = true
}

func (s *seen) isKept(rollout string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[rollout]
}

// remembered is the things of one endpoint. Its lock is held while the engine is
// asked, so that those who come meanwhile get the same answer.
type remembered[T any] struct {
	mu     sync.Mutex
	at     time.Time
	asked  int          // times since at
	listed bool         // by is all that there is
	by     map[string]T // by id
}

func rememberedAt[T any](s *seen, all map[string]*remembered[T], endpoint string) *remembered[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all[endpoint] == nil {
		all[endpoint] = &remembered[T]{}
	}
	return all[endpoint]
}

// source is how the engine tells one thing, and all of its endpoint.
type source[T any] struct {
	get func() (T, error)
	all func() iter.Seq2[T, error]
	id  func(T) string
}

// find is a thing by its id. One that no list has, and a list that fails, are asked
// for by get, whose answer counts.
func (m *remembered[T]) find(now time.Time, id string, from source[T]) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil || now.Sub(m.at) > freshFor {
		m.at, m.asked, m.listed, m.by = now, 0, false, map[string]T{}
	}
	if thing, known := m.by[id]; known {
		return thing, nil
	}
	if m.asked++; m.asked > 1 && !m.listed {
		if all, err := engineclient.Collect(from.all()); err == nil {
			for _, thing := range all {
				m.by[from.id(thing)] = thing
			}
		}
		m.listed = true
		if thing, known := m.by[id]; known {
			return thing, nil
		}
	}
	thing, err := from.get()
	if err == nil {
		m.by[id] = thing
	}
	return thing, err
}

// acts drops what a refresh has read: what follows changes it.
func (e *engine) acts() {
	if e == nil || e.seen == nil {
		return
	}
	s := e.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.endpoints)
	clear(s.rollouts)
	clear(s.deployments)
}

func (s *seen) endpoint(ctx context.Context, c *engineclient.Client, id string) (api.Endpoint, error) {
	get := func() (api.Endpoint, error) { return c.GetEndpoint(ctx, id) }
	return rememberedAt(s, s.endpoints, id).find(s.now(), id, source[api.Endpoint]{
		get: get, id: func(ep api.Endpoint) string { return ep.ID },
		all: func() iter.Seq2[api.Endpoint, error] {
			return func(yield func(api.Endpoint, error) bool) { yield(get()) }
		},
	})
}

func (s *seen) rollout(ctx context.Context, c *engineclient.Client, endpoint, id string) (api.Rollout, error) {
	return rememberedAt(s, s.rollouts, endpoint).find(s.now(), id, source[api.Rollout]{
		get: func() (api.Rollout, error) { return c.GetRollout(ctx, endpoint, id) },
		all: func() iter.Seq2[api.Rollout, error] { return c.EveryRollout(ctx, endpoint) },
		id:  func(r api.Rollout) string { return r.ID },
	})
}

func (s *seen) deployment(ctx context.Context, c *engineclient.Client, endpoint, id string) (api.Deployment, error) {
	return rememberedAt(s, s.deployments, endpoint).find(s.now(), id, source[api.Deployment]{
		get: func() (api.Deployment, error) { return c.GetDeployment(ctx, endpoint, id) },
		all: func() iter.Seq2[api.Deployment, error] {
			return c.Deployments(ctx, endpoint, engineclient.ListOptions{PageSize: api.MaxPageSize})
		},
		id: func(d api.Deployment) string { return d.ID },
	})
}
