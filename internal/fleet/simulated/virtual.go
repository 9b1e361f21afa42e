package simulated

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// phase is what a virtual replica waits for.
type phase int

const (
	idle     phase = iota // for an order, or for a goroutine to report
	loading               // to become ready
	hanging               // for its cold-start budget to run out
	backing               // off before it restarts
	draining              // for its requests to end
)

// virtual is one replica's pending transition.
type virtual struct {
	id       string
	phase    phase
	due      time.Time
	began    time.Time // of the present start
	ready    time.Time // since when it serves; zero while it does not
	failures int       // in a row
	stop     func()    // of the backend; nil without one
	undrain  context.CancelFunc
}

// start begins a cold start.
func (f *Fleet) start(o fleet.Order, now time.Time) {
	v := f.virtual[o.Replica.ID]
	if v == nil {
		v = &virtual{id: o.Replica.ID}
		f.virtual[v.id] = v
	}
	f.load(v, o.Replica, o.Workload, now)
}

// load starts the backend and sets when the replica becomes ready, or gives up.
func (f *Fleet) load(v *virtual, r rollout.Replica, w rollout.Workload, now time.Time) {
	if f.cfg.Backend != nil {
		addr, stop, err := f.cfg.Backend(r, w.Model)
		if err != nil {
			f.fail(v, "Cannot start: "+err.Error(), now)
			return
		}
		v.stop = stop
		f.roster.Started(v.id, addr)
	}
	v.began, v.ready = now, time.Time{}
	cold, budget := w.Config.Simulated.ColdStart, w.Config.ColdStart
	if w.Config.Simulated.Stuck || f.stuck[w.Deployment] || cold > budget {
		f.await(v, hanging, now.Add(budget))
		return
	}
	f.await(v, loading, now.Add(cold))
}

// elapse does what the replica waited for.
func (f *Fleet) elapse(v *virtual, now time.Time) {
	r, w, _ := f.roster.Find(v.id)
	switch v.phase {
	case loading:
		v.phase, v.ready = idle, now
		f.roster.Ready(v.id, now)
	case hanging:
		f.fail(v, fmt.Sprintf("Not ready within its cold start of %s", w.Config.ColdStart), now)
	case backing:
		v.phase = idle
		if !f.roster.Restart(v.id, now) {
			delete(f.virtual, v.id) // it lost its place; a later plan starts it anew
			return
		}
		f.load(v, r, w, now)
	case draining:
		f.vanish(v)
	case idle:
	}
}

// fail ends the replica's present life. It restarts after its back-off, unless it
// was on its way out.
func (f *Fleet) fail(v *virtual, why string, now time.Time) {
	f.halt(v)
	if !v.ready.IsZero() && now.Sub(v.ready) >= f.cfg.Backoff.ResetAfter {
		v.failures = 0
	}
	v.failures++
	v.ready = time.Time{}
	if !f.roster.Failed(v.id, why, now) {
		delete(f.virtual, v.id)
		return
	}
	f.await(v, backing, now.Add(f.cfg.Backoff.Delay(v.failures)))
}

// halt stops the backend and the drain, if there are any, without waiting.
func (f *Fleet) halt(v *virtual) {
	v.phase = idle
	if v.undrain != nil {
		v.undrain()
	}
	if stop := v.stop; stop != nil {
		v.stop = nil
		f.routines.Go(stop)
	}
}

// drain waits for the requests in flight, in virtual time or in a goroutine that
// runs the hook.
func (f *Fleet) drain(o fleet.Order, now time.Time) {
	v, limit := f.virtual[o.Replica.ID], o.Workload.Config.DrainTimeout
	if f.cfg.Quiesce == nil {
		f.await(v, draining, now.Add(min(f.cfg.DrainsFor, limit)))
		return
	}
	v.phase = idle
	ctx, cancel := context.WithCancel(f.life)
	v.undrain = cancel
	f.routines.Add(1) // under the lock, so that Close waits for it
	f.after = append(f.after, func() { go f.quiesce(ctx, o.Replica, limit) })
}

// quiesce runs the hook and then stops the replica. A hook that fails or meets
// its deadline changes nothing: the replica goes either way.
func (f *Fleet) quiesce(ctx context.Context, r rollout.Replica, limit time.Duration) {
	defer f.routines.Done()
	_ = f.cfg.Quiesce.Await(ctx, r, limit)
	_ = f.change(func(time.Time) error { f.vanish(f.virtual[r.ID]); return nil }) //nolint:contextcheck // the next drain has a life of its own; only refused when closed, which ends it too
}

// vanish stops the backend and reports the replica gone once nothing is left of
// it, which frees its place.
func (f *Fleet) vanish(v *virtual) {
	if v == nil {
		return // killed while it drained
	}
	stop := v.stop
	v.stop = nil
	f.halt(v)
	if stop == nil {
		f.gone(v)
		return
	}
	f.routines.Go(func() {
		stop()
		_ = f.change(func(time.Time) error { f.gone(v); return nil })
	})
}

// gone forgets the replica.
func (f *Fleet) gone(v *virtual) {
	if f.virtual[v.id] == v {
		delete(f.virtual, v.id)
		f.roster.Gone(v.id)
	}
}
