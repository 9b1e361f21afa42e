package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// table is the routing of all endpoints. A request reads it without a lock; changes are
// one at a time, and each costs as much as the endpoint that changes, however many
// there are beside it.
type table struct {
	cells     sync.Map // *cell by endpoint id
	names     sync.Map // *cell by what a body's model may say
	endpoints atomic.Int64
}

// cell holds the route that an endpoint is served by. Storing it is what replaces the
// routing of an endpoint, whole and at once: its split, its names and its replicas.
type cell struct{ serving atomic.Pointer[endpoint] } // nil once it is removed

// serving returns what an endpoint is served by, or nil.
func (t *table) serving(endpointID string) *endpoint {
	c, ok := t.cells.Load(endpointID)
	if !ok {
		return nil
	}
	return c.(*cell).serving.Load() //nolint:forcetypeassert // nothing else is stored
}

// named finds the endpoint that a model name leads to, and the deployment that the
// name pins, empty for the split. The endpoint is nil for an unknown name. A name is in
// the table from before its route is served until after it no longer is; whether it
// counts is the route's to say.
func (t *table) named(model string) (e *endpoint, pinned string) {
	c, ok := t.names.Load(model)
	if !ok {
		return nil, ""
	}
	e = c.(*cell).serving.Load() //nolint:forcetypeassert // nothing else is stored
	if e == nil || e.route.Name == model {
		return e, ""
	}
	for i := range e.route.Members {
		if e.route.Members[i].Name == model {
			return e, e.route.Members[i].Deployment
		}
	}
	return nil, ""
}

// all returns every endpoint that is served, in no order.
func (t *table) all() []*endpoint {
	var out []*endpoint
	t.cells.Range(func(_, c any) bool {
		if e := c.(*cell).serving.Load(); e != nil { //nolint:forcetypeassert // nothing else is stored
			out = append(out, e)
		}
		return true
	})
	return out
}

// endpoint is one route made ready for deciding. It never changes.
type endpoint struct {
	route   rollout.Route
	created int64 // Unix seconds
	salted  xxhash.Digest
	members []*member
	others  []*member // those outside the pair, all without one

	idHeader, generationHeader []string // as headers' values

	source, target *member // of the pair, nil without one
	pairBelow      uint64  // the pair's share of 2^64
	targetBelow    uint64  // the target's share of 2^64
}

// member is one deployment of an endpoint. It never changes.
type member struct {
	deployment string
	header     []string // deployment, as a header's values
	model      []byte   // JSON string that replaces the body's model; nil leaves it
	weight     float64
	seed       uint64
	ready      []station
}

// station is a ready replica and the way to it.
type station struct {
	replica *replica
	pool    *pool
	errand  errand // of the request that was taken in; the usual one in a table
}

// Apply replaces the routing of one endpoint, whole and at once. A route that
// cannot be served is refused with *InvalidRouteError, one that is older than
// what is served (or as old and different) with *StaleRouteError; both leave
// everything as it is. Applying the route that is served again changes nothing.
//
// From its return on no request is sent to a replica that the route does not
// list as READY; requests that it already holds go on.
func (g *Gateway) Apply(route rollout.Route) error {
	encoded, err := json.Marshal(route)
	if err == nil {
		err = route.Validate()
	}
	if err != nil {
		return &InvalidRouteError{route.EndpointID, err}
	}
	g.applying.Lock()
	defer g.applying.Unlock()
	old := g.table.serving(route.EndpointID)
	created := g.config.Now().Unix()
	if old != nil {
		switch offered, now := route.Generation, old.route.Generation; {
		case offered == now && old.same(encoded):
			return nil
		case offered <= now:
			return &StaleRouteError{route.EndpointID, offered, now}
		}
		created = old.created
	}
	if err := g.table.clash(route); err != nil {
		return &InvalidRouteError{route.EndpointID, err}
	}
	e := g.compile(cloned(route)) // the caller keeps its slices; what is served must not change under it
	e.created = created
	g.swap(route.EndpointID, old, e)
	return nil
}

