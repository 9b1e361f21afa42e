package meter

import (
	"sync"
	"time"
)

// tally is what one slot counted. A slot of traffic, of ready replicas and of
// watching each fill their own fields.
type tally struct {
	start, length      int64 // Unix nanoseconds, nanoseconds
	counts             [classes]uint64
	latency            uint64 // Σ µs over answered requests
	inflight           uint64 // ∫ requests in flight dt, request·ns
	ready              uint64 // ∫ ready replicas dt, replica·ns
	watchFrom, watchTo int64  // watched part, nanoseconds from start
	sketch             []byte // compact form of the latencies of answered requests
}

func (t *tally) end() int64       { return t.start + t.length }
func (t *tally) answered() uint64 { return t.counts[OK] + t.counts[ServerError] }

// add merges the counters of o, but for its sketch.
func (t *tally) add(o *tally) {
	for i, n := range o.counts {
		t.counts[i] += n
	}
	t.latency += o.latency
	t.inflight += o.inflight
	t.ready += o.ready
}

// totals are the counters of a deployment since the meter started.
type totals struct {
	counts  [classes]uint64
	latency uint64 // Σ µs
	sketch  Sketch
}

func (t *totals) record(class Class, took time.Duration) {
	t.counts[class]++
	if class != Canceled {
		t.latency += micros(took)
		t.sketch.Record(took)
	}
}

func (t *totals) totals() Totals {
	return Totals{OK: t.counts[OK], ServerErrors: t.counts[ServerError], Canceled: t.counts[Canceled]}
}

// flow is the traffic of one deployment under one generation.
type flow struct {
	generation uint64
	inflight   uint64
	split      int64 // answers to requests that the split sent here, see SplitAnswers
	until      int64 // everything before this instant is accounted for
	open       tally // the slot that holds until; its sketch is in live
	live       *Sketch
	closed     []tally // own slots that are over, by start
	imported   []tally // slots of earlier processes
}

// sketches are lent to open slots; a closed slot keeps the compact form only.
var sketches = sync.Pool{New: func() any { return new(Sketch) }}

func (f *flow) record(class Class, took time.Duration) {
	f.open.counts[class]++
	if class == Canceled {
		return
	}
	f.open.latency += micros(took)
	if f.live == nil {
		f.live = sketches.Get().(*Sketch) //nolint:forcetypeassert // the pool holds nothing else
	}
	f.live.Record(took)
}

// view returns the open slot with its sketch in compact form.
func (f *flow) view() tally {
	t := f.open
	if f.live != nil {
		t.sketch = f.live.appendTo(nil)
	}
	return t
}

// empty reports whether the open slot counted nothing.
func (f *flow) empty() bool {
	return f.open.inflight == 0 && f.open.counts == [classes]uint64{}
}

// lane is all that is counted of one deployment. One lock covers it: an event is
// a few additions, and a reading must see one instant.
type lane struct {
	meter *Meter
	name  string

	mu         sync.Mutex
	flows      map[uint64]*flow // by generation
	total      totals
	ready      uint64
	readyUntil int64
	readyOpen  uint64 // ∫ in the slot that holds readyUntil
	readyRuns  []run  // own closed slots
	levels     levels // imported
}

// flow returns the traffic of one generation, made on first use. The caller
// holds the lock.
func (l *lane) flow(generation uint64, now int64) *flow {
	if f := l.flows[generation]; f != nil {
		return f
	}
	// A generation comes seldom, so this is the moment to drop those that are over,
	// also where nobody reads or exports.
	l.settle(now)
	at := max(now, l.meter.sealed.Load())
	f := &flow{generation: generation, until: at}
	f.open = tally{start: l.meter.slotStart(at), length: l.meter.slot}
	l.flows[generation] = f
	return f
}

// advance accounts for the time up to now: the requests in flight since the last
// event are spread over the slots that they spanned, and slots that ended are
// closed. A clock that went back, or an event that was overtaken by an export,
// counts as happening at the latest instant accounted for, so a closed slot never
// changes. The caller holds the lock.
func (l *lane) advance(f *flow, now int64) {
	now = max(now, f.until, l.meter.sealed.Load())
	for now >= f.open.end() {
		f.open.inflight += f.inflight * uint64(f.open.end()-f.until)
		f.until = f.open.end()
		l.close(f)
		next := f.until
		if f.inflight == 0 {
			next = l.meter.slotStart(now)
		} else if oldest := l.meter.slotStart(now - l.meter.retention); next < oldest {
			next = oldest
		}
		f.until = next
		f.open = tally{start: next, length: l.meter.slot}
	}
	f.open.inflight += f.inflight * uint64(now-f.until)
	f.until = now
}

// close moves the open slot to the closed ones, unless it counted nothing.
func (l *lane) close(f *flow) {
	if !f.empty() {
		f.closed = append(f.closed, f.view())
	}
	if f.live != nil {
		f.live.Reset()
		sketches.Put(f.live)
		f.live = nil
	}
	f.closed = dropBefore(f.closed, f.open.end()-l.meter.retention)
}

// advanceReady accounts for the ready replicas up to now. The caller holds the
// lock.
func (l *lane) advanceReady(now int64) {
	m := l.meter
	now = max(now, l.readyUntil, m.sealed.Load())
	for start := m.slotStart(l.readyUntil); now >= start+m.slot; start = m.slotStart(l.readyUntil) {
		l.readyOpen += l.ready * uint64(start+m.slot-l.readyUntil)
		if l.readyOpen > 0 {
			l.readyRuns = extend(l.readyRuns, start, m.slot, l.readyOpen)
			l.readyRuns = dropRuns(l.readyRuns, start-m.retention)
		}
		l.readyOpen, l.readyUntil = 0, start+m.slot
		if oldest := m.slotStart(now - m.retention); l.ready == 0 {
			l.readyUntil = m.slotStart(now)
		} else if l.readyUntil < oldest {
			l.readyUntil = oldest
		}
	}
	l.readyOpen += l.ready * uint64(now-l.readyUntil)
	l.readyUntil = now
}

// settle accounts for everything up to now. The caller holds the lock.
func (l *lane) settle(now int64) {
	for _, f := range l.flows {
		l.advance(f, now)
	}
	l.advanceReady(now)
	l.prune(now)
}

// prune drops what is older than the retention. The caller holds the lock.
func (l *lane) prune(now int64) {
	oldest := now - l.meter.retention
	for generation, f := range l.flows {
		f.closed, f.imported = dropBefore(f.closed, oldest), dropBefore(f.imported, oldest)
		if f.inflight == 0 && len(f.closed)+len(f.imported) == 0 && f.empty() {
			delete(l.flows, generation)
		}
	}
	l.readyRuns = dropRuns(l.readyRuns, oldest)
	l.levels.prune(&l.meter.watch, oldest)
}

// dropBefore removes the slots that ended by the instant; ts is sorted by start.
func dropBefore(ts []tally, instant int64) []tally {
	n := 0
	for n < len(ts) && ts[n].end() <= instant {
		n++
	}
	if n == 0 {
		return ts
	}
	return append(ts[:0], ts[n:]...)
}
