package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
)

// clock is a time that only a test moves.
type clock struct{ past atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_700_000_000, 0).Add(time.Duration(c.past.Load())) }
func (c *clock) advance(d time.Duration) { c.past.Add(int64(d)) }

// moody is a replica that does what it is told.
type moody struct {
	address string
	breaks  atomic.Bool  // closes without a byte
	status  atomic.Int32 // answers with it, 0 for 200
	asked   atomic.Int32
	hold    atomic.Pointer[chan struct{}] // answers after it was closed
	arrived chan struct{}
}

func newMoody(t testing.TB) *moody {
	m := &moody{arrived: make(chan struct{}, 1000)}
	m.address = upstream(t, func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		m.arrived <- struct{}{}
		if c := m.hold.Load(); c != nil {
			select {
			case <-*c:
			case <-r.Context().Done():
			}
		}
		if m.breaks.Load() {
			panic(http.ErrAbortHandler)
		}
		if s := m.status.Load(); s != 0 {
			w.WriteHeader(int(s))
		}
		echo(w, r)
	})
	return m
}

// askUntil sends requests, each of which must be answered, until the replica was asked n
// times, then as many again.
func (g gate) askUntil(t *testing.T, m *moody, n int32) {
	for i := 0; m.asked.Load() < n; i++ {
		require.Less(t, i, 500, "the replica is asked %d times", n)
		require.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
	for range 50 {
		require.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
	require.Equal(t, n, m.asked.Load())
}

func TestNL2AReplicaThatBreaksFiveTimesIsEjectedAndNeverFlapsInsideItsCooldown(t *testing.T) {
	var c clock
	bad := newMoody(t)
	bad.breaks.Store(true)
	g := start(t, Config{Now: c.now}, chat(1, serves("a", bad.address, upstream(t, echo))))
	g.askUntil(t, bad, 5)
	asked := int32(5)
	for _, cooldown := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		c.advance(cooldown*time.Second - 1)
		g.askUntil(t, bad, asked)
		c.advance(1)
		asked++
		g.askUntil(t, bad, asked)
	}
	assert.Zero(t, g.total("a").ServerErrors)
}

func TestNL2ADialThatIsRefusedEjectsToo(t *testing.T) {
	var c clock
	var dials atomic.Int32
	dead, dialer := refused(t), &net.Dialer{}
	g := start(t, Config{Now: c.now, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == dead {
			dials.Add(1)
		}
		return dialer.DialContext(ctx, network, address)
	}}, chat(1, serves("a", dead, upstream(t, echo))))
	for range 200 {
		require.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
	assert.EqualValues(t, maxMisses, dials.Load())
}

func TestNL2AnHonest5xxEjectsNobody(t *testing.T) {
	bad := newMoody(t)
	bad.status.Store(http.StatusInternalServerError)
	g := start(t, Config{}, chat(1, serves("a", bad.address)))
	for range 25 {
		require.Equal(t, http.StatusInternalServerError, g.ask(t, "acme/chat").status)
	}
	assert.EqualValues(t, 25, bad.asked.Load())
	assert.False(t, g.replicas["a-0"].health.ejected.Load())
}

func TestNL2OneProbeAtATimeAndItsAnswerReadmits(t *testing.T) {
	var c clock
	bad := newMoody(t)
	bad.breaks.Store(true)
	g := start(t, Config{Now: c.now}, chat(1, serves("a", bad.address, upstream(t, echo))))
	g.askUntil(t, bad, 5)

	bad.breaks.Store(false)
	held := make(chan struct{})
	bad.hold.Store(&held)
	drainSignals(bad.arrived)
	c.advance(time.Second)
	var wg sync.WaitGroup
	var answers atomic.Int32
	for range 40 {
		wg.Go(func() {
			a := g.post(t.Context(), "/v1/completions", `{"model":"acme/chat"}`)
			if a.err == nil && a.status == http.StatusOK {
				answers.Add(1)
			}
		})
	}
	<-bad.arrived
	eventually(t, eventSoon, "all but the probe are answered", func() bool { return answers.Load() == 39 })
	assert.EqualValues(t, 6, bad.asked.Load(), "one probe at a time")
	bad.hold.Store(nil)
	close(held)
	wg.Wait()
	assert.EqualValues(t, 40, answers.Load())
	for i := 0; bad.asked.Load() < 20; i++ {
		require.Less(t, i, 500, "the replica is back")
		g.ask(t, "acme/chat")
	}
	assert.Zero(t, g.replicas["a-0"].health.misses.Load(), "an answer read to its end ends the probation")
}

func drainSignals(c chan struct{}) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

func TestNL2AClientThatLeavesItsProbeFreesTheSlot(t *testing.T) {
	var c clock
	bad := newMoody(t)
	bad.breaks.Store(true)
	g := start(t, Config{Now: c.now}, chat(1, serves("a", bad.address, upstream(t, echo))))
	g.askUntil(t, bad, 5)
	bad.breaks.Store(false)
	held := make(chan struct{})
	bad.hold.Store(&held)
	defer close(held)
	drainSignals(bad.arrived)
	c.advance(time.Second)

	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // until one of them is the probe
		defer close(done)
		for ctx.Err() == nil {
			g.post(ctx, "/v1/completions", `{"model":"acme/chat"}`)
		}
	}()
	<-bad.arrived
	leave()
	<-done
	h := &g.replicas["a-0"].health
	eventually(t, eventSoon, "another may probe", func() bool { return !h.away() })
	assert.True(t, h.ejected.Load(), "a client that left proves nothing")
	bad.hold.Store(nil)
	g.askUntilBack(t, h)
}

