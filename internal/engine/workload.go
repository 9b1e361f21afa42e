package engine

import (
	"hash/fnv"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Workload is how busy the runner is.
type Workload struct {
	Waiting int    // rollouts that are queued for an instant
	Unseen  int    // that stood open when Run began and have not been looked at since
	Turns   uint64 // looks at a rollout so far
}

// Workload tells how busy the runner is.
func (e *Engine) Workload() Workload { return e.runner.workload() }

func (r *runner) workload() Workload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Workload{Waiting: len(r.queue), Unseen: len(r.unseen), Turns: r.turns}
}

// pollsPerSecond bounds the looks at rollouts for which nothing is due. What they guard
// against is a notice of the fleet that was lost. So that is noticed within Config.Poll,
// and with more than Poll × pollsPerSecond rollouts (2,000 at the usual 5 s) within
// their number ÷ pollsPerSecond, rounded up to whole polls: 25 s with 10,000. Due instants, notices of the fleet
// and controls wait for no poll.
const pollsPerSecond = 400

// poll is when a rollout for which nothing is due is to be looked at again. Many of
// them are spread evenly over the time between, each at a place of its own.
func (r *runner) poll(id string, now time.Time) time.Time {
	r.mu.Lock()
	held := len(r.queue) + len(r.busy)
	r.mu.Unlock()
	// In whole polls: a place is one only as long as the time between stays the same.
	polls := 1 + (time.Duration(held)*time.Second/pollsPerSecond-1)/r.e.Poll
	if polls <= 1 {
		return now.Add(r.e.Poll)
	}
	every := polls * r.e.Poll
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	place := time.Duration(h.Sum64() % uint64(every))
	since := (time.Duration(now.UnixNano()%int64(every)) - place + every) % every // its place came
	return now.Add(every - since)
}

// backlog is an instant that has always come, but after that of a rollout that somebody
// pokes: a control does not wait behind the thousands that a start takes up.
var backlog = time.Unix(0, 0)

// takeUp queues rollouts that stand open. Those that a control has told to stop go first.
func (r *runner) takeUp(open []rollout.Rollout) {
	r.mu.Lock()
	for _, ro := range open {
		r.unseen[ro.ID] = struct{}{}
		at := backlog
		if ro.State == rollout.Cancelling || ro.State == rollout.Pausing {
			at = time.Time{}
		}
		r.put(ro.ID, at)
	}
	r.mu.Unlock()
	r.signal()
}
