package meter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestReadyReplicasComeBackFromTheirChanges lets ready replicas change at random,
// exports at random and restarts at random, in an orderly way or not. What later
// processes import must add up to what was, slot by slot, as far as it was exported.
func TestReadyReplicasComeBackFromTheirChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		begin := time.Unix(c.now().Unix()+1, 0)
		c.pass(begin.Sub(c.now()))
		config := Config{Slot: time.Second, Retention: time.Duration(rapid.IntRange(30, 60).Draw(t, "retention")) * time.Second, Now: c.now}
		var saved []Slot
		var want []int64 // ∫ of each second since begin, replica·ns, as far as it was exported
		for range rapid.IntRange(1, 3).Draw(t, "processes") {
			m := New(config)
			require.NoError(t, m.Import(saved))
			exported, counted := time.Time{}, make([]int64, 30)
			for range rapid.IntRange(1, 6).Draw(t, "changes") {
				level := rapid.IntRange(0, 2).Draw(t, "ready")
				m.SetReady("dep_a", level)
				for range rapid.IntRange(0, 3).Draw(t, "halves") { // of a second
					counted[int(c.now().Sub(begin)/time.Second)] += int64(level) * int64(500*time.Millisecond)
					c.pass(500 * time.Millisecond)
				}
				if rapid.Bool().Draw(t, "exports") {
					var slots []Slot
					slots, exported = m.Export(exported)
					saved = append(saved, slots...)
				}
			}
			until := exported
			if rapid.Bool().Draw(t, "sealed") {
				saved, until = append(saved, m.Seal(exported)...), c.now().Add(time.Second-1).Truncate(time.Second)
			}
			want = append(want, make([]int64, 30-len(want))...)
			for i := range counted {
				if begin.Add(time.Duration(i) * time.Second).Before(until) {
					want[i] += counted[i]
				}
			}
		}
		c.pass(2 * time.Second)
		m := New(config)
		require.NoError(t, m.Import(rapid.Permutation(saved).Draw(t, "order")))
		require.NoError(t, m.Import(saved), "again")
		for i := range want {
			from := begin.Add(time.Duration(i) * time.Second)
			if from.Add(config.Retention).Before(c.now()) {
				continue
			}
			var w window
			if l := m.known("dep_a"); l != nil {
				l.collect(&w, span{from.UnixNano(), from.Add(time.Second).UnixNano()}, c.now().UnixNano(), 0)
			}
			require.EqualValues(t, want[i], w.ready, "second %d", i)
		}
	})
}

func TestReplicasThatStandCostNoMemoryAndNoRows(t *testing.T) {
	c := newClock()
	m := New(Config{Slot: time.Second, Retention: 100 * time.Second, Now: c.now})
	m.SetReady("dep_a", 2)
	c.pass(2 * time.Second)
	first, since := m.Export(time.Time{})
	ready := 0
	for range 300 {
		c.pass(time.Second)
		var slots []Slot
		slots, since = m.Export(since)
		for _, s := range slots {
			if s.Kind == KindReady {
				ready++
			}
		}
	}
	assert.NotEmpty(t, first)
	assert.InDelta(t, 6, ready, 1, "once every 50 slots")
	assert.LessOrEqual(t, len(m.known("dep_a").readyRuns), 2)
}
