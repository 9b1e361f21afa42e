package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// behind is an endpoint whose latest route was not applied: why the data plane refused
// it, and since when it refuses. Both are zero when it was not even asked.
type behind struct {
	why   string
	since time.Time
}

// after is what stands after another try.
func (b behind) after(err error, now time.Time) behind {
	var refused *routeError
	if !errors.As(err, &refused) {
		return b
	}
	if b.why = refused.Error(); b.since.IsZero() {
		b.since = now
	}
	return b
}

// unapplied lists the endpoints whose latest route was not applied, in an order that two
// runs agree upon. They stay listed until it is.
func (r *routes) unapplied() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.failing))
}

// behind says why the data plane does not serve an endpoint's latest route, and since
// when; empty when it does. It is asked once more first: what a tick would find out later
// must not park a rollout now.
func (r *routes) behind(ctx context.Context, endpoint string) (why string, since time.Time) {
	if b := r.failed(endpoint); b.why == "" {
		return "", time.Time{}
	}
	if err := r.apply(ctx, endpoint); err == nil {
		return "", time.Time{}
	}
	b := r.failed(endpoint)
	return b.why, b.since
}

func (r *routes) failed(endpoint string) behind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing[endpoint]
}