// same reports whether a route that was offered is the one that is served.
func (e *endpoint) same(encoded []byte) bool {
	own, err := json.Marshal(e.route)
	return err == nil && bytes.Equal(own, encoded)
}

// Remove ends the routing of an endpoint. Requests in flight go on.
func (g *Gateway) Remove(endpointID string) {
	g.applying.Lock()
	defer g.applying.Unlock()
	if old := g.table.serving(endpointID); old != nil {
		g.swap(endpointID, old, nil)
	}
}

// Serving returns the route that an endpoint is really served by.
func (g *Gateway) Serving(endpointID string) (rollout.Route, bool) {
	e := g.table.serving(endpointID)
	if e == nil {
		return rollout.Route{}, false
	}
	return cloned(e.route), true
}

// cloned copies a route with all that it points to.
func cloned(r rollout.Route) rollout.Route {
	if r.Pair != nil {
		pair := *r.Pair
		r.Pair = &pair
	}
	r.Members = slices.Clone(r.Members)
	for i := range r.Members {
		m := &r.Members[i]
		m.Replicas = slices.Clone(m.Replicas)
		for j := range m.Replicas {
			m.Replicas[j].GPUs = slices.Clone(m.Replicas[j].GPUs)
		}
	}
	return r
}

// clash refuses a route that takes a name from another endpoint, or gives one
// name to two of its own.
func (t *table) clash(route rollout.Route) error {
	own := map[string]bool{}
	for _, name := range namesOf(route) {
		if e, _ := t.named(name); e != nil && e.route.EndpointID != route.EndpointID {
			return fmt.Errorf("the name %s belongs to endpoint %s", name, e.route.EndpointID)
		}
		if own[name] {
			return errors.New("the name " + name + " is given twice")
		}
		own[name] = true
	}
	return nil
}

