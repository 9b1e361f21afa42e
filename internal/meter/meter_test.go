package meter

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func read(t require.TestingT, m *Meter, q rollout.Query) rollout.Reading {
	r, err := m.Read(context.Background(), q)
	require.NoError(t, err)
	return r
}

func TestARequestCountsInTheSlotInWhichItEnds(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	serve(m, c, "dep_a", 1, 2500*time.Millisecond, OK)
	c.pass(time.Second)
	assert.Zero(t, read(t, m, latencyAvg("dep_a", start, start.Add(2*time.Second))).Samples)
	r := read(t, m, latencyAvg("dep_a", start.Add(2*time.Second), start.Add(3*time.Second)))
	assert.Equal(t, rollout.Reading{Value: 2500, Samples: 1, Touched: true, Complete: true}, r)
}

func TestAStreamOfTheSplitBeforeIsNotJudged(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	old := m.Begin("dep_a", 7)
	serve(m, c, "dep_a", 8, 10*time.Millisecond, OK)
	old.End(ServerError)
	c.pass(time.Second)
	q := errorRate("dep_a", start, start.Add(time.Second))
	assert.InDelta(t, 0.5, read(t, m, q).Value, 0)
	q.MinGeneration = 8
	assert.Equal(t, rollout.Reading{Samples: 1, Touched: true, Complete: true}, read(t, m, q))
}

func TestTheWindowIsAlignedInward(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	for range 4 { // one request in each of four slots, at .1 s
		c.pass(100 * time.Millisecond)
		serve(m, c, "dep_a", 1, 0, OK)
		c.pass(900 * time.Millisecond)
	}
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	for _, w := range []struct {
		from, to float64
		samples  int
	}{{0, 4, 4}, {0.05, 4, 3}, {0, 3.95, 3}, {0.5, 3.5, 2}, {1.2, 1.9, 0}} {
		r := read(t, m, errorRate("dep_a", at(w.from), at(w.to)))
		assert.Equal(t, w.samples, r.Samples, "%v", w)
		assert.Equal(t, w.samples > 0, r.Complete, "a window without a whole slot is no window: %v", w)
	}
}

func TestACanceledRequestIsNeitherErrorNorSuccess(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	m.SetReady("dep_a", 1)
	serve(m, c, "dep_a", 1, 100*time.Millisecond, OK)
	serve(m, c, "dep_a", 1, 500*time.Millisecond, Canceled)
	serve(m, c, "dep_a", 1, 200*time.Millisecond, ServerError)
	c.pass(time.Second)
	to := start.Add(time.Second)
	assert.Equal(t, rollout.Reading{Value: 0.5, Samples: 2, Touched: true, Complete: true}, read(t, m, errorRate("dep_a", start, to)))
	assert.Equal(t, rollout.Reading{Value: 150, Samples: 2, Touched: true, Complete: true}, read(t, m, latencyAvg("dep_a", start, to)))
	assert.InDelta(t, 0.8, read(t, m, inflight(start, to)).Value, 1e-9, "it was in flight, though")
}

func TestInflightIsAnIntegralPerReadyReplica(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	m.SetReady("dep_a", 2)
	f, g := m.Begin("dep_a", 1), m.Begin("dep_a", 1)
	c.pass(1500 * time.Millisecond)
	g.End(OK) // 1.5 s
	m.SetReady("dep_a", 4)
	c.pass(2500 * time.Millisecond)
	f.End(OK) // 4 s
	c.pass(time.Second)
	r := read(t, m, inflight(start, start.Add(5*time.Second)))
	assert.InDelta(t, 5.5/(2*1.5+4*3.5), r.Value, 1e-9)
	assert.Equal(t, 2, r.Samples)
}

func TestWithoutAReadyReplicaInflightIsNotAvailable(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	m.SetReady("dep_a", 0)
	serve(m, c, "dep_a", 1, 500*time.Millisecond, ServerError)
	c.pass(time.Second)
	r := read(t, m, inflight(start, start.Add(time.Second)))
	assert.Equal(t, rollout.Reading{Touched: true, Complete: true}, r)
	assert.Equal(t, 1, read(t, m, errorRate("dep_a", start, start.Add(time.Second))).Samples)
}

