package engine

import (
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// returning knows which deployments served before this engine began and have not
// been seen whole since. An orderly stop ends replicas, and a reboot takes them all:
// that they are not back yet at the next start is no replica's death.
type returning struct {
	mu      sync.Mutex
	since   time.Time           // this engine began
	missing map[string]struct{} // deployments
}

// begin notes what should come back.
func (r *returning) begin(now time.Time, all []rollout.Deployment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since, r.missing = now, map[string]struct{}{}
	for _, d := range all {
		if !d.Bounds.Stopped() {
			r.missing[d.ID] = struct{}{}
		}
	}
}

// began returns when this engine began to watch.
func (r *returning) began() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since
}

// awaited reports whether a deployment may still be on its way back: it has not been
// whole, and its replicas are within their budget.
func (r *returning) awaited(d rollout.Deployment, s rollout.FleetStatus, budget time.Duration, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.missing[d.ID]; !ok {
		return false
	}
	if s.Ready >= s.Desired || now.After(r.since.Add(budget)) {
		delete(r.missing, d.ID)
		return false
	}
	return true
}
