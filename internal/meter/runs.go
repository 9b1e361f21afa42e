package meter

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Ready replicas change seldom, and there may be tens of thousands of deployments. So
// slots with as many of them are kept as one run, and only the slot with which a run
// begins is exported: it stands for all that follow until the next one, as long as its
// process watched. Every change is exported together with the watching that follows it,
// so what a later process fills in is what was counted.

// run is a stretch of slots with as many ready replicas in each.
type run struct {
	start, end int64  // Unix nanoseconds; whole slots
	slot       int64  // length of one, nanoseconds
	each       uint64 // ∫ ready replicas dt of one slot, replica·ns
}

// extend adds the slot that comes next.
func extend(runs []run, start, slot int64, each uint64) []run {
	if n := len(runs); n > 0 && runs[n-1].end == start && runs[n-1].each == each {
		runs[n-1].end += slot
		return runs
	}
	return append(runs, run{start: start, end: start + slot, slot: slot, each: each})
}

// dropRuns removes the runs that ended by the instant; runs is sorted.
func dropRuns(runs []run, instant int64) []run {
	n := 0
	for n < len(runs) && runs[n].end <= instant {
		n++
	}
	if n == 0 {
		return runs
	}
	return append(runs[:0], runs[n:]...)
}

// within sums up those of its slots that lie wholly inside.
func (r run) within(in span) uint64 {
	first := max(0, (in.from-r.start+r.slot-1)/r.slot)
	last := (min(in.to, r.end) - r.start) / r.slot
	if last <= first {
		return 0
	}
	return uint64(last-first) * r.each
}

// exportReady hands out the slots with which a run begins, an empty one where none
// follows, the open one as it is now, and from time to time one in between, lest the beginning is forgotten. The
// caller holds the lock.
func (l *lane) exportReady(take func(tally)) {
	slot := l.meter.slot
	give := func(start int64, ready uint64) { take(tally{start: start, length: slot, ready: ready}) }
	again := l.meter.retention / 2 / slot * slot // two of them are always remembered
	turn := int64(hash(l.name)%uint64(again/slot)) * slot
	end := int64(0)
	for i, r := range l.readyRuns {
		if i > 0 && end < r.start {
			give(end, 0)
		}
		give(r.start, r.each)
		next := r.start + slot
		for next += ((turn-next)%again + again) % again; next < r.end; next += again {
			give(next, r.each)
		}
		end = r.end
	}
	open := l.meter.slotStart(l.readyUntil)
	if end > 0 && end < open {
		give(end, 0)
	}
	if l.readyOpen > 0 || end == open {
		give(open, l.readyOpen)
	}
}

func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}

// level is an imported slot of ready replicas, which stands for those that follow.
type level struct {
	boot        uint64
	start, slot int64
	each        uint64
}

// levels are a deployment's, by boot and start.
type levels []level

func (ls *levels) insert(v level) {
	i, _ := slices.BinarySearchFunc(*ls, v, func(a, b level) int {
		return cmp.Or(cmp.Compare(a.boot, b.boot), cmp.Compare(a.start, b.start))
	})
	*ls = slices.Insert(*ls, i, v)
}

// until is where the level at i ends: with the next of its process, or with the slot in
// which its process last watched.
func (ls levels) until(w *watchLog, i int) int64 {
	v := ls[i]
	if i+1 < len(ls) && ls[i+1].boot == v.boot {
		return ls[i+1].start
	}
	slots := (w.end(v.boot) - v.start + v.slot - 1) / v.slot
	return v.start + max(slots, 1)*v.slot
}

// eachRun visits the runs that the levels stand for.
func (ls levels) eachRun(w *watchLog, visit func(run)) {
	for i, v := range ls {
		if v.each > 0 {
			visit(run{start: v.start, end: ls.until(w, i), slot: v.slot, each: v.each})
		}
	}
}

// prune drops the levels that ended by the instant.
func (ls *levels) prune(w *watchLog, instant int64) {
	kept := (*ls)[:0]
	for i, v := range *ls {
		if ls.until(w, i) > instant {
			kept = append(kept, v)
		}
	}
	*ls = kept
}
