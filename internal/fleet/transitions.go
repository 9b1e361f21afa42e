package fleet

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Started notes where a placed replica listens. It is not ready by that.
func (r *Roster) Started(id, address string) {
	if _, e := r.find(id); e != nil && e.Address != address {
		e.Address = address
		r.touch(e.Deployment)
	}
}

// Ready notes that the replica answers. One that is draining stays so: it has
// been taken out, whatever its probe says.
func (r *Roster) Ready(id string, now time.Time) {
	if _, e := r.find(id); e != nil && e.State == rollout.ReplicaStarting {
		e.served = true
		e.become(rollout.ReplicaReady, "", now)
		r.touch(e.Deployment)
	}
}

// Unready notes that a replica which runs does not answer, or why it does not
// answer yet.
func (r *Roster) Unready(id, message string, now time.Time) {
	d, e := r.find(id)
	switch {
	case e == nil:
	case e.State == rollout.ReplicaReady:
		d.failed(message)
		e.become(rollout.ReplicaStarting, message, now)
		r.touch(e.Deployment)
	case e.State == rollout.ReplicaStarting && e.Message != message:
		e.Message = message
		r.touch(e.Deployment)
	}
}

// Failed notes that the replica ended by itself or was given up. It keeps its
// place while it waits to restart. One that was draining, or that nobody ensured,
// is just gone.
func (r *Roster) Failed(id, message string, now time.Time) (restarts bool) {
	d, e := r.find(id)
	if e == nil {
		return false
	}
	if e.State == rollout.ReplicaDraining || !d.claimed {
		r.Gone(id)
		return false
	}
	if e.State == rollout.ReplicaReady {
		d.failed(message)
	}
	e.served, e.Address = false, ""
	e.become(rollout.ReplicaFailed, message, now)
	r.touch(e.Deployment)
	return true
}

// failed counts a replica that was ready and is not any more, without having been told to
// end. One that loses its probe and ends then has failed once.
func (d *deployment) failed(why string) { d.failures, d.last = d.failures+1, why }

// Restart starts a failed replica again in its place. False when it has lost the
// place, because the hardware shrank under it: it waits for another, and a later
// plan orders its start.
func (r *Roster) Restart(id string, now time.Time) (placed bool) {
	d, e := r.find(id)
	if e == nil || e.State != rollout.ReplicaFailed {
		return false
	}
	r.touch(e.Deployment)
	e.Restarts++
	if r.inv.overcommitted(e.hardware, e.GPUs) {
		r.inv.release(e.hardware, e.GPUs)
		e.hardware, e.GPUs = "", nil
		e.become(rollout.ReplicaPending, MessageNoCapacity, now)
		r.waiting[e] = d
		return false
	}
	e.become(rollout.ReplicaStarting, "Restarting", now)
	return true
}

// Gone notes that nothing is left of the replica. Only now is its place free.
func (r *Roster) Gone(id string) {
	d, e := r.find(id)
	if e == nil {
		return
	}
	r.drop(d, e)
	if !d.claimed {
		d.desired = len(d.live())
		d.forgotten = len(d.replicas) == 0
	}
	r.forgetEmpty(e.Deployment)
}