func TestAWindowFromBeforeTheMeterIsNotComplete(t *testing.T) {
	c := newClock()
	start := c.now()
	c.pass(10 * time.Second)
	m := meterAt(c)
	serve(m, c, "dep_a", 1, time.Second, OK)
	c.pass(9 * time.Second)
	assert.False(t, read(t, m, errorRate("dep_a", start, start.Add(20*time.Second))).Complete)
	assert.True(t, read(t, m, errorRate("dep_a", start.Add(10*time.Second), start.Add(20*time.Second))).Complete)
	assert.False(t, read(t, m, errorRate("dep_a", start.Add(15*time.Second), start.Add(30*time.Second))).Complete, "nor one that reaches into the future")
}

func TestWhatIsNotInTheCatalogueIsRefused(t *testing.T) {
	c := newClock()
	m := meterAt(c)
	for _, q := range []rollout.Query{
		{Metric: "tokens"},
		{Metric: rollout.RouterLatency},
		{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile},
		{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 100},
		{Metric: rollout.RouterErrorRate, Stat: rollout.StatPercentile, Percentile: 95},
	} {
		_, err := m.Read(t.Context(), q)
		assert.Error(t, err, "%+v", q)
	}
}

func TestAFlightEndsOnce(t *testing.T) {
	c := newClock()
	m := meterAt(c)
	f := m.Begin("dep_a", 1)
	c.pass(time.Millisecond)
	assert.Equal(t, time.Millisecond, f.End(OK))
	assert.Zero(t, f.End(ServerError))
	s := m.Recent("dep_a", time.Minute)
	assert.Equal(t, Totals{OK: 1}, s.Total)
	assert.Zero(t, s.Inflight)
}

func TestFirstTrafficIsTheStartOfTheEarliestSlotWithARequest(t *testing.T) {
	c := newClock()
	m := meterAt(c)
	assert.Zero(t, m.FirstTraffic("dep_a"))
	m.SetReady("dep_a", 1)
	assert.Zero(t, m.FirstTraffic("dep_a"), "replicas are no traffic")
	c.pass(time.Minute)
	first := c.now()
	for range 3 {
		m.Begin("dep_a", 1).End(OK)
		c.pass(30 * time.Second)
	}
	got := m.FirstTraffic("dep_a")
	assert.False(t, got.After(first))
	assert.Less(t, first.Sub(got), m.SlotLength())

	after := meterAt(c) // a restart takes the memory over
	closed, _ := m.Export(time.Time{})
	require.NoError(t, after.Import(closed))
	assert.Equal(t, got, after.FirstTraffic("dep_a"))
}

func TestNM3TheGaugeEndsAtZeroUnderConcurrentFlights(t *testing.T) {
	m := New(Config{Slot: time.Millisecond})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 1250 {
				f := m.Begin("dep_a", uint64(i%5))
				if i%10 < 3 {
					f.End(Canceled)
					f.End(OK) // the retry's defer, after the abort
				} else {
					f.End(Class(w % 2))
				}
				if i%100 == 0 {
					m.Export(time.Time{})
				}
			}
		})
	}
	wg.Wait()
	s := m.Recent("dep_a", time.Minute)
	assert.Zero(t, s.Inflight)
	assert.Equal(t, Totals{OK: 3500, ServerErrors: 3500, Canceled: 3000}, s.Total)
	assert.Equal(t, uint64(10000), s.Requests, "slots and totals agree")
}

