package simulated

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Kill ends a replica as a crash does. One that serves or starts fails and comes
// back after its back-off; one that drains is gone, with whatever it held.
func (f *Fleet) Kill(id string) error {
	return f.change(func(now time.Time) error {
		r, _, ok := f.roster.Find(id)
		v := f.virtual[id]
		if !ok || v == nil {
			return fmt.Errorf("%w: %s", fleet.ErrUnknownReplica, id)
		}
		if r.State == rollout.ReplicaFailed || r.State == rollout.ReplicaPending {
			return fmt.Errorf("replica %s is %s: there is nothing to kill", id, r.State)
		}
		f.fail(v, "Killed", now)
		return nil
	})
}

// Stick keeps the deployment's replicas from becoming ready: those that start
// now, and those that start later. Each fails when its cold-start budget is over.
func (f *Fleet) Stick(deployment string) error {
	return f.change(func(time.Time) error {
		f.stuck[deployment] = true
		f.eachStarting(deployment, func(v *virtual, w rollout.Workload) {
			f.await(v, hanging, v.began.Add(w.Config.ColdStart))
		})
		return nil
	})
}

// Unstick lets them become ready again. A start that hangs takes a whole cold
// start from now on, within its budget.
func (f *Fleet) Unstick(deployment string) error {
	return f.change(func(now time.Time) error {
		delete(f.stuck, deployment)
		f.eachStarting(deployment, func(v *virtual, w rollout.Workload) {
			ready := now.Add(w.Config.Simulated.ColdStart)
			if v.phase == hanging && !w.Config.Simulated.Stuck && !ready.After(v.due) {
				f.await(v, loading, ready)
			}
		})
		return nil
	})
}

// eachStarting visits the replicas of a deployment that load.
func (f *Fleet) eachStarting(deployment string, visit func(*virtual, rollout.Workload)) {
	for _, v := range f.virtual {
		_, w, _ := f.roster.Find(v.id)
		if w.Deployment == deployment && (v.phase == loading || v.phase == hanging) {
			visit(v, w)
		}
	}
}
