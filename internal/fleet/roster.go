package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// MessageNoCapacity is what a replica and its deployment say while no place is
// free.
const MessageNoCapacity = "Cannot place replicas: insufficient GPU capacity"

// Verb is what a driver has to do with a replica.
type Verb string

// The orders of a plan.
const (
	Start Verb = "START" // it got a place: start it and report Started, then Ready or Failed
	Drain Verb = "DRAIN" // it has served: quiesce it, stop it, report Gone
	Stop  Verb = "STOP"  // it serves nothing: stop it, report Gone
)

// Order is one thing to do, with the replica as it is after the plan.
type Order struct {
	Verb     Verb
	Replica  rollout.Replica
	Workload rollout.Workload
}

// Roster is the bookkeeping of a fleet. It has no clock, lock or goroutine: the
// driver passes instants and guards it.
type Roster struct {
	inv      *inventory
	newID    func() string
	deps     map[string]*deployment
	names    []string // deployments in order of appearance
	appeared int      // deployments so far
	seq      int      // of replicas
	changed  []string

	// A plan looks at these alone, so that it costs what has changed, not what stands.
	replicas map[string]*entry      // by id
	stale    map[string]struct{}    // deployments that a plan may have something to do for
	waiting  map[*entry]*deployment // replicas without a place
}

// deployment is one workload with its replicas.
type deployment struct {
	want      rollout.Workload
	place     int // in the order of appearance
	desired   int
	claimed   bool // ensured in this life of the fleet, not only found by adoption
	forgotten bool // removed; goes with its last replica
	replicas  []*entry
	failures  int    // of ready replicas
	last      string // why the last of them failed
}

// entry is one replica and what only the roster knows of it.
type entry struct {
	rollout.Replica
	seq      int    // order of creation
	hardware string // where it holds a place; empty while it has none
	served   bool   // was ready since it last started, so it may hold requests
}

// NewRoster makes the bookkeeping of an inventory. newID gives each replica an
// identity that the fleet has never used before.
func NewRoster(pools []Pool, newID func() string) (*Roster, error) {
	inv, err := newInventory(pools)
	if err != nil {
		return nil, err
	}
	return &Roster{
		inv: inv, newID: newID, deps: make(map[string]*deployment),
		replicas: make(map[string]*entry), stale: make(map[string]struct{}), waiting: make(map[*entry]*deployment),
	}, nil
}

// Ensure notes what is wanted. The desired count of a deployment that is new, or
// that was removed, begins at the floor; that of one found by adoption begins at
// what was adopted, so that a restart keeps what an autoscaler had added.
func (r *Roster) Ensure(w rollout.Workload) error {
	if w.Deployment == "" {
		return fmt.Errorf("workload without a deployment")
	}
	if w.Bounds.Min < 0 || w.Bounds.Max < w.Bounds.Min {
		return fmt.Errorf("workload of %s: bounds %d/%d are not a range", w.Deployment, w.Bounds.Min, w.Bounds.Max)
	}
	w.Config = WithDefaults(w.Config)
	d := r.deployment(w.Deployment)
	if !d.claimed || d.forgotten {
		d.claimed, d.forgotten, d.desired = true, false, len(d.live())
	}
	d.want = w
	r.stale[w.Deployment] = struct{}{}
	r.setDesired(d, d.desired)
	return nil
}

// SetDesired moves the wish into the bounds.
func (r *Roster) SetDesired(name string, n int) error {
	d := r.deps[name]
	if d == nil || d.forgotten || !d.claimed {
		return fmt.Errorf("%w: %s", ErrUnknownDeployment, name)
	}
	r.setDesired(d, n)
	return nil
}

// setDesired notes a change only when there is one.
func (r *Roster) setDesired(d *deployment, n int) {
	if n = d.want.Bounds.Clamp(n); n != d.desired {
		d.desired = n
		r.touch(d.want.Deployment)
	}
}

// Remove wants no replica of the deployment any more.
func (r *Roster) Remove(name string) {
	d := r.deps[name]
	if d == nil {
		return
	}
	d.claimed, d.forgotten, d.desired = true, true, 0
	d.want.Bounds = rollout.Bounds{}
	r.touch(name)
	r.forgetEmpty(name)
}