// namesOf lists what a route is asked by: its own name, and those of its members that
// have one.
func namesOf(route rollout.Route) []string {
	names := []string{route.Name}
	for _, m := range route.Members {
		if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

// compile makes a valid route ready for deciding. The caller holds applying.
func (g *Gateway) compile(route rollout.Route) *endpoint {
	e := &endpoint{route: route, idHeader: []string{route.EndpointID}, generationHeader: []string{strconv.FormatUint(route.Generation, 10)}}
	e.salted.Reset()
	_, _ = e.salted.WriteString(route.Salt) // never fails
	for _, m := range route.Members {
		c := g.compileMember(m)
		e.members = append(e.members, c)
		switch {
		case route.Pair != nil && m.Deployment == route.Pair.Source:
			e.source = c
		case route.Pair != nil && m.Deployment == route.Pair.Target:
			e.target = c
		default:
			e.others = append(e.others, c)
		}
	}
	if p := route.Pair; p != nil {
		if p.Percent > 0 && p.Percent < 100 {
			e.targetBelow, _ = bits.Div64(uint64(p.Percent), 0, 100)
		}
		if p.Share < 1 {
			e.pairBelow = uint64(math.Ldexp(p.Share, 64))
		}
	}
	return e
}

func (g *Gateway) compileMember(m rollout.Member) *member {
	c := &member{deployment: m.Deployment, header: []string{m.Deployment}, weight: m.Weight, seed: xxhash.Sum64String(m.Deployment)}
	if m.Model != "" {
		c.model, _ = json.Marshal(m.Model) // a string always has a form
	}
	for _, r := range m.Replicas {
		if r.State == rollout.ReplicaReady && r.Address != "" {
			c.ready = append(c.ready, station{replica: g.replica(r), pool: g.pool(r.Address)})
		}
	}
	return c
}

// replica returns the replica's own record. A restart ends a Drain and an ejection:
// it is a new process that holds nothing and has broken nothing.
func (g *Gateway) replica(r rollout.Replica) *replica {
	own := g.replicas[r.ID]
	if own == nil {
		own = &replica{id: r.ID, header: []string{r.ID}, restarts: r.Restarts, health: health{now: g.config.Now}}
		own.set(markRoute) // until swap
		g.replicas[r.ID] = own
	}
	if own.restarts != r.Restarts {
		own.restarts = r.Restarts
		own.clear(markCall)
		own.health.restarted()
	}
	return own
}

// pool returns the connections to an address.
func (g *Gateway) pool(address string) *pool {
	p := g.pools[address]
	if p == nil {
		p = newPool(address, g.config.Dial, g.config.IdleTimeout)
		if g.stopping.Load() {
			p.close()
		}
		g.pools[address] = p
	}
	return p
}

// swap puts an endpoint's route in place; nil for one that had none, or that gets none.
// Its order carries the promises: what becomes ready is opened before the table names
// it, what is no longer ready is closed after the table stopped naming it, so a request
// always finds one of the two; and closing comes before Apply returns, so none is sent
// late.
func (g *Gateway) swap(id string, old, next *endpoint) {
	next.eachReady(func(s station) {
		s.replica.routes++
		s.replica.clear(markRoute)
		s.pool.routes++
	})
	next.eachListed(func(replica string) { g.listed[replica]++ })
	g.table.put(id, old, next)
	old.eachReady(func(s station) {
		if s.replica.routes--; s.replica.routes == 0 {
			s.replica.set(markRoute)
		}
		if s.pool.routes--; s.pool.routes == 0 {
			s.pool.close()
			delete(g.pools, s.pool.address)
		}
	})
	old.eachListed(func(replica string) {
		if g.listed[replica]--; g.listed[replica] == 0 {
			delete(g.listed, replica)
			g.leaving[replica] = struct{}{}
		}
	})
	g.forgetGone()
	g.tellReady(old, next)
}

// put names an endpoint's new route. Names that it adds lead nowhere before it is
// served, and those that it drops lead nowhere from then on.
func (t *table) put(id string, old, next *endpoint) {
	c := &cell{}
	if had, ok := t.cells.Load(id); ok {
		c = had.(*cell) //nolint:forcetypeassert // nothing else is stored
	}
	kept := map[string]bool{}
	if next != nil {
		for _, name := range namesOf(next.route) {
			kept[name] = true
			t.names.Store(name, c)
		}
	}
	c.serving.Store(next)
	if old != nil {
		for _, name := range namesOf(old.route) {
			if !kept[name] {
				t.names.Delete(name)
			}
		}
	}
	switch {
	case next == nil:
		t.cells.Delete(id)
		t.endpoints.Add(-1)
	case old == nil:
		t.cells.Store(id, c)
		t.endpoints.Add(1)
	}
}

// forgetGone drops the records of replicas that left every route and hold nothing.
func (g *Gateway) forgetGone() {
	for id := range g.leaving {
		r := g.replicas[id]
		if r != nil && g.listed[id] == 0 && r.inflight() > 0 {
			continue // looked at again at the next change
		}
		delete(g.leaving, id)
		if r != nil && g.listed[id] == 0 {
			delete(g.replicas, id)
		}
	}
}

// eachReady visits the ready replicas of a route.
func (e *endpoint) eachReady(visit func(station)) {
	if e == nil {
		return
	}
	for _, m := range e.members {
		for _, s := range m.ready {
			visit(s)
		}
	}
}

// eachListed visits the ids of a route's replicas, in whatever state.
func (e *endpoint) eachListed(visit func(replica string)) {
	if e == nil {
		return
	}
	for i := range e.route.Members {
		for j := range e.route.Members[i].Replicas {
			visit(e.route.Members[i].Replicas[j].ID)
		}
	}
}

// tellReady tells the meter the ready replicas of every deployment that the endpoint
// had or has.
func (g *Gateway) tellReady(old, next *endpoint) {
	has := map[string]bool{}
	if next != nil {
		for i := range next.route.Members {
			m := &next.route.Members[i]
			has[m.Deployment] = true
			g.meter.SetReady(m.Deployment, m.Ready())
		}
	}
	if old == nil {
		return
	}
	for i := range old.route.Members {
		if d := old.route.Members[i].Deployment; !has[d] {
			g.meter.SetReady(d, 0)
		}
	}
}
