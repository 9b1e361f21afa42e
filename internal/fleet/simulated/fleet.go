package simulated

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Config describes the virtual world.
type Config struct {
	Pools     []fleet.Pool     // the inventory
	Now       func() time.Time // default time.Now
	Quiesce   fleet.Quiesce    // drains a replica in a goroutine; nil for DrainsFor
	DrainsFor time.Duration    // how long a drain takes without Quiesce, cut at the config's DrainTimeout
	Backoff   fleet.Backoff    // before a failed replica starts again

	// Backend starts something real behind a replica, for example an in-process
	// model server, and returns its host:port and how to end it. It is called with
	// the fleet locked and must not call it; stop runs in a goroutine.
	Backend func(r rollout.Replica, model string) (addr string, stop func(), err error)
}

// Fleet is the simulated driver.
type Fleet struct {
	fleet.Listeners
	cfg Config

	mu       sync.Mutex
	roster   *fleet.Roster
	virtual  map[string]*virtual
	dues     dues
	stuck    map[string]bool // deployments whose replicas do not become ready
	serial   int
	closed   bool
	after    []func()        // runs once the listeners know of the change
	wake     chan struct{}   // something may be due earlier than the driver thinks
	life     context.Context //nolint:containedctx // of the fleet, not of a call: ends drains and the driver
	end      context.CancelFunc
	routines sync.WaitGroup
}

var _ fleet.Fleet = (*Fleet)(nil)

// New makes a fleet that stands still until Step or Start.
func New(cfg Config) (*Fleet, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Backoff = cfg.Backoff.WithDefaults()
	f := &Fleet{cfg: cfg, virtual: make(map[string]*virtual), stuck: make(map[string]bool), wake: make(chan struct{}, 1)}
	var err error
	if f.roster, err = fleet.NewRoster(cfg.Pools, f.newID); err != nil {
		return nil, err
	}
	f.life, f.end = context.WithCancel(context.Background())
	return f, nil
}

// newID numbers the replicas, so that two runs give the same names.
func (f *Fleet) newID() string {
	f.serial++
	return fmt.Sprintf("rep_%06d", f.serial)
}

// Ensure keeps the workload running.
func (f *Fleet) Ensure(_ context.Context, w rollout.Workload) error {
	return f.change(func(time.Time) error { return f.roster.Ensure(w) }) //nolint:contextcheck // a drain outlives the call that caused it
}

// SetDesired is the autoscaler's wish.
func (f *Fleet) SetDesired(_ context.Context, deployment string, n int) error {
	return f.change(func(time.Time) error { return f.roster.SetDesired(deployment, n) }) //nolint:contextcheck // as above
}

// Remove ends the deployment.
func (f *Fleet) Remove(_ context.Context, deployment string) error {
	return f.change(func(time.Time) error { //nolint:contextcheck // as above
		f.roster.Remove(deployment)
		delete(f.stuck, deployment)
		return nil
	})
}

// SetCapacity changes how many replicas of a hardware type fit, negative for no
// limit. Running ones stay; Kill those that the lost hardware should take along.
func (f *Fleet) SetCapacity(hardware string, n int) error {
	return f.change(func(time.Time) error { return f.roster.SetCapacity(hardware, n) })
}

// Observe tells what runs.
func (f *Fleet) Observe(_ context.Context, deployment string) (rollout.FleetStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return rollout.FleetStatus{}, fleet.ErrClosed
	}
	return f.roster.Status(deployment), nil
}

// Hardware lists the inventory.
func (f *Fleet) Hardware(context.Context) ([]rollout.Hardware, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fleet.ErrClosed
	}
	return f.roster.Hardware(), nil
}

// change does one thing to the fleet, carries out what follows from it, and tells
// the listeners after the lock is released.
func (f *Fleet) change(do func(now time.Time) error) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return fleet.ErrClosed
	}
	now := f.cfg.Now()
	err := do(now)
	f.carryOut(now)
	f.release()
	select {
	case f.wake <- struct{}{}:
	default: // it will look anyway
	}
	return err
}

// release unlocks the fleet, tells the listeners what changed, and then begins
// the drains: who routes to a replica hears that it drains before its drain asks
// for the last request.
func (f *Fleet) release() {
	changed, after := f.roster.TakeChanged(), f.after
	f.after = nil
	f.mu.Unlock()
	f.Notify(changed)
	for _, do := range after {
		do()
	}
}

// Close ends every replica without a drain and waits for what runs in goroutines.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	f.end()
	for _, v := range f.virtual {
		f.halt(v)
	}
	f.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); f.routines.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("simulated fleet: replicas still stopping: %w", ctx.Err())
	}
}
