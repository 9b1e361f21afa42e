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
	resorted string // deployment at which an ejected replica was tried
	deaths   int    // fresh connections that broke before an answer began, and malformed answers
}

// What one request may kill before it is taken for the cause: two replicas of one
// deployment, so that another side is asked while there are two bad ones in a row, and
// three in all, so that a poisonous request leaves the others alive.
const (
	maxDeaths      = 2
	maxDeathsInAll = 3
)

// How a deployment can fail without an answer.
var (
	errSpent    = errors.New("no replica is left that this request may go to")
	errCanceled = errors.New("the client left")
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
// lists it means that its route was replaced a moment ago: then the newer one
// decides. It returns no member after it has refused the request.
func (x *exchange) decide() (m *member, s station, ok bool) {
	for {
		e, pinned := x.gateway.table.named(x.call.model)
		if e == nil {
			x.refuse(unknownModel(x.call.model))
			return nil, s, false
		}
		x.endpoint = e
		if pinned != "" {
			m = e.member(pinned)
		} else {
			m = e.choose(e.point(x.call))
		}
		if m == nil {
			x.refuse(invalid(http.StatusBadRequest, "endpoint_not_configured", "model",
				"The endpoint "+x.call.model+" sends traffic to no deployment."))
			return nil, s, false
		}
		if s, ok = x.pick(m); ok || e == x.gateway.table.serving(e.route.EndpointID) {
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
// helps. errSpent tells that none is left, or that the request has killed its share.
func (x *exchange) exhaust(deployment string, m *member, s station, ok bool) (outcome, error) {
	before := x.deaths
	for ok {
		reply, err := x.try(m, s)
		if err == nil {
			s.begun()
			return outcome{reply, m, s}, nil
		}
		s.replica.release()
		if x.r.Context().Err() != nil {
			s.left()
			return outcome{}, errCanceled
		}
		s.failed(x.gateway.log)
		x.gateway.log.Warn("replica failed before its answer", slog.String("deployment", deployment),
			slog.String("replica", s.replica.id), slog.Any("error", err))
		x.tried = append(x.tried, s.replica)
		if x.deaths-before >= maxDeaths || x.deaths >= maxDeathsInAll {
			break
		}
		if m = x.newest(deployment); m == nil {
			break
		}
		s, ok = x.pick(m)
	}
	return outcome{}, errSpent
}

// pick takes the request in at a replica of the deployment. When all that are left are
// ejected, one of them is tried before another deployment is: ejection is a guess, and
// must not empty a side. Where nothing can stand in, all of them are.
func (x *exchange) pick(m *member) (station, bool) {
	s, ok := m.pick(x.tried)
	if ok || x.resorted == m.deployment && !x.pinned() && len(x.endpoint.after(x.chosen)) > 0 {
		return s, ok
	}
	if s, ok = m.resort(x.tried); ok {
		x.resorted = m.deployment
	}
	return s, ok
}

// newest returns the deployment as the table that is served now has it, or nil.
func (x *exchange) newest(deployment string) *member {
	e := x.gateway.table.serving(x.endpoint.route.EndpointID)
	if e == nil {
		return nil
	}
	return e.member(deployment)
}

// fallOver lets another deployment answer. The chosen one's failure is counted
// there and then; each that answers or fails in its place counts for itself.
func (x *exchange) fallOver() (outcome, error) {
	e := x.gateway.table.serving(x.endpoint.route.EndpointID)
	if e == nil {
		return outcome{}, errSpent
	}
	for _, m := range e.after(x.chosen) {
		if x.deaths >= maxDeathsInAll {
			break
		}
		s, ok := x.pick(m)
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
// kept one, which would be as old. An answer that began and is malformed counts as a
// death: nothing of it has reached the client, so another replica may be asked.
func (x *exchange) try(m *member, s station) (*reply, error) {
	q, ctx := x.encode(m, s.pool.address), x.r.Context()
	defer q.free()
	if c := s.pool.get(); c != nil {
		reply, err := c.roundTrip(ctx, &q)
		switch {
		case err == nil:
			return reply, nil
		case ctx.Err() != nil:
			return nil, err
		case c.answered:
			x.deaths++
			return nil, err
		}
		s.pool.drop()
	}
	c, err := s.pool.dial(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := c.roundTrip(ctx, &q)
	if err != nil {
		x.deaths++
	}
	return reply, err
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