// Adopt takes in a replica that already runs and holds its place, even where the
// inventory no longer has one. Until its deployment is ensured nothing is ordered
// for it. One that was draining stays so and does not count as wanted. The
// workload needs only what stopping it needs.
func (r *Roster) Adopt(rep rollout.Replica, w rollout.Workload) {
	d := r.deployment(rep.Deployment)
	if !d.claimed {
		w.Config = WithDefaults(w.Config)
		d.want = w
	}
	r.seq++
	r.add(d, &entry{Replica: rep, seq: r.seq, hardware: w.Config.Hardware, served: true})
	r.inv.hold(w.Config.Hardware, rep.GPUs)
	if !d.claimed {
		d.desired = len(d.live())
	}
	r.touch(rep.Deployment)
}

// Deployments lists those that are wanted or still have replicas.
func (r *Roster) Deployments() []string { return slices.Clone(r.names) }

// Unclaimed lists the deployments that were adopted and never ensured.
func (r *Roster) Unclaimed() []string {
	var list []string
	for _, name := range r.names {
		if !r.deps[name].claimed {
			list = append(list, name)
		}
	}
	return list
}

// SetCapacity changes how many replicas of a hardware type fit. Those that run
// are not evicted: a shrunk pool is overcommitted until they end, and one that
// fails meanwhile loses its place.
func (r *Roster) SetCapacity(hardware string, n int) error {
	p := r.inv.pool(hardware)
	if p == nil {
		return fmt.Errorf("no hardware %q in the inventory", hardware)
	}
	p.Hardware.Capacity = n
	return nil
}

// Hardware lists the inventory with what is free.
func (r *Roster) Hardware() []rollout.Hardware { return r.inv.list() }

// TakeChanged returns the deployments that changed since the last call.
func (r *Roster) TakeChanged() []string {
	list := r.changed
	r.changed = nil
	return list
}

// Find returns a replica with its deployment's workload.
func (r *Roster) Find(id string) (rollout.Replica, rollout.Workload, bool) {
	d, e := r.find(id)
	if e == nil {
		return rollout.Replica{}, rollout.Workload{}, false
	}
	return e.copy(), d.want, true
}

// find looks the replica up.
func (r *Roster) find(id string) (*deployment, *entry) {
	e := r.replicas[id]
	if e == nil {
		return nil, nil
	}
	return r.deps[e.Deployment], e
}

// add takes a replica into its deployment.
func (r *Roster) add(d *deployment, e *entry) {
	d.replicas = append(d.replicas, e)
	r.replicas[e.ID] = e
	if e.State == rollout.ReplicaPending {
		r.waiting[e] = d
	}
	r.touch(e.Deployment)
}

// deployment finds or begins a deployment.
func (r *Roster) deployment(name string) *deployment {
	d := r.deps[name]
	if d == nil {
		r.appeared++
		d = &deployment{want: rollout.Workload{Deployment: name}, place: r.appeared}
		r.deps[name] = d
		r.names = append(r.names, name)
	}
	return d
}

// forgetEmpty drops a removed deployment with its last replica.
func (r *Roster) forgetEmpty(name string) {
	if d := r.deps[name]; d.forgotten && len(d.replicas) == 0 {
		delete(r.deps, name)
		r.names = slices.DeleteFunc(r.names, func(n string) bool { return n == name })
	}
}

// touch notes that a deployment looks different now.
func (r *Roster) touch(name string) {
	r.stale[name] = struct{}{}
	if !slices.Contains(r.changed, name) {
		r.changed = append(r.changed, name)
	}
}

// live are the replicas that count against the desired number: all that are not
// on their way out.
func (d *deployment) live() []*entry {
	var list []*entry
	for _, e := range d.replicas {
		if e.State != rollout.ReplicaDraining {
			list = append(list, e)
		}
	}
	return list
}

// become changes the state.
func (e *entry) become(s rollout.ReplicaState, message string, now time.Time) {
	e.State, e.Message, e.Since = s, message, now
}

// copy returns the replica without shared memory.
func (e *entry) copy() rollout.Replica {
	c := e.Replica
	c.GPUs = slices.Clone(c.GPUs)
	return c
}
