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
	spans []span // by start, apart from each other
	seen  map[SlotKey]int64
}

// firstTime reports whether the slot is new, and remembers it. Keys whose slots
// ended before oldest are forgotten.
func (w *watchLog) firstTime(key SlotKey, end, oldest int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.seen[key]; ok {
		return false
	}
	for k, e := range w.seen {
		if e <= oldest {
			delete(w.seen, k)
		}
	}
	if w.seen == nil {
		w.seen = make(map[SlotKey]int64)
	}
	w.seen[key] = end
	return true
}

// add joins a stretch to the log.
func (w *watchLog) add(s span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spans = join(append(w.spans, s))
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
