package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// eventSoon bounds the wait for something that follows at once, on a busy machine.
const eventSoon = 3 * time.Second

func TestARequestReachesTheModelUnderItsOwnName(t *testing.T) {
	g := start(t, Config{}, chat(7, serves("a", upstream(t, echo))))
	for _, path := range []string{"/chat/completions", "/completions", "/embeddings"} {
		for _, prefix := range []string{"", "/v1"} {
			a := g.post(t.Context(), prefix+path, `{"seed":9007199254740993,"model":"acme/chat"}`)
			require.NoError(t, a.err)
			assert.Equal(t, http.StatusOK, a.status)
			assert.Equal(t, "/v1"+path, gjson.Get(a.body, "path").Str)
			assert.Equal(t, `{"seed":9007199254740993,"model":"model-a"}`, gjson.Get(a.body, "got").Raw)
			assert.Equal(t, []string{"ep_1", "a", "a-0", "7", ""}, []string{
				a.header.Get(HeaderEndpoint), a.header.Get(HeaderDeployment), a.header.Get(HeaderReplica),
				a.header.Get(HeaderGeneration), a.header.Get(HeaderFallbackFrom),
			})
		}
	}
	assert.Equal(t, meter.Totals{OK: 6}, g.total("a"))
}

func TestAPinnedModelPassesTheSplit(t *testing.T) {
	g := start(t, Config{}, moving(1, 0, serves("a", upstream(t, echo)), serves("b", upstream(t, echo))))
	for range 20 {
		assert.Equal(t, "a", g.ask(t, "acme/chat").header.Get(HeaderDeployment))
		assert.Equal(t, "b", g.ask(t, "acme/chat/b").header.Get(HeaderDeployment))
	}
}

func TestErrorsHaveOpenAIsShape(t *testing.T) {
	none := chat(1)
	none.EndpointID, none.Name = "ep_2", "acme/none"
	g := start(t, Config{}, chat(1, serves("a")), none)
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/v1/chat/completions", `{"model":"acme/missing"}`, 404, "model_not_found"},
		{"POST", "/v1/chat/completions", `{"model":"acme/none"}`, 400, "endpoint_not_configured"},
		{"POST", "/v1/chat/completions", `{"model":"acme/chat"}`, 503, "no_ready_replica"},
		{"POST", "/v1/chat/completions", `{`, 400, "invalid_json"},
		{"POST", "/v1/responses", `{}`, 404, "unknown_url"},
		{"GET", "/v1/chat/completions", ``, 405, "method_not_allowed"},
		{"GET", "/v1/models/acme/missing", ``, 404, "model_not_found"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, g.url+c.path, http.NoBody)
		require.NoError(t, err)
		a := do(r)
		if c.method == http.MethodPost {
			a = g.post(t.Context(), c.path, c.body)
		}
		require.NoError(t, a.err)
		assert.Equal(t, c.status, a.status, c.path)
		assert.Equal(t, c.code, a.code(t), c.path)
	}
	assert.Equal(t, meter.Totals{ServerErrors: 1}, g.total("a"), "a router's own 503 counts for the deployment that was chosen")
}

func TestTheModelsAreTheEndpoints(t *testing.T) {
	g := start(t, Config{}, chat(1, serves("a")))
	for path, want := range map[string]string{"/v1/models": "data.0.id", "/models": "data.0.id", "/v1/models/acme/chat": "id"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, http.NoBody)
		require.NoError(t, err)
		a := do(r)
		assert.Equal(t, "acme/chat", gjson.Get(a.body, want).Str)
		assert.LessOrEqual(t, gjson.Get(a.body, "data.#").Int(), int64(1), "deployments are not listed")
	}
}

func TestCredentialsAndHopByHopHeadersStopHere(t *testing.T) {
	var got http.Header
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Connection", "X-Mine")
		w.Header().Set("X-Mine", "1")
		w.Header().Set("X-Model", "2")
		w.Header().Set(HeaderDeployment, "forged")
		echo(w, r)
	})
	g := start(t, Config{Authorize: func(r *http.Request) error {
		if r.Header.Get("Authorization") != "Bearer secret" {
			return errors.New("wrong key")
		}
		return nil
	}}, chat(1, serves("a", a)))
	body := `{"model":"acme/chat"}`
	denied := g.post(t.Context(), "/v1/completions", body)
	assert.Equal(t, http.StatusUnauthorized, denied.status)
	assert.Equal(t, "invalid_api_key", denied.code(t))
	reply := g.post(t.Context(), "/v1/completions", body, "Authorization", "Bearer secret", "X-Api-Key", "k", "Cookie", "c",
		"X-Request-Id", "r1", "X-Sluice-Deployment", "forged", "Connection", "X-Hop", "X-Hop", "h", "X-Forwarded-For", "10.0.0.1")
	require.NoError(t, reply.err)
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "X-Sluice-Deployment", "X-Hop", "Connection"} {
		assert.Empty(t, got.Get(name), name)
	}
	assert.Equal(t, "r1", got.Get("X-Request-Id"))
	assert.Equal(t, "10.0.0.1, 127.0.0.1", got.Get("X-Forwarded-For"))
	assert.Equal(t, "2", reply.header.Get("X-Model"))
	assert.Empty(t, reply.header.Get("X-Mine"))
	assert.Equal(t, []string{"a"}, reply.header[HeaderDeployment])
}

