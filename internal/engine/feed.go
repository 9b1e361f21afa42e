package engine

import (
	"context"
	"sync"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// feed wakes those who follow the events of an endpoint. It carries no event: a
// follower reads the store from where it was, so that a slow one costs one token and
// never a queue, and what it missed is never lost.
type feed struct {
	mu       sync.Mutex
	watching map[string]map[chan struct{}]struct{} // by endpoint
}

// Watch returns a channel that holds a token whenever an endpoint's feed may have
// grown since the last one was taken. cancel ends it.
func (e *Engine) Watch(endpoint string) (grown <-chan struct{}, cancel func()) {
	f, ch := &e.feed, make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watching[endpoint] == nil {
		f.watching[endpoint] = map[chan struct{}]struct{}{}
	}
	f.watching[endpoint][ch] = struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watching[endpoint], ch)
		if len(f.watching[endpoint]) == 0 {
			delete(f.watching, endpoint)
		}
	}
}

func (f *feed) grew(endpoint string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.watching[endpoint] {
		select {
		case ch <- struct{}{}:
		default: // it has a token already
		}
	}
}

// announcing is a store whose commits wake the followers of their events.
type announcing struct {
	Store
	feed *feed
}

// Commit tells also after an error: the store may have kept the change and lost the
// answer.
func (a announcing) Commit(ctx context.Context, c rollout.Change) error {
	err := a.Store.Commit(ctx, c)
	for i, e := range c.Events {
		if i == 0 || e.EndpointID != c.Events[i-1].EndpointID {
			a.feed.grew(e.EndpointID)
		}
	}
	return err
}