func (g gate) askUntilBack(t *testing.T, h *health) {
	for i := 0; h.ejected.Load(); i++ {
		require.Less(t, i, 500, "the replica is back")
		require.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
}

func TestNL2WhatWasSentBeforeAnEjectionDoesNotEndIt(t *testing.T) {
	early := station{replica: &replica{health: health{now: new(clock).now}}}
	for range maxMisses {
		early.failed(New(Config{}).log)
	}
	own := &early.replica.health
	require.True(t, own.away())
	early.begun()
	early.finished()
	early.left()
	assert.True(t, own.away())
	early.failed(New(Config{}).log)
	assert.Equal(t, firstCooldown, own.cooldown, "nor does it make it longer")
}

func TestNL2ASideWhoseReplicasAreAllEjectedIsTriedOnceAndThenFallsOver(t *testing.T) {
	var c clock
	b1, b2, b3 := newMoody(t), newMoody(t), newMoody(t)
	bad := []*moody{b1, b2, b3}
	asked := func() (n int32) {
		for _, b := range bad {
			n += b.asked.Load()
		}
		return n
	}
	for _, b := range bad {
		b.breaks.Store(true)
	}
	g := start(t, Config{Now: c.now}, moving(1, 100, serves("a", upstream(t, echo)), serves("b", b1.address, b2.address, b3.address)))
	away := func() bool {
		return g.replicas["b-0"].health.away() && g.replicas["b-1"].health.away() && g.replicas["b-2"].health.away()
	}
	for i := 0; !away(); i++ {
		require.Less(t, i, 500, "all are ejected")
		require.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
	before, failures := asked(), g.total("b").ServerErrors
	for range 20 {
		a := g.ask(t, "acme/chat")
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, "b", a.header.Get(HeaderFallbackFrom))
	}
	assert.EqualValues(t, 20, asked()-before, "one each")
	assert.Equal(t, meter.Totals{ServerErrors: failures + 20}, g.total("b"))

	for _, b := range bad {
		b.breaks.Store(false)
	}
	a := g.ask(t, "acme/chat")
	assert.Equal(t, "b", a.header.Get(HeaderDeployment), "the cool-down does not keep a side that answers empty")
	assert.False(t, away())
}

func TestNL2WhereNothingCanStandInAllEjectedReplicasAreTried(t *testing.T) {
	var c clock
	dead, live := refused(t), newMoody(t)
	g := start(t, Config{Now: c.now}, moving(1, 50, serves("a", dead, dead, dead, live.address), serves("b", upstream(t, echo))))
	for _, id := range []string{"a-0", "a-1", "a-2", "a-3"} {
		for range maxMisses {
			station{replica: g.replicas[id]}.failed(g.log)
		}
		require.True(t, g.replicas[id].health.away())
	}
	assert.Equal(t, http.StatusOK, g.ask(t, "acme/chat/a").status)
}

func TestNL2ARestartEndsAnEjection(t *testing.T) {
	var c clock
	bad := newMoody(t)
	bad.breaks.Store(true)
	r := chat(1, serves("a", bad.address, upstream(t, echo)))
	g := start(t, Config{Now: c.now}, r)
	g.askUntil(t, bad, 5)
	bad.breaks.Store(false)
	r.Generation = 2
	r.Members[0].Replicas[0].Restarts++
	require.NoError(t, g.Apply(r))
	for i := 0; bad.asked.Load() < 10; i++ {
		require.Less(t, i, 500, "the new process is asked")
		require.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
}

func TestAReplicaThatDiesWithinFiveAnswersIsEjected(t *testing.T) {
	var c clock
	cut := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	g := start(t, Config{Now: c.now}, chat(1, serves("a", cut, upstream(t, echo))))
	cuts := 0
	for range 200 {
		if g.post(t.Context(), "/v1/completions", `{"model":"acme/chat"}`).err != nil {
			cuts++
		}
	}
	assert.Equal(t, maxMisses, cuts)
}

func TestTheRequestsOfAnEjectedReplicaAreSharedByAllOthers(t *testing.T) {
	g := New(Config{Now: new(clock).now})
	require.NoError(t, g.Apply(chat(1, serves("a", addresses(4)...))))
	for range maxMisses {
		station{replica: g.replicas["a-1"]}.failed(g.log)
	}
	m, hits := g.table.serving("ep_1").members[0], map[string]int{}
	const n = 30_000
	for range n {
		s, ok := m.pick(nil)
		require.True(t, ok)
		hits[s.replica.id]++
		s.replica.release()
	}
	assert.Zero(t, hits["a-1"])
	for _, id := range []string{"a-0", "a-2", "a-3"} {
		within(t, 1.0/3, float64(hits[id])/n, n, id)
	}
}
