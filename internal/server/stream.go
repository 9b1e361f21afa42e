package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// StreamLimits bound event streams. A stream holds one page of rows and nothing else:
// a client that reads too slowly is cut off by the time for a write, and resumes by
// its last id.
type StreamLimits struct {
	Heartbeat time.Duration // between signs of life; default 10 s
	Patience  time.Duration // for one write to be taken; default 10 s
	PerKey    int           // open at once; default 32
}

func (l StreamLimits) withDefaults() StreamLimits {
	if l.Heartbeat <= 0 {
		l.Heartbeat = 10 * time.Second
	}
	if l.Patience <= 0 {
		l.Patience = 10 * time.Second
	}
	if l.PerKey <= 0 {
		l.PerKey = 32
	}
	return l
}

const (
	streamPage  = 100  // rows read at once
	reconnectMS = 1000 // told to clients
)

// streams counts the open event streams.
type streams struct {
	mu     sync.Mutex
	byKey  map[string]int
	ending chan struct{}
	end    sync.Once
}

func newStreams() *streams { return &streams{byKey: map[string]int{}, ending: make(chan struct{})} }

// take reserves a stream for a key; release gives it back.
func (s *streams) take(key string, most int) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key] >= most {
		return nil, &api.Error{Status: http.StatusTooManyRequests, Code: api.CodeRateLimited, Message: fmt.Sprintf("this key follows %d feeds already, which is the most; poll, or close one", most)}
	}
	s.byKey[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byKey[key]--; s.byKey[key] == 0 {
			delete(s.byKey, key)
		}
	}, nil
}

// EndStreams ends every event stream, for a shutdown. Clients resume where they were.
func (s *Server) EndStreams() { s.streams.end.Do(func() { close(s.streams.ending) }) }

// events lists a feed, or follows it.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	switch follow := r.URL.Query().Get("follow"); follow {
	case "", "false":
		s.answered(rollout.ScopeRead, s.listEvents)(w, r)
	case "true":
		if err := s.follow(w, r); err != nil {
			s.fail(w, r, err)
		}
	default:
		writeError(w, badRequest("follow", fmt.Sprintf("follow %q is neither true nor false", follow)))
	}
}

// follow sends a feed as server-sent events, oldest first, until the client goes, the
// key is revoked, the endpoint is deleted or the server stops. It begins after the
// client's Last-Event-ID, at ?since, or now. An error is one before the first byte.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) error {
	opening, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	c, err := s.open(opening, w, r, rollout.ScopeRead)
	if err != nil {
		return err
	}
	ep, err := s.endpoint(opening, c)
	if err != nil {
		return err
	}
	release, err := s.streams.take(c.key.ID, s.Streams.PerKey)
	if err != nil {
		return err
	}
	defer release()
	grown, stop := s.Engine.Watch(ep.ID) // before the feed's end is read, so that nothing falls between
	defer stop()
	q, err := s.beginning(opening, c, ep.ID)
	if err != nil {
		return err
	}
	out := &eventStream{server: s, call: c, w: w, flow: http.NewResponseController(w), query: q}
	if err := out.begin(); err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	out.run(r.Context(), grown)
	return nil
}

// beginning is the query of the first rows that a stream sends.
func (s *Server) beginning(ctx context.Context, c *call, endpoint string) (rollout.EventQuery, error) {
	q, err := eventQuery(c)
	if err != nil {
		return q, err
	}
	if !q.Until.IsZero() || q.Before > 0 {
		return q, badRequest("until", "a feed that is followed has no end; leave out until and after")
	}
	q.EndpointID, q.Order, q.Limit = endpoint, rollout.OldestFirst, streamPage
	switch last := c.Header.Get("Last-Event-ID"); {
	case last != "":
		q.After, err = placeOf(last)
	case q.Since.IsZero():
		var newest []rollout.Event
		if newest, _, err = s.Engine.Store.Events(ctx, rollout.EventQuery{EndpointID: endpoint, Limit: 1}); err == nil && len(newest) > 0 {
			q.After, err = placeOf(newest[0].ID)
		}
	}
	return q, err
}

// placeOf is where an event stands in the feed, by its id.
func placeOf(id string) (int64, error) {
	digits, ours := strings.CutPrefix(id, "evt_")
	n, err := strconv.ParseUint(digits, 10, 63) // which takes no sign
	if err != nil || !ours {
		return 0, badRequest("Last-Event-ID", fmt.Sprintf("%.40q is not the id of an event; begin with ?since instead", id))
	}
	return int64(n), nil
}

// eventStream is one client that follows a feed.
type eventStream struct {
	server *Server
	call   *call
	w      http.ResponseWriter
	flow   *http.ResponseController
	query  rollout.EventQuery
}

// begin sends the head at once. Its headers keep proxies from holding back, changing
// or keeping what follows.
func (e *eventStream) begin() error {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	_ = e.flow.SetReadDeadline(time.Time{}) // the deadline of the request's body would end the stream
	e.w.WriteHeader(http.StatusOK)
	return e.send(fmt.Sprintf("retry: %d\n: following\n\n", reconnectMS))
}

// send writes and flushes, within the time for a write.
func (e *eventStream) send(text string) error {
	_ = e.flow.SetWriteDeadline(time.Now().Add(e.server.Streams.Patience))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("write to a follower: %w", err)
	}
	if err := e.flow.Flush(); err != nil {
		return fmt.Errorf("flush to a follower: %w", err)
	}
	return nil
}

func (e *eventStream) run(ctx context.Context, grown <-chan struct{}) {
	beat := time.NewTicker(e.server.Streams.Heartbeat)
	defer beat.Stop()
	for {
		if err := e.catchUp(ctx); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-e.server.streams.ending:
			return
		case <-grown:
		case <-beat.C:
			if e.mayNot(ctx) || e.send(": alive\n\n") != nil {
				return
			}
		}
	}
}

// catchUp sends all rows that are newer than the last one sent.
func (e *eventStream) catchUp(ctx context.Context) error {
	for {
		rows, _, err := e.server.Engine.Store.Events(ctx, e.query)
		if err != nil {
			return err
		}
		var page strings.Builder
		for _, row := range rows {
			data, err := json.Marshal(wire.EventToAPI(row))
			if err != nil {
				return fmt.Errorf("encode event %s: %w", row.ID, err)
			}
			fmt.Fprintf(&page, "id: %s\ndata: %s\n\n", row.ID, data)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := e.send(page.String()); err != nil {
			return err
		}
		if e.query.After, err = placeOf(rows[len(rows)-1].ID); err != nil || len(rows) < streamPage {
			return err
		}
	}
}

// mayNot asks again, at every heartbeat, what was asked when the stream began: a key
// that was revoked reads no further, and a deleted endpoint has no feed.
func (e *eventStream) mayNot(ctx context.Context) bool {
	if _, err := e.server.authenticate(ctx, e.call.Request); err != nil {
		return true
	}
	_, err := e.server.Engine.Endpoint(ctx, e.query.EndpointID)
	return err != nil
}
