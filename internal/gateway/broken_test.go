package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
)

// resetting answers its probe and closes every inference request without a byte.
func resetting(t testing.TB, deaths *atomic.Int32) string {
	return upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusOK)
			return
		}
		deaths.Add(1)
		panic(http.ErrAbortHandler)
	})
}

// With two such replicas on the target and a split of 50/50 half of all requests got
// 502, beside four healthy replicas of the source.
func TestReplicasThatResetEveryRequestCostNoAnswerWhileTheOtherSideLives(t *testing.T) {
	const requests = 100
	var deaths atomic.Int32
	live := upstream(t, echo)
	g := start(t, Config{}, moving(1, 50, serves("a", live, live, live, live),
		serves("b", resetting(t, &deaths), resetting(t, &deaths), resetting(t, &deaths))))
	var wg sync.WaitGroup
	var failed, fellOver atomic.Int32
	for range 4 {
		wg.Go(func() {
			for range requests / 4 {
				a := g.post(t.Context(), "/v1/chat/completions", `{"model":"acme/chat"}`)
				if a.err != nil || a.status != http.StatusOK {
					failed.Add(1)
				} else if a.header.Get(HeaderFallbackFrom) == "b" {
					fellOver.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.Zero(t, failed.Load(), "every accepted request gets an answer")
	assert.Positive(t, fellOver.Load())
	assert.Equal(t, meter.Totals{ServerErrors: uint64(fellOver.Load())}, g.total("b"), "the failure is the chosen side's")
	assert.Equal(t, meter.Totals{OK: requests}, g.total("a"))
}

func TestAPoisonousRequestKillsTwoReplicasOfItsSideAndOneOfTheOther(t *testing.T) {
	for name, others := range map[string]int{"a pair": 0, "a pair and others": 2} {
		t.Run(name, func(t *testing.T) {
			deaths := map[string]*atomic.Int32{}
			r := moving(1, 100, serves("a"), serves("b"))
			for i, d := range []string{"a", "b", "c", "d"}[:2+others] {
				deaths[d] = new(atomic.Int32)
				m := serves(d, resetting(t, deaths[d]), resetting(t, deaths[d]), resetting(t, deaths[d]))
				if i < 2 {
					r.Members[i] = m
				} else {
					r.Members = append(r.Members, m)
				}
			}
			g := start(t, Config{}, r)
			a := g.ask(t, "acme/chat")
			assert.Equal(t, http.StatusBadGateway, a.status)
			assert.Equal(t, "upstream_error", a.code(t))
			assert.EqualValues(t, 2, deaths["b"].Load(), "of the chosen side")
			assert.EqualValues(t, 1, deaths["a"].Load(), "of the other")
			for _, d := range []string{"c", "d"}[:others] {
				assert.Zero(t, deaths[d].Load(), "of the rest")
			}
			assert.Equal(t, meter.Totals{ServerErrors: 1}, g.total("a"))
			assert.Equal(t, meter.Totals{ServerErrors: 1}, g.total("b"))
		})
	}
}

// malformed are the answers of which not one byte may reach a client.
func malformed() map[string]string {
	return map[string]string{
		"garbage":                     "\x16\x03\x01\x02\x00 this is no HTTP\r\n\r\n",
		"a bad status line":           "HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}",
		"another protocol":            "HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"a status below 100":          "HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\n{}",
		"a status of four digits":     "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
		"two different lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"a negative length":           "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
		"an unknown coding":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: zstd\r\n\r\n{}",
		"a line without a colon":      brokenAnswer,
		"a space before the colon":    "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
		"a head over the limit":       "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead),
		"a head that is cut off":      "HTTP/1.1 200 OK\r\nContent-Le",
		"an upgrade nobody asked":     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
		"interim answers without end": strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 200),
		"a control character":         "HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 2\r\n\r\n{}",
		"a zero byte":                 "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
	}
}

// lasting tells the malformed answers after which the connection stays open: waiting for
// the rest of one hung.
func lasting(t *testing.T, name, bytes string) (address string, asked *atomic.Int32) {
	if name == "a head that is cut off" {
		return speaking(t, bytes)
	}
	return speaking(t, bytes, "")
}

func TestAMalformedAnswerGoesToAnotherReplica(t *testing.T) {
	for name, bytes := range malformed() {
		t.Run(name, func(t *testing.T) {
			bad, asked := lasting(t, name, bytes)
			g := start(t, Config{}, chat(1, serves("a", bad, upstream(t, echo))))
			for i := 0; asked.Load() < 2; i++ {
				require.Less(t, i, 200, "the bad replica is drawn")
				a := g.ask(t, "acme/chat")
				require.Equal(t, http.StatusOK, a.status, a.body)
				require.Equal(t, "a-1", a.header.Get(HeaderReplica))
			}
			assert.Zero(t, g.total("a").ServerErrors, "its own side answered")
		})
	}
}

func TestAMalformedAnswerFallsOverToTheOtherSide(t *testing.T) {
	for name, bytes := range malformed() {
		t.Run(name, func(t *testing.T) {
			bad, _ := lasting(t, name, bytes)
			g := start(t, Config{}, moving(1, 100, serves("a", upstream(t, echo)), serves("b", bad)))
			for i := range 3 {
				a := g.ask(t, "acme/chat")
				require.Equal(t, http.StatusOK, a.status, a.body)
				require.Equal(t, "b", a.header.Get(HeaderFallbackFrom), fmt.Sprint(i))
			}
			assert.Equal(t, meter.Totals{ServerErrors: 3}, g.total("b"))
			assert.Equal(t, meter.Totals{OK: 3}, g.total("a"))
		})
	}
}

func TestAMalformedAnswerOnAKeptConnectionGoesToAnotherReplica(t *testing.T) {
	turns, asked := speaking(t, wholeAnswer, brokenAnswer)
	live := upstream(t, echo)
	g := start(t, Config{}, moving(1, 100, serves("a", live), serves("b", turns)))
	require.Equal(t, "b", g.ask(t, "acme/chat").header.Get(HeaderDeployment))
	eventually(t, eventSoon, "the connection is kept", func() bool { return idle(g.pools[turns]) == 1 })
	a := g.ask(t, "acme/chat")
	assert.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, "b", a.header.Get(HeaderFallbackFrom))
	assert.EqualValues(t, 2, asked.Load())
}

// Unlike another side, another replica is also asked for a pinned request, but not
// without end.
func TestAPinnedRequestOfMalformedAnswersIsRefusedAfterTwoReplicas(t *testing.T) {
	address, requests := speaking(t, brokenAnswer)
	g := start(t, Config{}, moving(1, 50, serves("a", address, address, address), serves("b", upstream(t, echo))))
	assert.Equal(t, http.StatusBadGateway, g.ask(t, "acme/chat/a").status)
	assert.EqualValues(t, maxDeaths, requests.Load())
	assert.Equal(t, meter.Totals{ServerErrors: 1}, g.total("a"))
}
