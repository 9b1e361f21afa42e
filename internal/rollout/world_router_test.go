package rollout_test

import (
	"errors"
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// router is the virtual data plane. What it is asked for is served after its delay.
type router struct {
	held       bool
	asked      int // percent of the pair on the target that was asked for last
	served     int // percent that is served
	generation uint64
	lands      time.Time // when what was asked for is served
	delay      time.Duration
	failing    string
	known      [2]int    // ready replicas of source and target by the latest route that was taken
	behind     time.Time // since when a later route is refused
	history    []span    // what was served since when
}

// span is one stretch of a served split.
type span struct {
	since      time.Time
	percent    int
	generation uint64
}

var errRouting = errors.New("the routers cannot be told")

func (r *router) serve(percent int, now time.Time) {
	r.served, r.lands = percent, never
	r.history = append(r.history, span{since: now, percent: percent, generation: r.generation})
}

// setSplit asks for a split; it reports whether that is news.
func (r *router) setSplit(percent int, now time.Time) (bool, error) {
	if r.failing != "" {
		return false, errRouting
	}
	if r.held && r.asked == percent {
		return false, nil
	}
	r.held, r.asked = true, percent
	r.generation++
	if r.delay <= 0 {
		r.serve(percent, now)
	} else {
		r.lands = now.Add(r.delay)
	}
	return true, nil
}

// release makes a split the standing one, at once and for good: what was asked for
// before and has not landed never does.
func (r *router) release(percent int, now time.Time) (bool, error) {
	if r.failing != "" {
		return false, errRouting
	}
	if !r.held {
		return false, nil
	}
	r.held, r.asked = false, percent
	r.generation++
	r.serve(percent, now)
	return true, nil
}

func (r *router) advance(now time.Time) {
	if r.lands != never && !r.lands.After(now) {
		r.serve(r.asked, now)
	}
}

// follow tells the routers of the replicas that are ready now.
func (r *router) follow(source, target int, now time.Time) {
	latest := [2]int{source, target}
	switch {
	case r.failing == "":
		r.known, r.behind = latest, never
	case r.known != latest && r.behind.IsZero():
		r.behind = now
	}
}

func (r *router) observed() Split {
	g := r.generation
	if n := len(r.history); n > 0 {
		g = r.history[n-1].generation
	}
	s := Split{Held: r.held, Percent: r.served, Generation: g, Failing: r.failing, Pending: r.lands != never}
	if !r.behind.IsZero() {
		s.Behind, s.BehindSince = r.failing, r.behind
	}
	return s
}
