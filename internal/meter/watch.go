package meter

import (
	"cmp"
	"slices"
	"sync"
)

// span is a stretch of time, Unix nanoseconds, its end not included.
type span struct{ from, to int64 }

// watchLog remembers what earlier processes watched and which of their slots are
// already here.
type watchLog struct {
	mu    sync.Mutex
	spans []span           // by start, apart from each other
	ends  map[uint64]int64 // until when each earlier process is known to have watched, by boot
	seen  map[SlotKey]int64
}

// forget drops the keys whose slots ended before oldest.
func (w *watchLog) forget(oldest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, e := range w.seen {
		if e <= oldest {
			delete(w.seen, k)
		}
	}
}

// firstTime reports whether the slot is new, and remembers it.
func (w *watchLog) firstTime(key SlotKey, end int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.seen[key]; ok {
		return false
	}
	if w.seen == nil {
		w.seen = make(map[SlotKey]int64)
	}
	w.seen[key] = end
	return true
}

// add joins a stretch that a process watched to the log.
func (w *watchLog) add(boot uint64, s span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends == nil {
		w.ends = make(map[uint64]int64)
	}
	w.ends[boot] = max(w.ends[boot], s.to)
	w.spans = join(append(w.spans, s))
}

// end is until when a process is known to have watched.
func (w *watchLog) end(boot uint64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ends[boot]
}

// missing returns how much of the window lies in no stretch, own included.
func (w *watchLog) missing(window, own span) int64 {
	w.mu.Lock()
	all := append([]span{own}, w.spans...)
	w.mu.Unlock()
	missing, at := int64(0), window.from
	for _, s := range join(all) {
		if s.to <= at || s.from >= window.to {
			continue
		}
		missing += max(s.from-at, 0)
		at = s.to
	}
	return missing + max(window.to-at, 0)
}

// join sorts stretches and melts those that touch.
func join(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
