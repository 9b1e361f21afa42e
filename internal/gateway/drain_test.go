package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// holding starts a replica that holds each request until told.
func holding(t *testing.T) (address string, arrived, free chan struct{}) {
	arrived, free = make(chan struct{}, 100), make(chan struct{})
	return upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sse(w)
		arrived <- struct{}{}
		<-free
		event(w, "done")
	}), arrived, free
}

func TestND1ADrainedReplicaFinishesWhatItHoldsAndTakesNothingNew(t *testing.T) {
	address, arrived, free := holding(t)
	g := start(t, Config{}, chat(1, serves("a", address, upstream(t, echo))))
	for g.Inflight("a-0") == 0 { // two random choices: soon
		g.open(t.Context(), t) //nolint:bodyclose // closed by open
	}
	<-arrived
	held := g.Inflight("a-0")

	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := g.Drain(soon, "a-0")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var left *DrainError
	require.ErrorAs(t, err, &left)
	assert.Equal(t, held, left.Left)

	require.NoError(t, g.Apply(chat(2, serves("a", address, upstream(t, echo)))), "a route that still says READY")
	for range 50 {
		assert.Equal(t, "a-1", g.ask(t, "acme/chat").header.Get(HeaderReplica))
	}
	drained := make(chan error, 1)
	go func() { drained <- g.Drain(t.Context(), "a-0") }()
	close(free)
	require.NoError(t, <-drained)
	assert.Zero(t, g.Inflight("a-0"))
	require.NoError(t, g.Drain(t.Context(), "a-0"), "again is done")
	require.NoError(t, g.Drain(t.Context(), "unknown"), "what is not known holds nothing")

	again := chat(3, serves("a", upstream(t, echo)))
	again.Members[0].Replicas[0].Restarts = 1
	require.NoError(t, g.Apply(again))
	assert.Equal(t, "a-0", g.ask(t, "acme/chat").header.Get(HeaderReplica), "a restart is a new life")
}

func TestND1AnIdleDrainedReplicaTakesNothingNew(t *testing.T) {
	a := upstream(t, echo)
	g := start(t, Config{}, chat(1, serves("a", a, a)))
	require.NoError(t, g.Drain(t.Context(), "a-0"))
	old := g.table.serving("ep_1").members[0] // as a request that was overtaken holds it
	require.NoError(t, g.Apply(chat(2, serves("a", a, a))))
	for range 50 {
		s, ok := old.pick(nil)
		require.True(t, ok)
		assert.Equal(t, "a-1", s.replica.id)
		s.replica.release()
		assert.Equal(t, "a-1", g.ask(t, "acme/chat").header.Get(HeaderReplica))
	}
	require.NoError(t, g.Drain(t.Context(), "a-1"))
	assert.Equal(t, http.StatusServiceUnavailable, g.ask(t, "acme/chat").status)
	require.NoError(t, g.Apply(chat(3, serves("b", a))), "what left every route is forgotten")
	require.NoError(t, g.Apply(chat(4, serves("a", a))))
	assert.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
}

func TestAnOvertakenTableSendsNothingToAReplicaThatIsNoLongerReady(t *testing.T) {
	a := upstream(t, echo)
	g := start(t, Config{}, chat(1, serves("a", a)))
	old := g.table.serving("ep_1").members[0]
	r := chat(2, serves("a", a))
	r.Members[0].Replicas[0].State = rollout.ReplicaFailed
	require.NoError(t, g.Apply(r))
	_, ok := old.pick(nil)
	assert.False(t, ok)
	r = chat(3, serves("a", a))
	require.NoError(t, g.Apply(r))
	_, ok = old.pick(nil)
	assert.True(t, ok, "ready again")
	old.ready[0].replica.release()
}

func TestND1ARouteThatSaysDrainingIsEnough(t *testing.T) {
	address, arrived, free := holding(t)
	g := start(t, Config{}, chat(1, serves("a", address)))
	response := g.open(t.Context(), t) //nolint:bodyclose // closed by open
	<-arrived
	r := chat(2, serves("a", address, upstream(t, echo)))
	r.Members[0].Replicas[0].State = rollout.ReplicaDraining
	require.NoError(t, g.Apply(r))
	for range 50 {
		assert.Equal(t, "a-1", g.ask(t, "acme/chat").header.Get(HeaderReplica))
	}
	assert.Equal(t, 1, g.Inflight("a-0"))
	drained := make(chan error, 1)
	go func() { drained <- g.Drain(t.Context(), "a-0") }()
	close(free)
	require.NoError(t, <-drained)
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "data: done\n\n", string(b))
}

