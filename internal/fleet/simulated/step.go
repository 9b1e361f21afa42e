package simulated

import (
	"container/heap"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
)

// Step carries out everything that is due at now, each thing at its own instant
// and in its order, and returns when the next thing is due. Without one pending
// is false.
func (f *Fleet) Step(now time.Time) (next time.Time, pending bool) {
	f.mu.Lock()
	for !f.closed {
		v := f.earliest()
		if v == nil || v.due.After(now) {
			break
		}
		at := v.due
		f.elapse(v, at)
		f.carryOut(at)
	}
	if v := f.earliest(); v != nil && !f.closed {
		next, pending = v.due, true
	}
	f.release()
	return next, pending
}

// earliest is the replica whose next transition comes first; of equal instants
// the older replica's, so that two runs agree.
func (f *Fleet) earliest() *virtual {
	for len(f.dues) > 0 {
		if d := f.dues[0]; d.v.phase != idle && d.at.Equal(d.v.due) && f.virtual[d.v.id] == d.v {
			return d.v
		}
		heap.Pop(&f.dues) // it waits for something else by now
	}
	return nil
}

// carryOut plans until nothing new is ordered: an order that fails at once, as a
// backend that cannot start, changes what the next plan sees.
func (f *Fleet) carryOut(now time.Time) {
	for orders := f.roster.Plan(now); len(orders) > 0; orders = f.roster.Plan(now) {
		for _, o := range orders {
			switch o.Verb {
			case fleet.Start:
				f.start(o, now)
			case fleet.Drain:
				f.drain(o, now)
			case fleet.Stop:
				f.vanish(f.virtual[o.Replica.ID])
			}
		}
	}
}

// Start moves the fleet by the clock in a goroutine that ends with Close.
func (f *Fleet) Start() {
	f.routines.Add(1)
	go func() {
		defer f.routines.Done()
		for f.life.Err() == nil {
			f.sleep(f.Step(f.cfg.Now()))
		}
	}()
}

// sleep waits for the next due instant, or for a call that may bring an earlier
// one.
func (f *Fleet) sleep(next time.Time, pending bool) {
	var due <-chan time.Time
	if pending {
		t := time.NewTimer(next.Sub(f.cfg.Now()))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
	case <-f.wake:
	case <-f.life.Done():
	}
}
