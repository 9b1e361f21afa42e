package rehearsal

import (
	"context"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// side is one deployment of the world.
type side struct {
	name   string // source, target or other
	id     string
	ready  int // at the beginning
	bounds rollout.Bounds
	cold   time.Duration // a replica's start takes so long
	budget time.Duration // and may take so long
	drain  time.Duration
	loops  time.Duration // a ready replica crashes after so long; 0 for never
	weight float64       // of all its replicas in the split at the beginning
}

// fleetPort stands between the engine and the simulated fleet.
type fleetPort struct {
	w       *World
	down    bool
	deaf    bool // its notices get lost
	notices int
	bounds  map[string]rollout.Bounds
	seen    map[string]rollout.FleetStatus // what the engine was told last
	free    map[string]int                 // by hardware, likewise
}

// Ensure states a workload. How long a cold start takes is the world's to say.
func (f *fleetPort) Ensure(ctx context.Context, w rollout.Workload) error {
	return f.w.power.through("ensure", func() error { //nolint:contextcheck // the simulated fleet's drains have a life of their own
		if f.down {
			return errDown
		}
		for _, s := range f.w.sides {
			if s.id == w.Deployment {
				w.Config.Simulated.ColdStart, w.Config.DrainTimeout = s.cold, max(s.drain, time.Nanosecond)
			}
		}
		old, known := f.bounds[w.Deployment]
		f.bounds[w.Deployment] = w.Bounds
		if known && old != w.Bounds && !f.w.byHand {
			f.w.say("effect", "bounds of %s: %d..%d → %d..%d", w.Deployment, old.Min, old.Max, w.Bounds.Min, w.Bounds.Max)
		}
		return f.w.fleet.Ensure(ctx, w)
	})
}

// Remove ends a deployment's replicas.
func (f *fleetPort) Remove(ctx context.Context, deployment string) error {
	return f.w.power.through("remove", func() error { //nolint:contextcheck // as above
		if f.down {
			return errDown
		}
		return f.w.fleet.Remove(ctx, deployment)
	})
}

// Observe tells what runs.
func (f *fleetPort) Observe(ctx context.Context, deployment string) (rollout.FleetStatus, error) {
	if f.w.power.dead || f.down {
		return rollout.FleetStatus{}, errDown
	}
	s, err := f.w.fleet.Observe(ctx, deployment)
	if !f.w.power.busy { // what a command looks at in between is not what the runner decides on
		f.seen[deployment] = s
	}
	f.w.watch.toldOf(deployment, s)
	return s, err
}

// Hardware lists the inventory.
func (f *fleetPort) Hardware(ctx context.Context) ([]rollout.Hardware, error) {
	if f.w.power.dead || f.down {
		return nil, errDown
	}
	list, err := f.w.fleet.Hardware(ctx)
	for _, h := range list {
		f.free[h.ID] = h.Free
	}
	return list, err
}

// Subscribe passes notices on, unless they get lost.
func (f *fleetPort) Subscribe(notify func(deployment string)) (cancel func()) {
	return f.w.fleet.Subscribe(func(deployment string) {
		f.notices++
		if !f.deaf {
			notify(deployment)
		}
	})
}
