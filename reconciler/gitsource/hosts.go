package gitsource

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Hosts bounds the calls to each host, for all remotes that share it, and remembers
// hosts that have asked to be left alone. It is safe for concurrent use.
type Hosts struct {
	perSecond float64

	mu    sync.Mutex
	hosts map[string]*host
}

type host struct {
	limiter *rate.Limiter
	until   time.Time // no call before
}

// NewHosts lets so many calls a second through to one host, and as many at once; 0 for
// no limit.
func NewHosts(perSecond float64) *Hosts {
	return &Hosts{perSecond: perSecond, hosts: map[string]*host{}}
}

// of is the state of a host by its name, without a port: two ports are one machine.
func (h *Hosts) of(name string) *host {
	found, ok := h.hosts[name]
	if !ok {
		limit, burst := rate.Inf, 1
		if h.perSecond > 0 {
			limit, burst = rate.Limit(h.perSecond), max(1, int(h.perSecond))
		}
		found = &host{limiter: rate.NewLimiter(limit, burst)}
		h.hosts[name] = found
	}
	return found
}

// wait returns when a call may be made: *Limited when the host has asked for more
// patience than there is, an error when the deadline would come first.
func (h *Hosts) wait(ctx context.Context, name string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	found := h.of(name)
	until := found.until
	h.mu.Unlock()
	if time.Now().Before(until) {
		return &Limited{Host: name, Until: until}
	}
	if err := found.limiter.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s may have %g calls a second, and the next free one comes after the deadline: %w", name, h.perSecond, context.DeadlineExceeded)
	}
	return nil
}

// pause lets no call through to a host before an instant.
func (h *Hosts) pause(name string, until time.Time) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if found := h.of(name); until.After(found.until) {
		found.until = until
	}
}
