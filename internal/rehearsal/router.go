package rehearsal

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// routers are the copies of the data plane. The first takes a route at once, the others
// late, but within the propagation wait. A route is refused as a whole.
type routers struct {
	w       *World
	copies  []routerCopy
	late    time.Duration // of the last copy; those between are spread
	failing string        // why routes are refused
	dies    bool          // with the engine: an in-process gateway
	behind  time.Time     // engine's clock: since when the latest route is refused; zero when it is served
	others  others
}

// routerCopy is one router: what it serves and what is on its way to it.
type routerCopy struct {
	route rollout.Route
	has   bool
	next  []landing
}

type landing struct {
	at    time.Time
	route rollout.Route
}

func newRouters(w *World, copies int) *routers {
	return &routers{w: w, copies: make([]routerCopy, copies), others: others{}}
}

// Apply hands a route over.
func (r *routers) Apply(route rollout.Route) error {
	return r.w.power.through("apply", func() error { return r.take(route) })
}

func (r *routers) take(route rollout.Route) error {
	if err := route.Validate(); err != nil {
		return err
	}
	if r.failing != "" {
		if r.behind.IsZero() {
			r.behind = r.w.engineNow()
		}
		return errors.New(r.failing)
	}
	r.behind = time.Time{}
	if r.others.take(r.w, route) {
		return nil
	}
	first := &r.copies[0]
	if first.has && route.Generation <= first.route.Generation {
		return fmt.Errorf("generation %d is not above %d", route.Generation, first.route.Generation)
	}
	old := first.route
	r.w.watch.routed(old, route)
	first.route, first.has = route, true
	for i := 1; i < len(r.copies); i++ {
		at := r.w.now.Add(r.late * time.Duration(i) / time.Duration(len(r.copies)-1))
		r.copies[i].next = append(r.copies[i].next, landing{at, route})
	}
	r.advance(r.w.now)
	r.tell(old, route)
	return nil
}

// tell puts a change of the pair's split into the transcript.
func (r *routers) tell(old, route rollout.Route) {
	switch {
	case route.Pair != nil && (old.Pair == nil || *old.Pair != *route.Pair):
		r.w.say("effect", "split of the pair: %d%% on %s", route.Pair.Percent, route.Pair.Target)
	case route.Pair == nil && old.Pair != nil:
		r.w.say("effect", "split released: %d%%/%d%% stand as weights", 100-old.Pair.Percent, old.Pair.Percent)
	}
	r.measure()
}

// measure tells the meter what is served.
func (r *routers) measure() {
	list := make([]served, 0, len(r.copies))
	for _, c := range r.copies {
		if c.has {
			list = append(list, served{r.percent(c.route), c.route.Generation})
		}
	}
	target := r.w.target.id
	r.w.meter.change(func(c *conditions) { c.copies, c.target = list, target })
}

// percent is the target's part of what the pair gets by a route.
func (r *routers) percent(route rollout.Route) int {
	if p := route.Pair; p != nil && p.Target == r.w.target.id {
		return p.Percent
	}
	var source, target float64
	for _, m := range route.Members {
		switch m.Deployment {
		case r.w.source.id:
			source = m.Weight * float64(m.Ready())
		case r.w.target.id:
			target = m.Weight * float64(m.Ready())
		}
	}
	if source+target == 0 {
		return 0
	}
	return int(target/(source+target)*100 + 0.5)
}

// advance lets routes land that are due.
func (r *routers) advance(now time.Time) {
	changed := false
	for i := range r.copies {
		c := &r.copies[i]
		for len(c.next) > 0 && !c.next[0].at.After(now) {
			c.route, c.has, changed = c.next[0].route, true, true
			c.next = c.next[1:]
		}
	}
	if changed {
		r.measure()
	}
}

// due is when a route lands next; zero for never.
func (r *routers) due() time.Time {
	var at time.Time
	for _, c := range r.copies {
		if len(c.next) > 0 {
			at = earlier(at, c.next[0].at)
		}
	}
	return at
}

// converged reports whether every copy serves the pair at the same percent.
func (r *routers) converged() bool {
	for _, c := range r.copies {
		if r.percent(c.route) != r.percent(r.copies[0].route) {
			return false
		}
	}
	return true
}

// Remove takes the endpoint's route away.
func (r *routers) Remove(string) {
	for i := range r.copies {
		r.copies[i] = routerCopy{}
	}
	clear(r.others)
}

// Serving is what the first copy serves.
func (r *routers) Serving(endpoint string) (rollout.Route, bool) {
	if route, ok := r.others[endpoint]; ok {
		return route, true
	}
	first := r.copies[0]
	return first.route, first.has && first.route.EndpointID == endpoint
}
