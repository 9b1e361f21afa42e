package meter

import (
	"math"
	"math/bits"
	"time"
)

// The grid of the sketch: integers below 2^7 have a bucket each, every octave
// above is cut into 2^6 equal buckets, up to 2^32 µs (71 minutes).
const (
	subBits    = 6
	exactBelow = 1 << (subBits + 1)
	topBits    = 32
	perOctave  = 1 << subBits
	buckets    = exactBelow + (topBits-subBits-1)*perOctave
	maxMicros  = 1<<topBits - 1
)

// SketchErrorPct bounds the relative error of a percentile, in percent: half a
// bucket's width over its lower edge, 1/128.
const SketchErrorPct = 100.0 / exactBelow

// Sketch is a histogram of durations in whole microseconds on one fixed
// log-linear grid. Merging is addition, so it loses nothing and may be done in
// any order. The zero value is empty and ready. It does not lock.
type Sketch struct {
	counts [buckets]uint64
	total  uint64
}

// bucketOf returns the bucket of v, which must not exceed maxMicros.
func bucketOf(v uint64) int {
	if v < exactBelow {
		return int(v)
	}
	octave := bits.Len64(v) - 1 - subBits // ≥ 1: how far the low bits are dropped
	return exactBelow + (octave-1)*perOctave + int(v>>octave) - perOctave
}

// edges returns the lowest and the highest integer of a bucket.
func edges(bucket int) (low, high uint64) {
	if bucket < exactBelow {
		return uint64(bucket), uint64(bucket)
	}
	octave := (bucket-exactBelow)/perOctave + 1
	low = uint64((bucket-exactBelow)%perOctave+perOctave) << octave
	return low, low + 1<<octave - 1
}

// micros rounds a duration down to microseconds and moves it onto the grid.
func micros(d time.Duration) uint64 {
	return min(uint64(max(d, 0)/time.Microsecond), maxMicros)
}

// Record adds one duration. Negative ones count as 0, those above 71 minutes as
// 71 minutes.
func (s *Sketch) Record(d time.Duration) {
	s.counts[bucketOf(micros(d))]++
	s.total++
}

// Count returns how many durations were recorded.
func (s *Sketch) Count() uint64 { return s.total }

// Merge adds what o holds.
func (s *Sketch) Merge(o *Sketch) {
	for i, n := range o.counts {
		s.counts[i] += n
	}
	s.total += o.total
}

// Reset empties the sketch.
func (s *Sketch) Reset() { *s = Sketch{} }

// Quantile returns the nearest-rank q-quantile (0 < q ≤ 1), the ⌈q·n⌉-th smallest
// duration, as the midpoint of its bucket in microseconds. An empty sketch has
// none and returns NaN.
func (s *Sketch) Quantile(q float64) float64 {
	if s.total == 0 {
		return math.NaN()
	}
	// q·n is computed in floating point: 0.07·100 is 7.000000000000001, and its
	// ceiling one rank too high. The nudge is far below one rank.
	return s.atRank(uint64(math.Ceil(q*float64(s.total) - 1e-9)))
}

// Percentile returns the nearest-rank p-th percentile in microseconds, its rank
// computed in integers.
func (s *Sketch) Percentile(p int) float64 {
	if s.total == 0 {
		return math.NaN()
	}
	return s.atRank((uint64(p)*s.total + 99) / 100)
}

func (s *Sketch) atRank(rank uint64) float64 {
	rank = max(1, min(rank, s.total))
	seen := uint64(0)
	for i, n := range s.counts {
		if seen += n; seen >= rank {
			low, high := edges(i)
			return float64(low) + float64(high-low)/2
		}
	}
	return math.NaN() // unreachable: the counts add up to total
}

// Below returns how many recorded durations lie in buckets wholly under v
// microseconds; exact when v is a bucket's lower edge.
func (s *Sketch) Below(v uint64) uint64 {
	n := uint64(0)
	for _, c := range s.counts[:bucketOf(min(v, maxMicros))] {
		n += c
	}
	return n
}
