package gateway

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
)

// exchange is one inference request on its way.
type exchange struct {
	gateway *Gateway
	w       http.ResponseWriter
	r       *http.Request
	path    string // at the replica
	call    *call
	body    *body

	endpoint *endpoint // of the route that decided
	chosen   string    // deployment that the route chose
	flight   *meter.Flight
	tried    []*replica
	deaths   int // fresh connections that broke before an answer began
}

// maxDeaths bounds the replicas that one request may kill.
const maxDeaths = 2

// How an attempt can fail without an answer.
var (
	errSpent    = errors.New("no replica is left")
	errCanceled = errors.New("the client left")
	errBroken   = errors.New("the replica broke off")
)

// outcome is an answer, and who gives it.
type outcome struct {
	*reply
	member  *member
	station station
}

// run routes the request and answers it.
func (x *exchange) run() {
	m, s, ok := x.decide()
	if m == nil {
		return // decide has refused
	}
	x.chosen = m.deployment
	x.flight = x.gateway.meter.Begin(m.deployment, x.endpoint.route.Generation)
	out, err := x.exhaust(m.deployment, m, s, ok)
	if errors.Is(err, errSpent) && !x.pinned() {
		out, err = x.fallOver()
	}
	if err != nil {
		x.fail(err)
		return
	}
	if !x.pinned() {
		x.flight.ChosenBySplit()
	}
	x.relay(out)
}

func (x *exchange) pinned() bool { return x.call.model != x.endpoint.route.Name }

// decide chooses the deployment and takes the request in at one of its replicas,
// ok telling whether one was left. A replica that refuses although the table
// lists it means that the table was replaced a moment ago: then the newer one
// decides. It returns no member after it has refused the request.
func (x *exchange) decide() (m *member, s station, ok bool) {
	for {
		t := x.gateway.table.Load()
		to, known := t.names[x.call.model]
		if !known {
			x.refuse(unknownModel(x.call.model))
			return nil, s, false
		}
		x.endpoint = to.endpoint
		if to.pinned != "" {
			m = to.endpoint.member(to.pinned)
		} else {
			m = to.endpoint.choose(to.endpoint.point(x.call))
		}
		if m == nil {
			x.refuse(invalid(http.StatusBadRequest, "endpoint_not_configured", "model",
				"The endpoint "+x.call.model+" sends traffic to no deployment."))
			return nil, s, false
		}
		if s, ok = m.pick(nil); ok || t == x.gateway.table.Load() {
			return m, s, ok
		}
	}
}

func unknownModel(name string) *refusalError {
	return invalid(http.StatusNotFound, "model_not_found", "model", "The model "+name+" does not exist.")
}

func (x *exchange) refuse(e *refusalError) { refuse(x.w, e.status, e.body) }

// exhaust tries the replicas of one deployment, the given one first, until one
// answers. Those of the newest table count, so one that became ready meanwhile
// helps. errSpent tells that none is left.
func (x *exchange) exhaust(deployment string, m *member, s station, ok bool) (outcome, error) {
	for ok {
		reply, err := x.try(m, s)
		if err == nil {
			return outcome{reply, m, s}, nil
		}
		s.replica.release()
		if x.r.Context().Err() != nil {
			return outcome{}, errCanceled
		}
		x.gateway.log.Warn("replica failed before its answer", slog.String("deployment", deployment),
			slog.String("replica", s.replica.id), slog.Any("error", err))
		if errors.Is(err, errBroken) || x.deaths >= maxDeaths {
			return outcome{}, errBroken
		}
		x.tried = append(x.tried, s.replica)
		if m = x.newest(deployment); m == nil {
			break
		}
		s, ok = m.pick(x.tried)
	}
	return outcome{}, errSpent
}

// newest returns the deployment as the table that is served now has it, or nil.
func (x *exchange) newest(deployment string) *member {
	e := x.gateway.table.Load().endpoints[x.endpoint.route.EndpointID]
	if e == nil {
		return nil
	}
	return e.member(deployment)
}

// fallOver lets another deployment answer. The chosen one's failure is counted
// there and then; each that answers or fails in its place counts for itself.
func (x *exchange) fallOver() (outcome, error) {
	e := x.gateway.table.Load().endpoints[x.endpoint.route.EndpointID]
	if e == nil {
		return outcome{}, errSpent
	}
	for _, m := range e.after(x.chosen) {
		s, ok := m.pick(x.tried)
		if !ok {
			continue
		}
		x.flight.End(meter.ServerError)
		x.flight = x.gateway.meter.Begin(m.deployment, x.endpoint.route.Generation)
		if out, err := x.exhaust(m.deployment, m, s, ok); !errors.Is(err, errSpent) {
			return out, err
		}
	}
	return outcome{}, errSpent
}

// try sends the request to one replica. When a kept connection breaks before the
// first byte of an answer it is sent once more on a fresh one, never on another
// kept one, which would be as old.
func (x *exchange) try(m *member, s station) (*reply, error) {
	q, ctx := x.encode(m, s.pool.address), x.r.Context()
	defer q.free()
	if c := s.pool.get(); c != nil {
		reply, err := c.roundTrip(ctx, &q)
		switch {
		case err == nil:
			return reply, nil
		case c.answered:
			return nil, errors.Join(errBroken, err)
		case ctx.Err() != nil:
			return nil, err
		}
		s.pool.drop()
	}
	c, err := s.pool.dial(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := c.roundTrip(ctx, &q)
	switch {
	case err == nil:
		return reply, nil
	case c.answered:
		return nil, errors.Join(errBroken, err)
	}
	x.deaths++
	return nil, err
}

// fail answers a request that no replica answers.
func (x *exchange) fail(err error) {
	if errors.Is(err, errCanceled) {
		x.flight.End(meter.Canceled)
		panic(http.ErrAbortHandler)
	}
	x.flight.End(meter.ServerError)
	x.sign([]string{x.chosen}, nil)
	if errors.Is(err, errSpent) && len(x.tried) == 0 {
		refuse(x.w, http.StatusServiceUnavailable, apiError{
			Message: "No replica of " + x.call.model + " is ready.", Type: typeServer, Code: "no_ready_replica",
		})
		return
	}
	refuse(x.w, http.StatusBadGateway, apiError{
		Message: "No replica of " + x.call.model + " could answer.", Type: typeServer, Code: "upstream_error",
	})
}

// sign says in the answer's head who gives it; by is nil when nobody does. The values
// are those of the table, so they must not be changed in place.
func (x *exchange) sign(deployment []string, by *replica) {
	h := x.w.Header()
	h[HeaderEndpoint] = x.endpoint.idHeader
	h[HeaderDeployment] = deployment
	h[HeaderGeneration] = x.endpoint.generationHeader
	if by != nil {
		h[HeaderReplica] = by.header
	}
	if deployment[0] != x.chosen {
		h.Set(HeaderFallbackFrom, x.chosen)
	}
}
