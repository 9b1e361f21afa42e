package rehearsal

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// loop crashes the ready replicas of sides that do not stay ready, and returns when the
// next one is due; zero for never.
func (w *World) loop() (next time.Time) {
	for _, s := range w.sides {
		if s.loops <= 0 {
			continue
		}
		status, err := w.fleet.Observe(w.ctx, s.id)
		w.must(err)
		for _, r := range status.Replicas {
			if r.State != rollout.ReplicaReady {
				continue
			}
			if at := r.Since.Add(s.loops); at.After(w.now) {
				next = earlier(next, at)
			} else {
				w.must(w.fleet.Kill(r.ID))
			}
		}
	}
	return next
}
