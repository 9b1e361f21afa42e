package meter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAReadingIsTheSameAfterAKillAndAnImport(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	m.SetReady("dep_a", 2)
	for i := range 100 {
		serve(m, c, "dep_a", uint64(1+i/50), time.Duration(i)*time.Millisecond, Class(i%3))
	}
	c.pass(time.Second)
	slots, next := m.Export(time.Time{})
	assert.Equal(t, c.now().Truncate(time.Second).Unix(), next.Unix())

	again := meterAt(c) // kill -9, and a start within the same instant
	require.NoError(t, again.Import(slots))
	require.NoError(t, again.Import(slots), "twice is once")
	for _, q := range queries(start, next) {
		q.MinGeneration = 2
		before := read(t, m, q)
		assert.Equal(t, before, read(t, again, q), "%+v", q)
		assert.NotZero(t, before.Samples)
		assert.True(t, before.Complete)
	}
	more, _ := again.Export(time.Time{})
	for _, s := range more {
		assert.NotEqual(t, slots[0].Boot, s.Boot, "it exports only what it counted itself")
	}
}

func TestTheGapOfARestartIsKnown(t *testing.T) {
	for _, gap := range []struct {
		name     string
		down     time.Duration
		complete bool
	}{{"within the tolerance", time.Second, true}, {"beyond it", 5 * time.Second, false}} {
		t.Run(gap.name, func(t *testing.T) {
			c := newClock()
			config := Config{Slot: time.Second, Tolerance: 2 * time.Second, Now: c.now}
			m, start := New(config), c.now()
			c.pass(10 * time.Second)
			slots, _ := m.Export(time.Time{})
			c.pass(gap.down)
			back := c.now()
			again := New(config)
			require.NoError(t, again.Import(slots))
			c.pass(10 * time.Second)
			q := errorRate("dep_a", start, c.now())
			assert.Equal(t, gap.complete, read(t, again, q).Complete)
			q.From = back
			assert.True(t, read(t, again, q).Complete, "what came after the gap is whole")
			q.From, q.To = start, start.Add(10*time.Second)
			assert.True(t, read(t, again, q).Complete, "and what came before")
		})
	}
}

func TestAnOrderlyStopLosesNothing(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	serve(m, c, "dep_a", 1, 300*time.Millisecond, OK)
	slots := m.Seal(time.Time{})
	again := meterAt(c)
	require.NoError(t, again.Import(slots))
	serve(again, c, "dep_a", 1, 500*time.Millisecond, OK)
	c.pass(time.Second)
	r := read(t, again, latencyAvg("dep_a", start, start.Add(time.Second)))
	assert.Equal(t, 2, r.Samples)
	assert.InDelta(t, 400, r.Value, 1e-9)
	assert.True(t, r.Complete)
}

func TestACorruptSlotDoesNotKeepTheOthersOut(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	serve(m, c, "dep_a", 1, 0, OK)
	c.pass(time.Second)
	serve(m, c, "dep_a", 1, 0, OK)
	c.pass(time.Second)
	slots, _ := m.Export(time.Time{})
	broken := 0
	for i := range slots {
		if slots[i].Kind == KindTraffic && slots[i].Start.Equal(start) {
			slots[i].Payload = slots[i].Payload[:3]
			broken++
		}
	}
	require.Equal(t, 1, broken)
	again := meterAt(c)
	require.ErrorIs(t, again.Import(slots), ErrCorrupt)
	assert.Equal(t, 1, read(t, again, errorRate("dep_a", start, c.now())).Samples)
}

// TestAnExportedSlotNeverChanges lets events carry stale instants, as those of
// goroutines that were overtaken do.
func TestAnExportedSlotNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m := meterAt(c)
		seen := map[SlotKey]string{}
		total, exported, fresh := uint64(0), uint64(0), uint64(10)
		var since time.Time
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				c.pass(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
			},
			"late": func(t *rapid.T) {
				late := time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
				f := m.Begin("dep_a", rapid.Uint64Range(1, 2).Draw(t, "generation"))
				c.pass(-late) // End reads the clock, then is overtaken
				f.End(OK)
				fresh++
				m.Begin("dep_a", fresh).End(OK) // and so is the first request of a generation
				c.pass(late)
				total += 2
			},
			"export": func(t *rapid.T) {
				all, next := m.Export(since)
				since = next
				for _, s := range all {
					_, twice := seen[s.Key()]
					require.False(t, twice, "%+v was exported twice", s.Key())
					seen[s.Key()] = string(s.Payload)
					if s.Kind == KindTraffic {
						body, err := decode(s)
						require.NoError(t, err)
						exported += body.answered()
					}
				}
				whole, _ := m.Export(time.Time{})
				for _, s := range whole {
					if was, ok := seen[s.Key()]; ok {
						require.Equal(t, was, string(s.Payload))
					}
				}
			},
		})
		c.pass(2 * time.Second)
		rest, _ := m.Export(since)
		for _, s := range rest {
			if s.Kind == KindTraffic {
				body, err := decode(s)
				require.NoError(t, err)
				exported += body.answered()
			}
		}
		if c.now().Sub(time.Unix(0, m.started)) < 5*time.Minute {
			require.Equal(t, total, exported, "every request is in exactly one slot")
		}
	})
}

func TestMemoryIsBoundedByTheRetention(t *testing.T) {
	c := newClock()
	m := New(Config{Slot: time.Second, Retention: 10 * time.Second, Now: c.now})
	m.SetReady("dep_a", 1)
	for g := range uint64(500) {
		serve(m, c, "dep_a", g, 700*time.Millisecond, OK)
	}
	l := m.known("dep_a")
	assert.LessOrEqual(t, len(l.flows), 20)
	m.Recent("dep_a", time.Second)
	assert.LessOrEqual(t, len(l.readyRuns), 12)
	held := m.Begin("dep_a", 500) // a stream of an hour
	c.pass(time.Hour)
	m.Recent("dep_a", time.Second)
	held.End(OK)
	assert.LessOrEqual(t, len(l.flows[500].closed), 12)
}

func FuzzASlotThatIsNotOursIsRefused(f *testing.F) {
	f.Add(uint8(KindTraffic), []byte{1, 1, 0, 0, 5, 5, 6, 1})
	f.Add(uint8(KindWatch), []byte{1, 0, 5})
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		s := Slot{Kind: Kind(kind), Deployment: "dep_a", Start: time.Unix(1_700_000_000, 0), Length: time.Second, Payload: payload}
		body, err := decode(s)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := decode(Slot{Kind: s.Kind, Start: s.Start, Length: s.Length, Payload: body.encode(s.Kind)})
		require.NoError(t, err)
		require.Equal(t, body.encode(s.Kind), again.encode(s.Kind))
	})
}
