package meter

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config shapes a meter. The zero value gives the defaults.
type Config struct {
	Slot      time.Duration    // length of a slot, default 5 s
	Retention time.Duration    // how far back windows may reach, default 12 min
	Tolerance time.Duration    // unwatched time that a complete window may hold, default 2 slots
	Now       func() time.Time // default time.Now; its monotonic reading measures durations
}

// Class is how a request ended.
type Class uint8

// The classes. A 4xx is OK: it is an answer, and the client's own doing.
const (
	OK          Class = iota // answered with a status below 500
	ServerError              // answered with a 5xx, or cut off after the answer had begun
	Canceled                 // the client went away first
	classes
)

// String returns the class as it stands in metrics.
func (c Class) String() string {
	switch c {
	case OK:
		return "ok"
	case ServerError:
		return "server_error"
	case Canceled:
		return "canceled"
	default:
		return fmt.Sprintf("class(%d)", uint8(c))
	}
}

// Meter counts the requests of any number of deployments. All methods may be
// called from many goroutines; it runs none of its own.
type Meter struct {
	slot, retention, tolerance int64 // nanoseconds
	now                        func() time.Time
	boot                       uint64
	started                    int64 // Unix nanoseconds

	sealed atomic.Int64 // no slot that ended by here is written any more
	mu     sync.RWMutex
	lanes  map[string]*lane
	watch  watchLog
}

// New makes a meter that watches from now on. A slot shorter than 1 ms is taken
// as 1 ms, a retention shorter than 4 slots as 4 slots.
func New(c Config) *Meter {
	c.Slot = max(cmp.Or(c.Slot, 5*time.Second), time.Millisecond)
	c.Retention = max(cmp.Or(c.Retention, 12*time.Minute), 4*c.Slot)
	c.Tolerance = cmp.Or(c.Tolerance, 2*c.Slot)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Meter{
		slot: int64(c.Slot), retention: int64(c.Retention), tolerance: int64(c.Tolerance),
		now: c.Now, boot: rand.Uint64() >> 1, started: c.Now().UnixNano(), //nolint:gosec // tells processes apart, not a secret
		lanes: make(map[string]*lane),
	}
}

// SlotLength returns the length of a slot.
func (m *Meter) SlotLength() time.Duration { return time.Duration(m.slot) }

// Flight is one request between the choice of its side and its end.
type Flight struct {
	lane  *lane
	flow  *flow
	start time.Time
	ended bool // guarded by lane.mu
}

// Begin starts a request that was routed to the deployment under the generation.
// Its End must be called exactly once, on every way out.
func (m *Meter) Begin(deployment string, generation uint64) *Flight {
	now := m.now()
	l := m.lane(deployment)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.flow(generation, now.UnixNano())
	l.advance(f, now.UnixNano())
	f.inflight++
	return &Flight{lane: l, flow: f, start: now}
}

// End closes the request with its class and returns how long it took. A second
// call changes nothing and returns 0.
func (f *Flight) End(class Class) time.Duration {
	now := f.lane.meter.now()
	took := max(now.Sub(f.start), 0)
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.ended {
		return 0
	}
	f.ended = true
	l.advance(f.flow, now.UnixNano())
	f.flow.inflight--
	f.flow.record(class, took)
	l.total.record(class, took)
	return took
}

// ChosenBySplit notes that the request was routed by its endpoint's split, not pinned
// by the client, and that this deployment is the one that answers it. It is called
// at most once, before End.
func (f *Flight) ChosenBySplit() {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.flow.split++
}

// SplitAnswers counts the answers that a deployment gave to requests which the split
// sent under the generation or a later one: what a share is told from. Generations
// whose slots are all forgotten count no more, nor does what an earlier process saw.
func (m *Meter) SplitAnswers(deployment string, minGeneration uint64) int64 {
	l := m.known(deployment)
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for generation, f := range l.flows {
		if generation >= minGeneration {
			n += f.split
		}
	}
	return n
}

// SetReady tells how many replicas of the deployment are ready from now on.
func (m *Meter) SetReady(deployment string, ready int) {
	now := m.now().UnixNano()
	l := m.lane(deployment)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceReady(now)
	l.ready = uint64(max(ready, 0))
}

// Forget drops a deployment that no longer exists, with all it counted. Requests
// still in flight end without being seen.
func (m *Meter) Forget(deployment string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lanes, deployment)
}

// Deployments lists the names that the meter has seen, sorted.
func (m *Meter) Deployments() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := make([]string, 0, len(m.lanes))
	for name := range m.lanes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lane returns the deployment's counters, made on first use.
func (m *Meter) lane(deployment string) *lane {
	if l := m.known(deployment); l != nil {
		return l
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lanes[deployment]; l != nil {
		return l
	}
	l := &lane{meter: m, name: deployment, flows: make(map[uint64]*flow), readyUntil: m.now().UnixNano()}
	m.lanes[deployment] = l
	return l
}

// known returns the deployment's counters, or nil.
func (m *Meter) known(deployment string) *lane {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.lanes[deployment]
}

// all returns every lane, in no order.
func (m *Meter) all() []*lane {
	m.mu.RLock()
	defer m.mu.RUnlock()
	ls := make([]*lane, 0, len(m.lanes))
	for _, l := range m.lanes {
		ls = append(ls, l)
	}
	return ls
}

// slotStart returns the start of the slot that holds the instant.
func (m *Meter) slotStart(at int64) int64 { return at - at%m.slot }

// nanos returns the instant in Unix nanoseconds, 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