// TestNB1TheKeepAliveRaceIsNeverSeen sends requests at the very moment at which
// the replica closes its idle connections, 1 s after the last request.
func TestNB1TheKeepAliveRaceIsNeverSeen(t *testing.T) {
	const connections, rounds = 200, 4
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.Config.IdleTimeout = time.Second
	s.Start()
	t.Cleanup(s.Close)
	g := start(t, Config{}, chat(1, serves("a", s.Listener.Addr().String())))
	var wg sync.WaitGroup
	var failed, sent atomic.Int32
	for i := range connections {
		wg.Go(func() {
			for range rounds {
				if a := g.post(t.Context(), "/v1/completions", `{"model":"acme/chat"}`); a.err != nil || a.status != http.StatusOK {
					failed.Add(1)
					t.Logf("%d %v %s", a.status, a.err, a.body)
				}
				sent.Add(1)
				// 0.985 to 1.015 s apart, as where the race was measured.
				time.Sleep(985*time.Millisecond + time.Duration(i)*30*time.Millisecond/connections)
			}
		})
	}
	wg.Wait()
	assert.Zero(t, failed.Load())
	assert.EqualValues(t, connections*rounds, sent.Load())
	assert.Equal(t, meter.Totals{OK: connections * rounds}, g.total("a"), "a replay is one request")
}

// TestAStaleConnectionIsReplayedOnceOnAFreshOne makes each kept connection die
// under its second request.
func TestAStaleConnectionIsReplayedOnceOnAFreshOne(t *testing.T) {
	var served sync.Map // requests by connection
	var replays atomic.Int32
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := served.LoadOrStore(r.RemoteAddr, new(atomic.Int32))
		if n.(*atomic.Int32).Add(1) > 1 {
			replays.Add(1)
			panic(http.ErrAbortHandler)
		}
		echo(w, r)
	})
	g := start(t, Config{}, chat(1, serves("a", a)))
	for range 50 {
		assert.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
	assert.Positive(t, replays.Load())
	assert.Equal(t, meter.Totals{OK: 50}, g.total("a"))
}

func TestNB4ARefusedDialGoesToAnotherReplicaOfTheSameSide(t *testing.T) {
	dead := []string{refused(t), refused(t), refused(t), refused(t)}
	g := start(t, Config{}, moving(1, 50,
		serves("a", append(dead, upstream(t, echo))...), serves("b", append(dead, upstream(t, echo))...)))
	for i := range 200 {
		a := g.post(t.Context(), "/v1/completions", fmt.Sprintf(`{"model":"acme/chat","user":"u%d","prompt":"%0*d"}`, i, i*50, i))
		require.NoError(t, a.err)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.Empty(t, a.header.Get(HeaderFallbackFrom))
		require.Contains(t, a.header.Get(HeaderReplica), "-4")
	}
	assert.Zero(t, g.total("a").ServerErrors+g.total("b").ServerErrors)
	assert.EqualValues(t, 200, g.total("a").OK+g.total("b").OK)
}

func TestWhenNothingIsLeftTheAnswerIs502(t *testing.T) {
	g := start(t, Config{}, moving(1, 50, serves("a", refused(t)), serves("b", refused(t), refused(t))))
	a := g.ask(t, "acme/chat/b")
	assert.Equal(t, http.StatusBadGateway, a.status)
	assert.Equal(t, "upstream_error", a.code(t))
	assert.Equal(t, meter.Totals{}, g.total("a"))
	assert.Equal(t, http.StatusBadGateway, g.ask(t, "acme/chat").status)
	assert.Equal(t, 0, g.Inflight("a-0")+g.Inflight("b-0")+g.Inflight("b-1"))
}

func TestASideWithoutReplicasFallsOverAndItsFailureStaysItsOwn(t *testing.T) {
	live := upstream(t, echo)
	for name, target := range map[string]rollout.Member{"no replica": serves("b"), "a dead one": serves("b", refused(t))} {
		t.Run(name, func(t *testing.T) {
			g := start(t, Config{}, moving(1, 100, serves("a", live), target))
			for range 10 {
				a := g.ask(t, "acme/chat")
				require.Equal(t, http.StatusOK, a.status)
				require.Equal(t, "a", a.header.Get(HeaderDeployment))
				require.Equal(t, "b", a.header.Get(HeaderFallbackFrom))
			}
			assert.Equal(t, meter.Totals{ServerErrors: 10}, g.total("b"), "the target's failures are not hidden")
			assert.Equal(t, meter.Totals{OK: 10}, g.total("a"), "nor laundered into the source's")
			assert.NotEqual(t, http.StatusOK, g.ask(t, "acme/chat/b").status, "a pinned request does not fall over")
		})
	}
}

