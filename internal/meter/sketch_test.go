package meter

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheGridTilesItsRangeWithoutGapOrOverlap(t *testing.T) {
	next := uint64(0)
	for b := range buckets {
		low, high := edges(b)
		require.Equal(t, next, low, "bucket %d", b)
		require.Equal(t, b, bucketOf(low))
		require.Equal(t, b, bucketOf(high))
		next = high + 1
	}
	assert.Equal(t, uint64(maxMicros)+1, next)
	assert.Equal(t, 1728, buckets)
}

// durations draws latencies like real ones: fast rejects, slow answers, a tail.
func durations(n int) *rapid.Generator[[]int64] {
	one := rapid.OneOf(
		rapid.Int64Range(0, 300),
		rapid.Int64Range(1_000, 10_000),
		rapid.Int64Range(300_000, 2_000_000),
		rapid.Int64Range(0, maxMicros),
	)
	return rapid.SliceOfN(one, 1, n)
}

func sketchOf(micros []int64) *Sketch {
	s := new(Sketch)
	for _, v := range micros {
		s.Record(time.Duration(v) * time.Microsecond)
	}
	return s
}

func TestEveryPercentileIsWithinTheBoundOfExactNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := durations(400).Draw(t, "micros")
		s := sketchOf(vs)
		slices.Sort(vs)
		for p := 1; p <= 99; p++ {
			exact := float64(vs[(p*len(vs)+99)/100-1])
			got := s.Percentile(p)
			if math.Abs(got-exact) > exact*SketchErrorPct/100 {
				t.Fatalf("p%d of %d values: %v, exactly %v", p, len(vs), got, exact)
			}
			if q := s.Quantile(float64(p) / 100); q != got {
				t.Fatalf("Quantile(%d/100) = %v, Percentile = %v", p, q, got)
			}
		}
	})
}

func TestItAgreesWithAnIndependentHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := durations(400).Draw(t, "micros")
		oracle := hdrhistogram.New(1, maxMicros, 3)
		for _, v := range vs {
			require.NoError(t, oracle.RecordValue(v))
		}
		s := sketchOf(vs)
		for _, p := range []int{50, 90, 95, 99} {
			// The oracle rounds to 0.1 % and may take the neighbouring rank, so both
			// neighbours of its quantile bound ours.
			low := float64(oracle.ValueAtQuantile(float64(p) - 100/float64(len(vs))))
			high := float64(oracle.ValueAtQuantile(float64(p) + 100/float64(len(vs))))
			got := s.Percentile(p)
			if got < low*(1-0.01)-1 || got > high*(1+0.01)+1 {
				t.Fatalf("p%d of %d values: %v, the oracle has %v to %v", p, len(vs), got, low, high)
			}
		}
	})
}

func TestMergingLosesNothingInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := durations(300).Draw(t, "micros")
		cut := rapid.IntRange(0, len(vs)).Draw(t, "cut")
		whole, left, right := sketchOf(vs), sketchOf(vs[:cut]), sketchOf(vs[cut:])
		forth, back := *left, *right
		forth.Merge(right)
		require.NoError(t, back.MergeBinary(left.appendTo(nil)))
		if forth != *whole || back != *whole {
			t.Fatalf("merged sketches differ from the whole")
		}
	})
}

func TestNM9AConstantDurationIsReadBackWithinOnePercent(t *testing.T) {
	s := new(Sketch)
	for range 1000 {
		s.Record(5001 * time.Millisecond)
	}
	assert.InEpsilon(t, 5_001_000, s.Percentile(95), 0.01)
	assert.Equal(t, s.Percentile(1), s.Percentile(99))
}

func TestASlotOfARealLoadStaysSmall(t *testing.T) {
	s := new(Sketch)
	for i := range 500 {
		s.Record(time.Duration(700+i) * time.Millisecond)
	}
	assert.Less(t, len(s.appendTo(nil)), 1000)
	assert.True(t, math.IsNaN(new(Sketch).Percentile(50)))
}

func FuzzACorruptSketchIsRefusedWhole(f *testing.F) {
	f.Add(sketchOf([]int64{1, 5, 70_000, 70_000}).appendTo(nil))
	f.Add([]byte{0x80})
	f.Add([]byte{0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := sketchOf([]int64{42})
		before := *s
		if err := s.MergeBinary(b); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			require.Equal(t, before, *s)
			return
		}
		var only Sketch
		require.NoError(t, only.MergeBinary(b))
		var again Sketch
		require.NoError(t, again.MergeBinary(only.appendTo(nil)))
		require.Equal(t, only, again)
	})
}

func BenchmarkRecord(b *testing.B) {
	s := new(Sketch)
	for i := 0; b.Loop(); i++ {
		s.Record(time.Duration(i&0xfffff) * time.Microsecond)
	}
}
