package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// table is the routing of all endpoints. It never changes; a new one replaces it.
type table struct {
	endpoints map[string]*endpoint   // by endpoint id
	names     map[string]destination // by what a body's model may say
}

// destination is where a model name leads: an endpoint, or one of its deployments.
type destination struct {
	endpoint *endpoint
	pinned   string // deployment id, empty for the split
}

// endpoint is one route made ready for deciding. It never changes.
type endpoint struct {
	route   rollout.Route
	encoded []byte // of the route, to tell an equal one
	created int64  // Unix seconds
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
	old := g.table.Load()
	created := g.config.Now().Unix()
	if serving := old.endpoints[route.EndpointID]; serving != nil {
		switch offered, now := route.Generation, serving.route.Generation; {
		case offered == now && bytes.Equal(encoded, serving.encoded):
			return nil
		case offered <= now:
			return &StaleRouteError{route.EndpointID, offered, now}
		}
		created = serving.created
	}
	if err := old.clash(route); err != nil {
		return &InvalidRouteError{route.EndpointID, err}
	}
	// The caller keeps its slices; what is served must not change under it.
	var own rollout.Route
	if err := json.Unmarshal(encoded, &own); err != nil {
		return &InvalidRouteError{route.EndpointID, err}
	}
	e := g.compile(own)
	e.encoded, e.created = encoded, created
	g.swap(old.with(e))
	return nil
}

// Remove ends the routing of an endpoint. Requests in flight go on.
func (g *Gateway) Remove(endpointID string) {
	g.applying.Lock()
	defer g.applying.Unlock()
	if old := g.table.Load(); old.endpoints[endpointID] != nil {
		g.swap(old.without(endpointID))
	}
}

// Serving returns the route that an endpoint is really served by.
func (g *Gateway) Serving(endpointID string) (rollout.Route, bool) {
	e := g.table.Load().endpoints[endpointID]
	if e == nil {
		return rollout.Route{}, false
	}
	var route rollout.Route
	if err := json.Unmarshal(e.encoded, &route); err != nil { // it was marshaled by Apply
		panic(err)
	}
	return route, true
}

// clash refuses a route that takes a name from another endpoint, or gives one
// name to two of its own.
func (t *table) clash(route rollout.Route) error {
	own := map[string]bool{}
	for _, name := range append([]string{route.Name}, memberNames(route)...) {
		if d, taken := t.names[name]; taken && d.endpoint.route.EndpointID != route.EndpointID {
			return fmt.Errorf("the name %s belongs to endpoint %s", name, d.endpoint.route.EndpointID)
		}
		if own[name] {
			return errors.New("the name " + name + " is given twice")
		}
		own[name] = true
	}
	return nil
}

func memberNames(route rollout.Route) []string {
	var names []string
	for _, m := range route.Members {
		if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

func (t *table) without(endpointID string) *table {
	n := &table{endpoints: maps.Clone(t.endpoints), names: maps.Clone(t.names)}
	delete(n.endpoints, endpointID)
	maps.DeleteFunc(n.names, func(_ string, d destination) bool { return d.endpoint.route.EndpointID == endpointID })
	return n
}

func (t *table) with(e *endpoint) *table {
	n := t.without(e.route.EndpointID)
	if n.endpoints == nil {
		n.endpoints, n.names = map[string]*endpoint{}, map[string]destination{}
	}
	n.endpoints[e.route.EndpointID] = e
	n.names[e.route.Name] = destination{endpoint: e}
	for _, m := range e.route.Members {
		if m.Name != "" {
			n.names[m.Name] = destination{e, m.Deployment}
		}
	}
	return n
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

// swap puts a table in place. Its order carries the promises: what becomes ready
// is opened before the table names it, what is no longer ready is closed after
// the table stopped naming it, so a request always finds one of the two; and
// closing comes before Apply returns, so none is sent late.
func (g *Gateway) swap(next *table) {
	old := g.table.Load()
	used := map[*pool]bool{}
	for _, r := range g.replicas {
		r.seen = false
	}
	for _, e := range next.endpoints {
		for _, m := range e.members {
			for _, s := range m.ready {
				s.replica.seen = true
				s.replica.clear(markRoute)
				used[s.pool] = true
			}
		}
	}
	g.table.Store(next)
	for id, r := range g.replicas {
		if r.seen {
			continue
		}
		r.set(markRoute)
		if !next.lists(id) && r.inflight() == 0 {
			delete(g.replicas, id)
		}
	}
	for address, p := range g.pools {
		if !used[p] {
			p.close()
			delete(g.pools, address)
		}
	}
	g.tellReady(old, next)
}

// lists reports whether some route names the replica, in whatever state.
func (t *table) lists(id string) bool {
	for _, e := range t.endpoints {
		for _, m := range e.route.Members {
			for _, r := range m.Replicas {
				if r.ID == id {
					return true
				}
			}
		}
	}
	return false
}

// tellReady tells the meter the ready replicas of every deployment that is or was
// routed.
func (g *Gateway) tellReady(old, next *table) {
	ready := map[string]int{}
	for _, e := range old.endpoints {
		for _, m := range e.route.Members {
			ready[m.Deployment] = 0
		}
	}
	for _, e := range next.endpoints {
		for _, m := range e.route.Members {
			ready[m.Deployment] = m.Ready()
		}
	}
	for deployment, n := range ready {
		g.meter.SetReady(deployment, n)
	}
}
