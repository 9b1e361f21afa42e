package gateway

import (
	"context"
	"sync"
	"sync/atomic"
)

// replica is what is known of one replica beside the table: how many requests
// it holds, and whether it may take one more.
type replica struct {
	id     string
	header []string      // id, as a header's values
	state  atomic.Uint64 // requests in flight, and the marks below
	health health

	mu       sync.Mutex
	drained  chan struct{} // closed when a marked replica holds nothing; made by a waiter
	restarts int           // its life when drainedByCall was set; guarded by Gateway.applying
	routes   int           // that list it as ready; guarded by Gateway.applying
}

// The marks. Each keeps new requests away; a route that still lists the replica
// cannot override them, so no swap races a drain.
const (
	markRoute uint64 = 1 << 63 // the newest route does not list it as ready
	markCall  uint64 = 1 << 62 // Drain was called
	marks            = markRoute | markCall
)

// acquire takes one request in, unless the replica is marked.
func (r *replica) acquire() bool {
	for {
		s := r.state.Load()
		if s&marks != 0 {
			return false
		}
		if r.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

// release lets one request go.
func (r *replica) release() {
	if s := r.state.Add(^uint64(0)); s&marks != 0 && s&^marks == 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.drained != nil {
			close(r.drained)
			r.drained = nil
		}
	}
}

func (r *replica) inflight() int     { return int(r.state.Load() &^ marks) }
func (r *replica) set(mark uint64)   { r.state.Or(mark) }
func (r *replica) clear(mark uint64) { r.state.And(^mark) }

// wait blocks until the marked replica holds nothing.
func (r *replica) wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		if r.drained == nil {
			r.drained = make(chan struct{})
		}
		drained := r.drained
		// After the channel is in place: a release from here on closes it.
		left := r.inflight()
		r.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-drained:
		case <-ctx.Done():
			return &DrainError{Replica: r.id, Left: r.inflight(), Cause: ctx.Err()}
		}
	}
}

// Drain keeps new requests away from a replica, at once and under whatever route
// comes next, and waits until it holds none. When ctx ends first it returns a
// *DrainError with the number left; the replica stays drained. Draining ends
// when the replica restarts or leaves every route. A replica that the gateway
// does not know holds nothing.
func (g *Gateway) Drain(ctx context.Context, replicaID string) error {
	r := g.mark(replicaID)
	if r == nil {
		return nil
	}
	return r.wait(ctx)
}

func (g *Gateway) mark(replicaID string) *replica {
	g.applying.Lock()
	defer g.applying.Unlock()
	r := g.replicas[replicaID]
	if r != nil {
		r.set(markCall)
	}
	return r
}

// Inflight returns how many requests a replica holds.
func (g *Gateway) Inflight(replicaID string) int {
	g.applying.Lock()
	defer g.applying.Unlock()
	if r := g.replicas[replicaID]; r != nil {
		return r.inflight()
	}
	return 0
}
