package rollout_test

import (
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// never is a transition that does not come by itself.
var never = time.Time{}

// replicaLife is where one virtual replica is.
type replicaLife int

const (
	starting replicaLife = iota
	ready
	draining
)

// replica is one virtual replica. next is when it leaves its state by itself.
type replica struct {
	life replicaLife
	next time.Time
}

// side is one virtual deployment: an autoscaler between two bounds, replicas that
// take a cold start to answer and a drain to go.
type side struct {
	id        string
	bounds    Bounds
	wish      int // what the autoscaler would like; clamped into the bounds
	cold      time.Duration
	drain     time.Duration
	stuck     bool          // replicas that start do not become ready
	loops     time.Duration // a ready replica ends after so long; 0 for never
	failures  int           // of ready replicas
	replicas  []replica
	unplaced  int
	pinnedMax bool // an operator edited the ceiling
	touched   bool // an operator edited a bound
}

func (s *side) desired() int { return s.bounds.Clamp(s.wish) }

func (s *side) count(l replicaLife) int {
	n := 0
	for _, r := range s.replicas {
		if r.life == l {
			n++
		}
	}
	return n
}

// observed is what a fleet tells of the side.
func (s *side) observed() Side {
	return Side{
		Bounds: s.bounds, Desired: s.desired(), Scheduled: len(s.replicas), Ready: s.count(ready),
		Draining: s.count(draining), Unplaced: s.unplaced, Failures: s.failures, LastFailure: "killed", Message: "Starting replicas", ColdStart: s.cold,
	}
}

// advance makes the transitions that are due.
func (s *side) advance(now time.Time) {
	kept := s.replicas[:0]
	for _, r := range s.replicas {
		due := !r.next.IsZero() && !r.next.After(now)
		switch {
		case due && r.life == draining:
			continue
		case due && r.life == ready: // it loops
			s.failures++
			continue
		case due && r.life == starting:
			r = replica{life: ready}
			if s.loops > 0 {
				r.next = now.Add(s.loops)
			}
		}
		kept = append(kept, r)
	}
	s.replicas = kept
}

// fill starts or drains replicas until as many stay as are desired; free is how
// many more fit.
func (s *side) fill(now time.Time, free int) {
	stay := len(s.replicas) - s.count(draining)
	for ; stay > s.desired(); stay-- {
		s.retire(now)
	}
	for ; stay < s.desired() && free != 0; stay++ {
		s.replicas = append(s.replicas, replica{life: starting, next: s.readyAt(now)})
		free--
	}
	s.unplaced = s.desired() - stay
}

func (s *side) readyAt(now time.Time) time.Time {
	if s.stuck {
		return never
	}
	return now.Add(s.cold)
}

// retire takes one replica away, one that does not answer yet before one that does.
func (s *side) retire(now time.Time) {
	for i, r := range s.replicas {
		if r.life == starting {
			s.replicas = append(s.replicas[:i], s.replicas[i+1:]...)
			return
		}
	}
	for i, r := range s.replicas {
		if r.life != ready {
			continue
		}
		if s.drain <= 0 {
			s.replicas = append(s.replicas[:i], s.replicas[i+1:]...)
		} else {
			s.replicas[i] = replica{life: draining, next: now.Add(s.drain)}
		}
		return
	}
}

// kill ends up to n ready replicas at once; the fleet starts others for them.
func (s *side) kill(n int) {
	kept := s.replicas[:0]
	for _, r := range s.replicas {
		if r.life == ready && n > 0 {
			n--
			s.failures++
			continue
		}
		kept = append(kept, r)
	}
	s.replicas = kept
}

// loop makes ready replicas end after a while, again and again.
func (s *side) loop(after time.Duration, now time.Time) {
	s.loops = after
	for i, r := range s.replicas {
		if r.life == ready {
			s.replicas[i].next = now.Add(after)
		}
	}
}

// heal lets stuck replicas start again, and ready ones stay.
func (s *side) heal(now time.Time) {
	s.stuck, s.loops = false, 0
	for i, r := range s.replicas {
		if r.life == ready {
			s.replicas[i].next = never
		}
		if r.life == starting && r.next.IsZero() {
			s.replicas[i].next = now.Add(s.cold)
		}
	}
}

// next is when the side changes by itself.
func (s *side) next() time.Time {
	var at time.Time
	for _, r := range s.replicas {
		at = earlier(at, r.next)
	}
	return at
}

// pool is the hardware that replicas are placed on. Without a limit size is −1.
type pool struct {
	size   int
	shared bool // one pool for both sides; otherwise it is the target's
}

// earlier returns the earlier of two instants, of which a zero one does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
