package engine

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// runner decides rollouts when they are due. A waiting rollout is an entry in one
// heap: no goroutine, no timer of its own. At most one worker is at a rollout at
// a time, so effects of one rollout never overlap.
type runner struct {
	e *Engine

	mu     sync.Mutex
	queue  dueQueue
	at     map[string]*due     // queued, by rollout
	busy   map[string]struct{} // in a worker's hands
	again  map[string]struct{} // poked while busy
	failed map[string]failures // in a row, for the back-off
	unseen map[string]struct{} // stood open at the start and had no turn yet
	turns  uint64              // so far
	wake   chan struct{}
}

// failures are turns of one rollout that ended in an error, one after the other.
type failures struct {
	n     int
	since time.Time
}

type due struct {
	id    string
	at    time.Time
	index int
}

func newRunner(e *Engine) *runner {
	return &runner{e: e, at: map[string]*due{}, busy: map[string]struct{}{}, again: map[string]struct{}{}, failed: map[string]failures{}, unseen: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// poke has a rollout decided as soon as possible.
func (r *runner) poke(id string) {
	r.mu.Lock()
	if _, ok := r.busy[id]; ok {
		r.again[id] = struct{}{}
	} else {
		r.put(id, time.Time{})
	}
	r.mu.Unlock()
	r.signal()
}

func (r *runner) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// put queues a rollout, or moves it forward.
func (r *runner) put(id string, at time.Time) {
	if d, ok := r.at[id]; ok {
		if at.Before(d.at) {
			d.at = at
			heap.Fix(&r.queue, d.index)
		}
		return
	}
	d := &due{id: id, at: at}
	r.at[id] = d
	heap.Push(&r.queue, d)
}

// take returns a rollout that is due, or how long until the next one is; a
// negative wait means that nothing is queued.
func (r *runner) take(now time.Time) (id string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return "", -1
	}
	if first := r.queue[0]; first.at.After(now) {
		return "", first.at.Sub(now)
	}
	d := r.queue[0]
	heap.Pop(&r.queue)
	delete(r.at, d.id)
	r.busy[d.id] = struct{}{}
	return d.id, 0
}

// done takes a rollout out of a worker's hands and queues it again if it asked.
func (r *runner) done(id string, next time.Time, err error) {
	r.mu.Lock()
	delete(r.busy, id)
	delete(r.unseen, id)
	r.turns++
	if err != nil {
		next = r.e.Now().Add(backoff(r.failed[id].n))
	} else {
		delete(r.failed, id)
	}
	if _, ok := r.again[id]; ok { // also after a failure: a cancel waits for no back-off
		delete(r.again, id)
		next = r.e.Now()
	}
	if !next.IsZero() {
		r.put(id, next)
	}
	r.mu.Unlock()
	r.signal()
}

// backoff after n failures in a row: 100 ms doubling to 15 s.
func backoff(n int) time.Duration {
	return min(100*time.Millisecond<<min(max(n-1, 0), 10), 15*time.Second)
}

// run works until ctx ends and its workers have stopped.
func (r *runner) run(ctx context.Context) {
	work := make(chan string)
	var wg sync.WaitGroup
	for range r.e.Workers {
		wg.Go(func() {
			for id := range work {
				r.turn(ctx, id)
			}
		})
	}
	r.dispatch(ctx, work)
	close(work)
	wg.Wait()
}

// turn drives one rollout that was taken, and gives it back.
func (r *runner) turn(ctx context.Context, id string) {
	next, err := r.drive(ctx, id)
	if r.e.fence.gone() != nil {
		return // nothing of it is this engine's to try again
	}
	if err != nil && ctx.Err() == nil {
		r.e.Logger.Error("drive a rollout", "rollout", id, "error", err)
		next, err = r.outage(ctx, id, err)
	}
	r.done(id, next, err)
}

// dispatch hands due rollouts to workers.
func (r *runner) dispatch(ctx context.Context, work chan<- string) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		id, wait := r.take(r.e.Now())
		if id != "" {
			select {
			case work <- id:
				continue
			case <-ctx.Done():
				return
			}
		}
		if wait < 0 {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// maxMoves bounds how many moves one turn makes, so that a bug cannot spin.
const maxMoves = 256

// drive decides and acts until nothing changes, and returns when to look again;
// the zero time when nothing is to come by itself. A split that the routers refuse
// is decided upon once more with that knowledge, which parks a working rollout.
func (r *runner) drive(ctx context.Context, id string) (time.Time, error) {
	failing := ""
	for range maxMoves {
		ro, err := r.e.Store.Rollout(ctx, id)
		if errors.Is(err, rollout.ErrNotFound) {
			return time.Time{}, nil
		}
		if err != nil {
			return time.Time{}, err
		}
		if ro.State.Terminal() || ro.State == rollout.Pending {
			return time.Time{}, nil
		}
		settled, next, err := r.move(ctx, ro, failing)
		var refused *routeError
		if errors.As(err, &refused) && failing == "" {
			failing = refused.Error()
			continue
		}
		if err != nil || settled {
			return next, err
		}
		failing = ""
	}
	return time.Time{}, errUnsettled
}

var errUnsettled = errors.New("did not settle: this is a bug, report it with the rollout's id")

// outage parks a rollout whose turns fail, so that a person sees it in the feed and
// not only in the log. It returns the turn's error as long as it is to be tried again.
func (r *runner) outage(ctx context.Context, id string, cause error) (time.Time, error) {
	now := r.e.Now()
	r.mu.Lock()
	f := r.failed[id]
	if f.n++; f.since.IsZero() {
		f.since = now
	}
	r.failed[id] = f
	r.mu.Unlock()
	var refused *Error // trying again cannot mend it: the configuration must change
	if now.Sub(f.since) < rollout.Patience && !errors.As(cause, &refused) {
		return time.Time{}, cause
	}
	ro, err := r.e.Store.Rollout(ctx, id)
	if err != nil {
		return time.Time{}, errors.Join(cause, err)
	}
	category := rollout.DependencyOutage
	if errors.Is(cause, errUnsettled) {
		category = rollout.Internal
	}
	d := rollout.ParkOn(ro, category, fmt.Sprintf("%s. The split stays at %d%%; mend it and resume, or cancel", cause, ro.Percent), now)
	if !d.Changed {
		return time.Time{}, cause
	}
	if err := r.store(ctx, d); err != nil {
		return time.Time{}, errors.Join(cause, err)
	}
	return now, nil // decided again at once: replicas may have died meanwhile, and a park holds what can be served
}

// move makes one decision: stored with its events, then acted upon.
func (r *runner) move(ctx context.Context, ro rollout.Rollout, failing string) (settled bool, next time.Time, err error) {
	now := r.e.Now()
	o, err := r.e.observe(ctx, ro, failing, now)
	if err != nil {
		return false, next, err
	}
	d := r.e.Decide(ro, o, now)
	if d.Changed {
		err := r.store(ctx, d)
		if errors.Is(err, rollout.ErrConflict) {
			return false, next, nil // a control came between: decide again with it
		}
		if err != nil {
			return false, next, err
		}
		d.Rollout.Version++ // as it is stored now
	}
	for _, effect := range d.Effects {
		err := r.e.act(ctx, d.Rollout, effect)
		if errors.Is(err, errSuperseded) {
			return false, next, nil
		}
		if err != nil {
			return false, next, err
		}
	}
	if d.Changed || len(d.Effects) > 0 {
		return false, next, nil
	}
	next = d.Due
	// A restarted engine that waits for replicas to come back has to see when they do not.
	looks := d.Rollout.State.Active() || o.Source.Returning || o.Target.Returning
	if poll := r.poll(ro.ID, now); looks && (next.IsZero() || next.After(poll)) {
		next = poll // a lost notification of the fleet must not stall a step
	}
	return true, next, nil
}

// store commits a decision; an ended rollout gives the endpoint's slot back in the
// same write.
func (r *runner) store(ctx context.Context, d rollout.Decision) error {
	c := rollout.Change{Rollouts: []rollout.Rollout{d.Rollout}, Events: d.Events}
	if d.Rollout.State.Terminal() {
		ep, err := r.e.Store.Endpoint(ctx, d.Rollout.EndpointID)
		if err != nil {
			return err
		}
		if ep.ActiveRollout == d.Rollout.ID {
			ep.ActiveRollout, ep.UpdatedAt = "", r.e.Now()
			c.Endpoints = []rollout.Endpoint{ep}
		}
	}
	return r.e.Store.Commit(ctx, c)
}

// dueQueue is a heap by instant.
type dueQueue []*due

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q dueQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i]; q[i].index, q[j].index = i, j }
func (q *dueQueue) Push(x any) {
	d, _ := x.(*due) // nothing else is put in
	d.index = len(*q)
	*q = append(*q, d)
}

func (q *dueQueue) Pop() any {
	old := *q
	d := old[len(old)-1]
	*q = old[:len(old)-1]
	return d
}
