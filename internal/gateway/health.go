package gateway

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// After maxMisses failures in a row a replica is ejected for a cool-down, which doubles
// each time that its probe fails.
const (
	maxMisses       = 5
	firstCooldown   = time.Second
	longestCooldown = 30 * time.Second
)

// health is how a replica treats its connections: whether it is ejected, that is
// passed over, and until when. A failure is a connection that cannot be opened or that
// breaks, or a malformed answer; a 5xx that the model gives is an answer.
//
// Nothing but a probe's outcome, or an answer given when its whole side was ejected,
// ends an ejection. What was sent before it and comes back during it changes nothing,
// so it never flaps.
type health struct {
	now     func() time.Time
	ejected atomic.Bool
	misses  atomic.Int32 // failures in a row; written under mu

	mu       sync.Mutex
	until    time.Time     // when the next probe may be sent
	cooldown time.Duration // the last one; kept until an answer was read to its end
	probing  bool          // a probe is under way: one at a time
}

// away reports whether the replica is to be passed over now.
func (h *health) away() bool {
	if !h.ejected.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ejected.Load() && (h.probing || h.now().Before(h.until))
}

// admit decides whether a request may be sent, and as what.
func (h *health) admit() (as errand, ok bool) {
	if !h.ejected.Load() {
		return errandUsual, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.ejected.Load():
		return errandUsual, true
	case h.probing || h.now().Before(h.until):
		return errandUsual, false
	}
	h.probing = true
	return errandProbe, true
}

// restarted forgets what an earlier process did.
func (h *health) restarted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readmit()
	h.misses.Store(0)
	h.cooldown = 0
}

// readmit ends an ejection. The caller holds mu.
func (h *health) readmit() {
	h.ejected.Store(false)
	h.probing = false
}

// errand is why a request was sent to a replica.
type errand uint8

const (
	errandUsual  errand = iota
	errandProbe         // the cool-down is over: this one request finds out
	errandResort        // the whole side was ejected
)

// begun notes that a well-formed answer began. An ejected replica is back, but on
// probation: until an answer was read to its end the next failure ejects it again.
func (s *station) begun() {
	if s.errand == errandUsual {
		return
	}
	h := &s.replica.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readmit()
	s.errand = errandUsual // how the answer ends is not the probe's outcome
}

// finished notes that an answer was read to its end.
func (s station) finished() {
	h := &s.replica.health
	if h.misses.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ejected.Load() {
		h.misses.Store(0)
		h.cooldown = 0
	}
}

// left notes that the client left before an answer began, which says nothing of the
// replica: another request may probe.
func (s station) left() {
	if s.errand != errandProbe {
		return
	}
	h := &s.replica.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probing = false
}

// failed notes a failure, and ejects the replica when it is one too many.
func (s station) failed(log *slog.Logger) {
	h := &s.replica.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ejected.Load() {
		if s.errand != errandProbe {
			return // known already
		}
	} else if h.misses.Add(1) < maxMisses {
		return
	}
	h.cooldown = min(max(2*h.cooldown, firstCooldown), longestCooldown)
	h.until = h.now().Add(h.cooldown)
	h.probing = false
	h.ejected.Store(true)
	log.Warn("replica ejected: its connections break", slog.String("replica", s.replica.id), slog.Duration("cooldown", h.cooldown))
}
