package process

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
)

// runner keeps one replica: it starts, watches, restarts and ends its processes.
type runner struct {
	f          *Fleet
	id         string
	deployment string
	once       sync.Once
	ended      chan struct{} // closed when the replica is told to end
	last       fleet.Order   // how; set before ended closes
	failures   int           // in a row
	clashes    int           // ports lost in a row
	config     string        // hash of what its process was started with; guarded by the fleet
}

// order tells the runner to end. Only the first order counts: a replica ends once.
func (r *runner) order(o fleet.Order) {
	r.once.Do(func() {
		r.last = o
		close(r.ended)
	})
}

// fate is how one process of a replica came out.
type fate struct {
	kind   fateKind
	why    string        // for a person, when it failed
	served time.Duration // how long it was ready at the end
}

// fateKind is what the runner does next.
type fateKind int

const (
	failed  fateKind = iota // back off and start again
	over                    // the replica is gone
	clashed                 // start again at once on another port
	handed                  // leave it to the next fleet
)

// supervise runs the replica until it is gone or left. An adopted process comes
// in as c.
func (f *Fleet) supervise(r *runner, c *child) {
	defer f.routines.Done()
	for {
		end := r.live(c)
		c = nil
		switch end.kind {
		case handed:
			return
		case over:
			f.gone(r)
			return
		case clashed:
			continue
		case failed:
			if !f.failed(r, end) {
				return
			}
		}
		switch r.backOff() {
		case handed:
			return
		case over:
			f.gone(r)
			return
		case failed, clashed:
		}
		if !f.restarts(r) {
			return
		}
	}
}

// live starts a process, unless there is one, and watches it to its end.
func (r *runner) live(c *child) fate {
	select { // told to end, or left, before it began
	case <-r.ended:
		if c == nil {
			return fate{kind: over}
		}
	case <-r.f.left.Done():
		return fate{kind: handed}
	default:
	}
	if c == nil {
		var err error
		if c, err = r.f.spawn(r.id); err != nil {
			return fate{kind: failed, why: "Cannot start: " + err.Error()}
		}
	}
	r.f.change(func(time.Time) { r.f.roster.Started(r.id, address(c.Port)) })
	w := newWatch(r, c)
	end := w.run()
	if end.kind != handed {
		r.f.releasePort(c.Port)
	}
	return end
}

// finish drains the process when it may hold requests, and stops it.
func (r *runner) finish(c *child) fate {
	c.Draining = true
	if err := r.f.records.put(c.record); err != nil {
		r.f.cfg.Logger.Warn("a drain cannot be recorded", "replica", r.id, "error", err)
	}
	if r.last.Verb == fleet.Drain {
		ctx, cancel := c.whileRunning(r.f.hurried)
		err := r.f.cfg.Quiesce.Await(ctx, r.last.Replica, c.DrainTimeout)
		cancel()
		if err != nil {
			r.f.cfg.Logger.Warn("a drain did not come to its end; requests in flight are cut",
				"replica", r.id, "deployment", r.deployment, "limit", c.DrainTimeout, "error", err)
		}
	}
	r.f.terminate(c)
	return fate{kind: over}
}

// whileRunning is a context that also ends with the process: a dead one holds no
// request.
func (c *child) whileRunning(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-c.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// terminate asks the process to end, and after its stop timeout makes it.
func (f *Fleet) terminate(c *child) {
	if err := askToEnd(c.PID); err != nil {
		f.cfg.Logger.Warn("SIGTERM failed", "replica", c.Replica, "pid", c.PID, "error", err)
	}
	limit := time.NewTimer(c.StopTimeout)
	defer limit.Stop()
	select {
	case <-c.exited:
		return
	case <-limit.C:
	case <-f.hurried.Done():
	}
	f.cfg.Logger.Warn("a replica did not end when asked; it is killed", "replica", c.Replica, "pid", c.PID, "after", c.StopTimeout)
	if err := forceEnd(c.PID); err != nil {
		f.cfg.Logger.Warn("SIGKILL failed", "replica", c.Replica, "pid", c.PID, "error", err)
	}
	<-c.exited
}

// backOff waits before the next start. A replica in back-off holds nothing, so an
// order ends it at once.
func (r *runner) backOff() fateKind {
	wait := time.NewTimer(r.f.cfg.Backoff.Delay(r.failures))
	defer wait.Stop()
	select {
	case <-wait.C:
		return failed
	case <-r.ended:
		return over
	case <-r.f.left.Done():
		return handed
	}
}

// failed reports a process that ended by itself or was given up. False when the
// replica is gone by that.
func (f *Fleet) failed(r *runner, end fate) (restarts bool) {
	if end.served >= f.cfg.Backoff.ResetAfter {
		r.failures = 0
	}
	r.failures++
	f.dropRecord(r.id)
	f.cfg.Logger.Warn("a replica failed", "replica", r.id, "deployment", r.deployment, "why", end.why, "log", f.LogPath(r.id))
	f.change(func(now time.Time) {
		if restarts = f.roster.Failed(r.id, end.why, now); !restarts {
			delete(f.runners, r.id)
		}
	})
	return restarts
}

// restarts asks for the place again. False when the replica has lost it, or was
// ended meanwhile.
func (f *Fleet) restarts(r *runner) (placed bool) {
	ending := false
	f.change(func(now time.Time) {
		rep, _, known := f.roster.Find(r.id)
		if placed = f.roster.Restart(r.id, now); placed {
			return
		}
		ending = known && rep.State == draining
		if !ending {
			delete(f.runners, r.id)
		}
	})
	if ending {
		f.gone(r)
	}
	return placed
}

// gone reports that nothing is left of the replica.
func (f *Fleet) gone(r *runner) {
	f.dropRecord(r.id)
	f.change(func(time.Time) {
		delete(f.runners, r.id)
		f.roster.Gone(r.id)
	})
	err := f.logs.prune(func(replica string) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.runners[replica] != nil
	})
	if err != nil {
		f.cfg.Logger.Warn("old logs cannot be removed", "error", err)
	}
}

// dropRecord removes the record of a process that has ended. One that stays is
// found dead by the next fleet.
func (f *Fleet) dropRecord(replica string) {
	if err := f.records.drop(replica); err != nil {
		f.cfg.Logger.Warn("a record cannot be removed", "replica", replica, "error", err)
	}
}

// exitMessage tells a person how a process ended.
func exitMessage(how, when string) string {
	return fmt.Sprintf("Ended by itself %s: %s", when, how)
}
