package rollout

// Capacity arithmetic. Target counts round up, the drained amount rounds down: at
// every instant of a same-size swap the total is at least what it was. All of it
// is integer arithmetic in 64 bits, so no count overflows or drifts.

// shareUp returns ceil(n × percent ÷ 100).
func shareUp(n, percent int) int {
	return int((int64(n)*int64(percent) + 99) / 100)
}

// TargetFor returns the replicas that a target of the given final size needs to
// carry percent of the pair: the share rounded up, at least one.
func TargetFor(final, percent int) int {
	if percent <= 0 {
		return 0
	}
	return max(1, shareUp(final, percent))
}

// SourceAfter returns the replicas left on a source of the given size, once the
// target's share of the pair has gone from seed to percent; final is what stays
// at the end. The drained amount rounds down.
func SourceAfter(source, final, seed, percent int) int {
	if percent <= seed || seed >= 100 {
		return source
	}
	drained := (int64(source) - int64(final)) * int64(percent-seed) / int64(100-seed)
	return source - int(max(0, drained))
}

// Need is what each side must have ready to carry its part of the pair.
type Need struct {
	Source int
	Target int
}

// NeedAt returns the replicas that each side needs while the target carries
// percent of the pair.
func (j Journey) NeedAt(percent int) Need {
	n := Need{Source: SourceAfter(j.Source, 0, j.Seed, percent), Target: TargetFor(j.FinalTarget, percent)}
	if percent <= j.Seed {
		n.Target = min(n.Target, j.Target) // the standing split is served by what stands
	}
	// A step may ask for fewer target replicas than its share needs, and what is
	// enough for it is enough for less; one that asks for more is not short when the
	// extra one dies. A rolling batch gives up a whole source replica for a share
	// that was rounded down, and what is enough then is enough later.
	for _, rung := range j.Rungs {
		if rung.Percent >= percent {
			n.Target = min(n.Target, rung.Need)
		}
		if rung.Percent <= percent && rung.Percent > j.Seed {
			n.Source = min(n.Source, rung.Source)
		}
	}
	return n
}

// Servable returns the split nearest to percent, not above it, that the ready
// replicas can carry on both sides; never below the share that stood at the start,
// since the source is not sized for more than it had then. When the target can
// carry no such share, the source gets all that it can carry, and not more: traffic
// on a side that lacks the capacity for it would not be served there either.
func (j Journey) Servable(percent, readySource, readyTarget int) int {
	least := percent
	for p := percent; p >= j.Seed; p-- {
		n := j.NeedAt(p)
		if readySource < n.Source {
			continue
		}
		if readyTarget >= n.Target {
			return p
		}
		least = p
	}
	return least
}