// TestAnyHistoryIsReadBackExactly compares the slots with plain sums over random
// histories of two deployments, with exports and readings thrown in.
func TestAnyHistoryIsReadBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m, start := meterAt(c), c.now()
		type open struct {
			flight     *Flight
			generation uint64
			since      time.Time
		}
		var opened []open
		var want struct {
			ended, errors int
			busy, ready   time.Duration
		}
		ready := 0
		pass := func(d time.Duration) {
			for _, o := range opened {
				if o.generation >= 2 {
					want.busy += d
				}
			}
			want.ready += time.Duration(ready) * d
			c.pass(d)
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				if c.now().Sub(start) < 20*time.Second {
					pass(time.Duration(rapid.IntRange(1, 3_000_000_000).Draw(t, "ns")))
				}
			},
			"begin": func(t *rapid.T) {
				g := rapid.Uint64Range(1, 3).Draw(t, "generation")
				opened = append(opened, open{m.Begin("dep_a", g), g, c.now()})
				m.Begin("dep_b", g)
			},
			"end": func(t *rapid.T) {
				if len(opened) == 0 {
					return
				}
				i := rapid.IntRange(0, len(opened)-1).Draw(t, "which")
				class := Class(rapid.IntRange(0, 1).Draw(t, "class"))
				opened[i].flight.End(class)
				if opened[i].generation >= 2 {
					want.ended++
					want.errors += int(class)
				}
				opened = append(opened[:i], opened[i+1:]...)
			},
			"ready": func(t *rapid.T) {
				ready = rapid.IntRange(0, 3).Draw(t, "ready")
				m.SetReady("dep_a", ready)
			},
			"export": func(*rapid.T) { m.Export(start) },
			"read":   func(*rapid.T) { m.Recent("dep_a", 10*time.Second) },
			"": func(t *rapid.T) {
				pass(time.Unix(c.now().Unix()+1, 0).Sub(c.now())) // to the end of the slot
				q := errorRate("dep_a", start, c.now())
				q.MinGeneration = 2
				rate := read(t, m, q)
				require.Equal(t, want.ended, rate.Samples)
				if want.ended > 0 {
					require.InDelta(t, float64(want.errors)/float64(want.ended), rate.Value, 1e-12)
				}
				q.Metric = rollout.InflightRequests
				load := read(t, m, q)
				if want.ready > 0 {
					require.InEpsilon(t, float64(want.busy)/float64(want.ready)+1, load.Value+1, 1e-9)
				}
				require.True(t, load.Complete || want.ready == 0)
			},
		})
	})
}

func TestAStretchOfThePastIsSummedUp(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	for range 4 { // one request a second, of 0, 100, 200 and 300 ms
		serve(m, c, "dep_a", 1, time.Duration(c.now().Sub(start).Seconds())*100*time.Millisecond, OK)
		c.pass(time.Second - c.now().Sub(start)%time.Second)
	}
	assert.EqualValues(t, 4, m.Between("dep_a", start, c.now()).Requests)
	assert.EqualValues(t, 2, m.Between("dep_a", start.Add(time.Second), start.Add(3*time.Second)).Requests)
	assert.Zero(t, m.Between("dep_none", start, c.now()).Requests)
}

func TestAShareIsToldFromTheSplitsAnswersSinceTheShift(t *testing.T) {
	c := newClock()
	m, _ := meterAt(c), c.now()
	answer := func(deployment string, generation uint64) {
		f := m.Begin(deployment, generation)
		f.ChosenBySplit()
		f.End(OK)
	}
	for range 7 {
		answer("dep_a", 1) // of the split before
	}
	for range 3 {
		answer("dep_a", 2)
	}
	answer("dep_a", 3)                            // a later route of the same split: the fleet moved
	serve(m, c, "dep_a", 2, time.Millisecond, OK) // pinned by a client
	assert.EqualValues(t, 4, m.SplitAnswers("dep_a", 2))
	assert.EqualValues(t, 11, m.SplitAnswers("dep_a", 0))
	assert.Zero(t, m.SplitAnswers("dep_b", 0))
}

func TestRequestsThatHangAreNotAnIdleEndpoint(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	m.SetReady("dep_a", 1)
	for range 10 {
		defer m.Begin("dep_a", 1).End(Canceled)
	}
	c.pass(5 * time.Second)
	q := latencyAvg("dep_a", start.Add(time.Second), start.Add(4*time.Second))
	assert.Equal(t, rollout.Reading{Touched: true, Complete: true}, read(t, m, q), "nothing ended, but somebody waits")
	q.Metric, q.Stat = rollout.InflightRequests, ""
	r := read(t, m, q)
	assert.InDelta(t, 10, r.Value, 0.01)
	assert.Equal(t, 1, r.Samples)
	assert.False(t, read(t, m, latencyAvg("dep_b", start.Add(time.Second), start.Add(4*time.Second))).Touched)
}

func TestAWindowBeyondTheRetentionIsNotComplete(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	for range 40 {
		serve(m, c, "dep_a", 1, time.Minute, OK)
	}
	assert.False(t, read(t, m, latencyAvg("dep_a", start, c.now())).Complete, "forty minutes are more than it remembers")
	assert.True(t, read(t, m, latencyAvg("dep_a", c.now().Add(-4*time.Minute), c.now())).Complete)
}