func TestND4ASwapCutsNoStream(t *testing.T) {
	const streams, swaps = 100, 200
	stop := make(chan struct{})
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sse(w)
		for i := 0; ; i++ {
			event(w, fmt.Sprint(i))
			select {
			case <-stop:
				event(w, "[DONE]")
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	g := start(t, Config{}, moving(1, 50, serves("a", a), serves("b", a)))
	var wg sync.WaitGroup
	var whole, begun atomic.Int32
	for range streams {
		wg.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/completions", strings.NewReader(streamBody))
			if err != nil {
				return
			}
			response, err := http.DefaultClient.Do(r)
			begun.Add(1)
			if err != nil {
				return
			}
			defer func() { _ = response.Body.Close() }()
			if b, err := io.ReadAll(response.Body); err == nil && strings.HasSuffix(string(b), "data: [DONE]\n\n") {
				whole.Add(1)
			}
		})
	}
	eventually(t, 10*time.Second, "all begun", func() bool { return begun.Load() == streams })
	for i := range swaps {
		r := moving(uint64(i+2), i%101, serves("a", a), serves("b", a))
		if i%3 == 0 { // the replicas leave the route and come back
			r = chat(uint64(i+2), serves("a"), serves("b"))
		}
		require.NoError(t, g.Apply(r))
	}
	close(stop)
	wg.Wait()
	assert.EqualValues(t, streams, whole.Load())
}

// TestNoRequestIsLostOrMisplacedWhileTablesAreSwapped replaces every replica again
// and again under load. A replica that a route no longer lists refuses, so a
// request that is sent to one after Apply returned would be seen.
func TestNoRequestIsLostOrMisplacedWhileTablesAreSwapped(t *testing.T) {
	const lives = 60
	var closed [lives]atomic.Bool
	var late atomic.Int32
	replica := make([]string, lives)
	for i := range replica {
		replica[i] = upstream(t, func(w http.ResponseWriter, r *http.Request) {
			if closed[i].Load() {
				late.Add(1)
			}
			echo(w, r)
		})
	}
	route := func(i int) rollout.Route {
		r := moving(uint64(i+1), i%101, serves("a", replica[i]), serves("b", replica[i]))
		r.Members[0].Replicas[0].ID, r.Members[1].Replicas[0].ID = fmt.Sprint("a-life-", i), fmt.Sprint("b-life-", i)
		return r
	}
	g := start(t, Config{}, route(0))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var failed, answers atomic.Int32
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if a := g.post(t.Context(), "/v1/completions", `{"model":"acme/chat"}`); a.err != nil || a.status != http.StatusOK {
					failed.Add(1)
				}
				answers.Add(1)
			}
		})
	}
	for i := 1; i < lives; i++ {
		before := answers.Load()
		eventually(t, eventSoon, "traffic flows", func() bool { return answers.Load() > before+5 })
		require.NoError(t, g.Apply(route(i)))
		for _, side := range []string{"a", "b"} { // what was taken in before may still be on its way
			require.NoError(t, g.Drain(t.Context(), fmt.Sprintf("%s-life-%d", side, i-1)))
		}
		closed[i-1].Store(true)
	}
	cancel()
	wg.Wait()
	assert.Zero(t, failed.Load())
	assert.Zero(t, late.Load())
	assert.Zero(t, g.total("a").ServerErrors+g.total("b").ServerErrors)
}

// TestNM1NM3MixedEndsAreClassedOnceAndTheGaugeEndsAtZero mixes answers, errors,
// streams, aborts and retries.
func TestNM1NM3MixedEndsAreClassedOnceAndTheGaugeEndsAtZero(t *testing.T) {
	const workers, each = 20, 50
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.Header.Get("X-Case") {
		case "error":
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		case "stay":
			sse(w)
			event(w, "first")
			<-r.Context().Done()
		default:
			sse(w)
			event(w, "whole")
		}
	})
	g := start(t, Config{}, chat(1, serves("a", a, refused(t)))) // every second pick is retried
	var wg sync.WaitGroup
	var want struct{ ok, errors, canceled atomic.Uint64 }
	for worker := range workers {
		wg.Go(func() {
			for i := range each {
				switch (worker + i) % 10 {
				case 0, 1, 2:
					ctx, cancel := context.WithCancel(t.Context())
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/completions", strings.NewReader(streamBody))
					r.Header.Set("X-Case", "stay")
					response, err := http.DefaultClient.Do(r)
					if assert.NoError(t, err) {
						_, _ = response.Body.Read(make([]byte, 16))
						want.canceled.Add(1)
						cancel()
						_ = response.Body.Close()
					}
					cancel()
				case 3:
					reply := g.post(t.Context(), "/v1/completions", streamBody, "X-Case", "error")
					assert.Equal(t, http.StatusServiceUnavailable, reply.status)
					want.errors.Add(1)
				default:
					assert.Equal(t, "data: whole\n\n", g.post(t.Context(), "/v1/completions", streamBody).body)
					want.ok.Add(1)
				}
			}
		})
	}
	wg.Wait()
	expected := meter.Totals{OK: want.ok.Load(), ServerErrors: want.errors.Load(), Canceled: want.canceled.Load()}
	require.EqualValues(t, workers*each, expected.OK+expected.ServerErrors+expected.Canceled)
	eventually(t, eventSoon, "all classed", func() bool { return g.total("a") == expected })
	assert.Zero(t, g.Meter().Recent("a", time.Minute).Inflight)
	assert.Zero(t, g.Inflight("a-0")+g.Inflight("a-1"))
}
