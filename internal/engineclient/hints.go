package engineclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// hints tells waits that something happened to their rollouts. All waits of a client
// for rollouts of one endpoint share one stream.
type hints struct {
	client *Client

	mu    sync.Mutex
	feeds map[string]*sharedFeed // by endpoint
}

// source follows a feed until it breaks; streams does, and tests do.
type source interface {
	read(ctx context.Context, req Request, last string, l listener) (string, error)
}

// sharedFeed is one stream with the waits that share it.
type sharedFeed struct {
	hints   *hints
	waiting map[chan struct{}]string // rollout
	stop    context.CancelFunc
}

// join returns a channel that holds a token when a poll of the rollout is worth it.
// leave ends it, and with the last wait the stream.
func (h *hints) join(endpoint, rollout string) (hint <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[endpoint]
	if f == nil {
		ctx, stop := context.WithCancel(context.Background())
		f = &sharedFeed{hints: h, waiting: map[chan struct{}]string{}, stop: stop}
		h.feeds[endpoint] = f
		go f.run(ctx, endpoint)
	}
	f.waiting[ch] = rollout
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(f.waiting, ch); len(f.waiting) == 0 {
			f.stop()
			delete(h.feeds, endpoint)
		}
	}
}

// opened asks all waits for a poll: what happened while there was no stream was heard
// by nobody.
func (f *sharedFeed) opened() { f.tell(func(string) bool { return true }) }

func (f *sharedFeed) event(e api.Event) {
	f.tell(func(rollout string) bool { return rollout == e.SubjectID })
}

func (f *sharedFeed) tell(about func(rollout string) bool) {
	f.hints.mu.Lock()
	defer f.hints.mu.Unlock()
	for ch, rollout := range f.waiting {
		if about(rollout) {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// Pauses before a stream is opened again: doubling, with jitter, and from the start
// again after one that lasted.
const (
	firstReopen = 500 * time.Millisecond
	slowReopen  = 30 * time.Second
	lasted      = 30 * time.Second
)

// run keeps the stream open while anybody waits. It gives up on an engine that has
// none or refuses it: waits then poll, as they do anyway.
func (f *sharedFeed) run(ctx context.Context, endpoint string) {
	_ = f.hints.client.keepOpen(ctx, endpoint, url.Values{}, "", f) // what ends it is told to nobody: waits poll on
}

// keepOpen follows a feed over breaks until ctx ends or the engine has none for us.
func (c *Client) keepOpen(ctx context.Context, endpoint string, q url.Values, last string, l listener) error {
	for pause := firstReopen; ; pause = min(2*pause, slowReopen) {
		began := time.Now()
		var err error
		if last, err = c.open(ctx, endpoint, q, last, l); ctx.Err() != nil {
			return ctx.Err()
		}
		if isFinal(err) {
			return err
		}
		if time.Since(began) > lasted {
			pause = firstReopen
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2+1)); err != nil {
			return err
		}
	}
}

// errNoStream means that an engine streams no events.
var errNoStream = errors.New("this engine streams no events")

// open makes one attempt at a stream.
func (c *Client) open(ctx context.Context, endpoint string, q url.Values, last string, l listener) (string, error) {
	can, err := c.Can(ctx, CanStream)
	if err != nil {
		return last, err
	}
	if !can {
		return last, errNoStream
	}
	path, err := c.inProject(ctx, "endpoints", endpoint, "events")
	if err != nil {
		return last, err
	}
	q.Set("follow", "true")
	return c.stream.read(ctx, Request{Method: http.MethodGet, Path: path, Query: q}, last, l)
}

// isFinal reports whether another try at a stream is in vain: the engine has none, or
// refused it. 429 says that this key has too many, which may pass.
func isFinal(err error) bool {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refused.Status < 500 && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout
	}
	return errors.Is(err, errNoStream)
}
