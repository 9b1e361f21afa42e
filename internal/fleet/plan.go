package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Plan brings the replicas to the desired counts and returns what the driver has
// to do for it. Victims come before new replicas, and places are given in the
// order in which replicas were wanted. A second call orders nothing new.
func (r *Roster) Plan(now time.Time) []Order {
	var orders []Order
	stale := r.takeStale()
	for _, d := range stale {
		orders = append(orders, r.retire(d, now)...)
		r.forgetEmpty(d.want.Deployment)
	}
	for _, d := range stale {
		r.request(d, now)
	}
	orders = append(orders, r.place(now)...)
	clear(r.stale) // all that this plan did itself is done
	return orders
}

// takeStale returns the deployments that have changed since the last plan, in order of
// appearance, so that plans are deterministic. Nothing is to be done for the others.
func (r *Roster) takeStale() []*deployment {
	var list []*deployment
	for name := range r.stale {
		if d := r.deps[name]; d != nil {
			list = append(list, d)
		}
	}
	clear(r.stale)
	slices.SortFunc(list, func(a, b *deployment) int { return cmp.Compare(a.place, b.place) })
	return list
}

// retire ends what is above the desired count. An unplaced replica goes at once,
// since it holds nothing; all others keep their place until they are gone.
func (r *Roster) retire(d *deployment, now time.Time) []Order {
	if !d.claimed {
		return nil
	}
	var orders []Order
	live := d.live()
	slices.SortFunc(live, victimOrder)
	for _, e := range live[:max(0, len(live)-d.desired)] {
		r.touch(e.Deployment)
		if e.hardware == "" {
			r.drop(d, e)
			continue
		}
		verb, message := Stop, "Stopping"
		if e.served && e.State != rollout.ReplicaFailed {
			verb, message = Drain, "Finishing the requests in flight"
		}
		e.become(rollout.ReplicaDraining, message, now)
		orders = append(orders, Order{verb, e.copy(), d.want})
	}
	return orders
}

// victimOrder sorts the replica that is missed least to the front: unplaced,
// starting, failed, then ready; among equals the youngest.
func victimOrder(a, b *entry) int {
	rank := func(e *entry) int {
		return slices.Index([]rollout.ReplicaState{
			rollout.ReplicaPending, rollout.ReplicaStarting, rollout.ReplicaFailed, rollout.ReplicaReady,
		}, e.State)
	}
	byReady := 0
	if a.State == rollout.ReplicaReady && b.State == rollout.ReplicaReady {
		byReady = b.Since.Compare(a.Since)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), byReady, cmp.Compare(b.seq, a.seq))
}

// request adds what is missing below the desired count. A draining replica does
// not count: it has been told to end, and is not called back.
func (r *Roster) request(d *deployment, now time.Time) {
	if !d.claimed {
		return
	}
	for range d.desired - len(d.live()) {
		r.seq++
		e := &entry{Replica: rollout.Replica{ID: r.newID(), Deployment: d.want.Deployment}, seq: r.seq}
		e.become(rollout.ReplicaPending, "Scheduling", now)
		r.add(d, e)
	}
}

// place gives free places to the replicas that wait, the longest waiting first.
func (r *Roster) place(now time.Time) []Order {
	list := slices.SortedFunc(maps.Keys(r.waiting), func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	var orders []Order
	for _, e := range list {
		d := r.waiting[e]
		hardware := d.want.Config.Hardware
		gpus, ok := r.inv.take(hardware)
		if !ok {
			r.explain(e, hardware)
			continue
		}
		delete(r.waiting, e)
		e.hardware, e.GPUs, e.served = hardware, gpus, false
		e.become(rollout.ReplicaStarting, "Starting", now)
		r.touch(e.Deployment)
		orders = append(orders, Order{Start, e.copy(), d.want})
	}
	return orders
}

// explain says why a replica has no place.
func (r *Roster) explain(e *entry, hardware string) {
	message := MessageNoCapacity
	if r.inv.pool(hardware) == nil {
		message = fmt.Sprintf("Cannot place replicas: no hardware %q in the inventory", hardware)
	}
	if e.Message != message {
		e.Message = message
		r.touch(e.Deployment)
	}
}

// drop takes a replica off the list and gives its place back.
func (r *Roster) drop(d *deployment, e *entry) {
	if e.hardware != "" {
		r.inv.release(e.hardware, e.GPUs)
	}
	d.replicas = slices.DeleteFunc(d.replicas, func(x *entry) bool { return x == e })
	delete(r.replicas, e.ID)
	delete(r.waiting, e)
	r.touch(e.Deployment)
}