func TestTheSourceFallsOverToATargetAtZeroPercentAndToOthers(t *testing.T) {
	live := upstream(t, echo)
	g := start(t, Config{}, moving(1, 0, serves("a"), serves("b", live)))
	assert.Equal(t, "b", g.ask(t, "acme/chat").header.Get(HeaderDeployment))
	require.NoError(t, g.Apply(moving(2, 0, serves("a"), serves("b"), serves("c", live))))
	assert.Equal(t, "c", g.ask(t, "acme/chat").header.Get(HeaderDeployment))
	require.NoError(t, g.Apply(chat(3, serves("a", refused(t)), serves("c", live))))
	for range 20 {
		assert.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
}

// TestARequestThatKillsReplicasKillsTwoAtMost lets each replica die under it.
func TestARequestThatKillsReplicasKillsTwoAtMost(t *testing.T) {
	var deaths atomic.Int32
	killed := func(http.ResponseWriter, *http.Request) {
		deaths.Add(1)
		panic(http.ErrAbortHandler)
	}
	g := start(t, Config{}, moving(1, 50, serves("a", upstream(t, killed), upstream(t, killed), upstream(t, killed)),
		serves("b", upstream(t, echo))))
	a := g.ask(t, "acme/chat/a")
	assert.Equal(t, http.StatusBadGateway, a.status)
	assert.EqualValues(t, maxDeaths, deaths.Load())
	assert.Equal(t, meter.Totals{ServerErrors: 1}, g.total("a"))
}

func TestAReplicaThatDiesUnderARequestCostsNoAnswer(t *testing.T) {
	dies := upstream(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	g := start(t, Config{}, chat(1, serves("a", dies, upstream(t, echo))))
	for range 20 {
		assert.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	}
	assert.Equal(t, meter.Totals{OK: 20}, g.total("a"))
}

func TestAReplicaThatRefusesEarlyIsHeard(t *testing.T) {
	a := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "too long", http.StatusBadRequest)
	})
	g := start(t, Config{}, chat(1, serves("a", a)))
	assert.Equal(t, http.StatusBadRequest, g.ask(t, "acme/chat").status)
	assert.Equal(t, meter.Totals{OK: 1}, g.total("a"), "a 4xx is an answer")
}

// speaking starts a replica that answers the requests of each connection with the
// given bytes, one after the other, and counts the requests.
func speaking(t *testing.T, answers ...string) (address string, requests *atomic.Int32) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	requests = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				b := make([]byte, 4096)
				for _, a := range answers {
					if _, err := c.Read(b); err != nil {
						return
					}
					requests.Add(1)
					_, _ = io.WriteString(c, a)
				}
			}()
		}
	}()
	return l.Addr().String(), requests
}

const (
	wholeAnswer  = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	brokenAnswer = "HTTP/1.1 200 OK\r\nbroken head\r\n\r\n"
)

func TestInterimAndOddAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		bytes  string
		status int
		body   string
	}{
		"an interim response first":   {"HTTP/1.1 100 Continue\r\n\r\n" + wholeAnswer, 200, "{}"},
		"an upgrade nobody asked":     {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 502, ""},
		"a head without an end":       {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead), 502, ""},
		"two lengths":                 {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 502, ""},
		"no length, ended by close":   {"HTTP/1.1 200 OK\r\n\r\n{}", 200, "{}"},
		"more than the answer":        {wholeAnswer + wholeAnswer, 200, "{}"},
		"an answer without a body":    {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
		"an old protocol":             {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}"},
		"a length and chunks at once": {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := speaking(t, c.bytes)
			g := start(t, Config{}, chat(1, serves("a", address)))
			for range 2 { // a connection that cannot be trusted is not used again
				a := g.ask(t, "acme/chat")
				assert.Equal(t, c.status, a.status)
				if c.status < 500 {
					assert.Equal(t, c.body, a.body)
				}
			}
		})
	}
}

func TestAConnectionInUseIsClosedWhenItsReplicaHasLeft(t *testing.T) {
	address, arrived, free := holding(t)
	g := start(t, Config{}, chat(1, serves("a", address)))
	response := g.open(t.Context(), t) //nolint:bodyclose // closed by open
	<-arrived
	p := g.pools[address]
	require.NoError(t, g.Apply(chat(2, serves("a"))))
	close(free)
	_, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, g.Drain(t.Context(), "a-0"))
	assert.Zero(t, idle(p))
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	arrived, free := make(chan struct{}), make(chan struct{})
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-free
		echo(w, r)
	})
	g := New(Config{})
	require.NoError(t, g.Apply(chat(1, serves("a", a))))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	reply := make(chan answered, 1)
	one := gate{g, "http://" + l.Addr().String()}
	go func() { reply <- one.post(context.Background(), "/v1/completions", `{"model":"acme/chat"}`) }()
	<-arrived
	down := make(chan error, 1)
	go func() { down <- g.Shutdown(context.Background()) }()
	require.NoError(t, <-served)
	close(free)
	assert.Equal(t, http.StatusOK, (<-reply).status)
	require.NoError(t, <-down)
	recorder := httptest.NewRecorder()
	g.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", http.NoBody))
	assert.Equal(t, http.StatusServiceUnavailable, recorder.Code)
	http.DefaultClient.CloseIdleConnections()
}
