package meter

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Kind tells what a slot counted.
type Kind uint8

// The kinds of slots.
const (
	KindTraffic Kind = 1 // requests of one deployment and generation
	KindWatch   Kind = 3 // that the meter ran at all; no deployment, generation 0
	KindReady   Kind = 4 // ready replicas of one deployment, from this slot on; generation 0. 2 was of one slot alone
)

// SlotKey names a slot. It is the idempotency key: the same key always comes
// with the same content, and slots of different keys add up.
type SlotKey struct {
	Boot       uint64 // of the process that counted, below 2^63
	Kind       Kind
	Deployment string
	Generation uint64
	Start      int64 // Unix nanoseconds
}

// Slot is one closed slot in the form in which it is stored: some 20 bytes of
// payload when idle, about 0.5 KB with 500 requests.
type Slot struct {
	Boot       uint64
	Kind       Kind
	Deployment string
	Generation uint64
	Start      time.Time
	Length     time.Duration
	Payload    []byte
}

// Key returns the slot's idempotency key.
func (s Slot) Key() SlotKey {
	return SlotKey{s.Boot, s.Kind, s.Deployment, s.Generation, s.Start.UnixNano()}
}

// End returns the first instant after the slot.
func (s Slot) End() time.Time { return s.Start.Add(s.Length) }

// Export returns this process's own slots that closed after since and up to now,
// by start, and the instant to pass as since the next time. A slot that was
// exported never changes; one in which nothing happened is left out, and of ready
// replicas one in which there were as many as in the slot before.
func (m *Meter) Export(since time.Time) (closed []Slot, next time.Time) {
	now := m.slotStart(m.now().UnixNano())
	return m.export(nanos(since), m.seal(now)), time.Unix(0, now)
}

// Seal is Export with the open slots as they are, for an orderly stop. It is the
// last export of a meter: what ends later is not to be exported again.
func (m *Meter) Seal(since time.Time) []Slot {
	now := m.now().UnixNano()
	m.seal(now)
	return m.export(nanos(since), now+m.slot)
}

// seal makes sure that no slot that ended by the instant is written any more.
func (m *Meter) seal(at int64) int64 {
	for old := m.sealed.Load(); at > old; old = m.sealed.Load() {
		if m.sealed.CompareAndSwap(old, at) {
			break
		}
	}
	return at
}

// export collects own slots that ended in (since, upTo].
func (m *Meter) export(since, upTo int64) []Slot {
	var out []Slot
	take := func(kind Kind, deployment string, generation uint64, t tally) {
		if t.end() > since && t.end() <= upTo {
			out = append(out, Slot{
				Boot: m.boot, Kind: kind, Deployment: deployment, Generation: generation,
				Start: time.Unix(0, t.start), Length: time.Duration(t.length), Payload: t.encode(kind),
			})
		}
	}
	for _, l := range m.all() {
		l.export(take)
	}
	until := m.sealed.Load()
	for start := m.slotStart(max(m.started, since, until-m.retention)); start < until; start += m.slot {
		take(KindWatch, "", 0, m.watched(start, until))
	}
	slices.SortStableFunc(out, func(a, b Slot) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Deployment, b.Deployment),
			cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// watched returns what this process watched of one slot, up to an instant.
func (m *Meter) watched(start, until int64) tally {
	from, to := max(start, m.started), min(start+m.slot, until)
	return tally{start: start, length: m.slot, watchFrom: from - start, watchTo: max(to, from) - start}
}

// export hands every own slot to take, the open ones as they are now.
func (l *lane) export(take func(Kind, string, uint64, tally)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.meter.sealed.Load())
	for generation, f := range l.flows {
		for _, t := range f.closed {
			take(KindTraffic, l.name, generation, t)
		}
		if !f.empty() {
			take(KindTraffic, l.name, generation, f.view())
		}
	}
	l.exportReady(func(t tally) { take(KindReady, l.name, 0, t) })
}

// Import adds slots that earlier processes exported. It ignores those that it
// already has, those of this very process and those beyond the retention, so
// importing twice is importing once. One corrupt slot does not keep the others
// out: the error (ErrCorrupt) names the first and how many there were.
func (m *Meter) Import(slots []Slot) error {
	oldest := m.now().UnixNano() - m.retention
	m.watch.forget(oldest) // once, not for each slot: there may be millions
	var first error
	corrupt := 0
	for _, s := range slots {
		if s.Boot == m.boot || s.End().UnixNano() <= oldest {
			continue
		}
		t, err := decode(s)
		if err != nil {
			if corrupt++; first == nil {
				first = fmt.Errorf("slot of %q at %s: %w", s.Deployment, s.Start.UTC().Format(time.RFC3339Nano), err)
			}
			continue
		}
		if !m.watch.firstTime(s.Key(), t.end()) {
			continue
		}
		m.take(s, t)
	}
	if corrupt > 1 {
		return fmt.Errorf("%w (and %d more)", first, corrupt-1)
	}
	return first
}

// take adds one imported slot.
func (m *Meter) take(s Slot, t tally) {
	if s.Kind == KindWatch {
		m.watch.add(s.Boot, span{t.start + t.watchFrom, t.start + t.watchTo})
		return
	}
	l := m.lane(s.Deployment)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Kind == KindReady {
		l.levels.insert(level{boot: s.Boot, start: t.start, slot: t.length, each: t.ready})
		return
	}
	f := l.flow(s.Generation, m.now().UnixNano())
	f.imported = insert(f.imported, t)
}

// insert keeps ts sorted by start.
func insert(ts []tally, t tally) []tally {
	i, _ := slices.BinarySearchFunc(ts, t.start, func(a tally, start int64) int { return cmp.Compare(a.start, start) })
	return slices.Insert(ts, i, t)
}
