package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
)

// sse starts an event stream.
func sse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

func event(w http.ResponseWriter, text string) {
	_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
	w.(http.Flusher).Flush()
}

const streamBody = `{"model":"acme/chat","stream":true}`

// open sends a request and returns the answer with its body unread. The body is
// closed with the test.
func (g gate) open(ctx context.Context, t testing.TB) *http.Response {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(streamBody))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestNT1EveryEventPassesAtOnceAndTheHeadBeforeTheFirst sends each event only
// after the client has seen the one before: an event that is held back for the
// next one stops the test.
func TestNT1EveryEventPassesAtOnceAndTheHeadBeforeTheFirst(t *testing.T) {
	const events = 40
	seen := make(chan struct{})
	sent := make(chan time.Time, 1)
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		sse(w)
		for i := range events {
			select {
			case <-seen: // the head at first
			case <-r.Context().Done():
				return
			}
			sent <- time.Now()
			event(w, strconv.Itoa(i))
		}
	})
	g := start(t, Config{}, chat(1, serves("a", a)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	response := g.open(ctx, t) //nolint:bodyclose // closed by open
	assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	assert.Equal(t, "a-0", response.Header.Get(HeaderReplica))
	lines := bufio.NewScanner(response.Body)
	var transit []time.Duration
	seen <- struct{}{}
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		transit = append(transit, time.Since(<-sent))
		require.Equal(t, strconv.Itoa(len(transit)-1), text)
		if len(transit) < events {
			seen <- struct{}{}
		}
	}
	require.NoError(t, lines.Err())
	require.Len(t, transit, events)
	slices.Sort(transit)
	assert.Less(t, transit[events/2], 5*time.Millisecond)
	t.Logf("transit p50 %v, worst %v", transit[events/2], transit[events-1])
}

// pipes is a network of pipes inside a synctest bubble.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) listen(address string) *pipeListener {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.listeners[address] = l
	return l
}

func (p *pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestNT3ASilenceOfTwoMinutesDoesNotEndAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{listeners: map[string]*pipeListener{}}
		replica := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(5 * time.Minute) // before the head
			sse(w)
			for i := range 3 {
				time.Sleep(2 * time.Minute)
				_, _ = io.WriteString(w, ": still here\n\n")
				event(w, strconv.Itoa(i))
			}
		})}
		back := network.listen("replica:1")
		go func() { _ = replica.Serve(back) }()
		g := New(Config{Dial: network.dial})
		require.NoError(t, g.Apply(chat(1, serves("a", "replica:1"))))
		front := network.listen("gateway:1")
		go func() { _ = g.Serve(front) }()
		transport := &http.Transport{DialContext: network.dial}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway:1/v1/completions", strings.NewReader(streamBody))
		require.NoError(t, err)
		begin := time.Now()
		response, err := (&http.Client{Transport: transport}).Do(r)
		require.NoError(t, err)
		b, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, 3, strings.Count(string(b), "data: "))
		assert.Equal(t, 3, strings.Count(string(b), ": still here"), "comment lines pass through")
		assert.GreaterOrEqual(t, time.Since(begin), 11*time.Minute)

		// Nothing is left behind that would end the next answer on its connection.
		time.Sleep(time.Minute)
		r, err = http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway:1/v1/completions", strings.NewReader("{"))
		require.NoError(t, err)
		response, err = (&http.Client{Transport: transport}).Do(r)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		require.NoError(t, response.Body.Close())
		transport.CloseIdleConnections()
		assert.NoError(t, g.Shutdown(t.Context()))
		assert.NoError(t, replica.Close())
		assert.Equal(t, uint64(1), g.Meter().Recent("a", time.Minute).Total.OK)
	})
}

// TestNT3UnderHTTP2 has a server in front whose streams end when a deadline
// passes, whether something is being written or not.
func TestNT3UnderHTTP2(t *testing.T) {
	const timeout = 100 * time.Millisecond
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sse(w)
		event(w, "first")
		time.Sleep(3 * timeout)
		event(w, "second")
	})
	g := New(Config{BodyTimeout: timeout, WriteTimeout: timeout})
	t.Cleanup(g.Close)
	require.NoError(t, g.Apply(chat(1, serves("a", a))))
	front := httptest.NewUnstartedServer(g)
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/completions", strings.NewReader(streamBody))
	require.NoError(t, err)
	response, err := front.Client().Do(r)
	require.NoError(t, err)
	assert.Equal(t, 2, response.ProtoMajor)
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "data: first\n\ndata: second\n\n", string(b))
	require.NoError(t, response.Body.Close())
}

// leaving starts a replica that behaves as told until its client leaves, and
// reports when it saw that.
func leaving(t *testing.T, until func(w http.ResponseWriter)) (address string, arrived chan struct{}, left chan time.Time) {
	arrived, left = make(chan struct{}), make(chan time.Time, 1)
	return upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server watches the connection once the body is read
		until(w)
		close(arrived)
		<-r.Context().Done()
		left <- time.Now()
	}), arrived, left
}

// TestNT4NT6TheClientLeavesInAnyPhase covers a stream and a plain call, before
// the head, after it, and between two events.
func TestNT4NT6TheClientLeavesInAnyPhase(t *testing.T) {
	for name, until := range map[string]func(http.ResponseWriter){
		"before the head":   func(http.ResponseWriter) {},
		"after the head":    sse,
		"within the stream": func(w http.ResponseWriter) { sse(w); event(w, "first") },
		"within a plain answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			event(w, "some bytes of a hundred")
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, arrived, left := leaving(t, until)
			g := start(t, Config{}, chat(1, serves("a", address)))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.post(ctx, "/v1/chat/completions", streamBody)
			}()
			<-arrived
			assert.Equal(t, 1, g.Inflight("a-0"))
			gone := time.Now()
			cancel()
			select {
			case at := <-left:
				assert.Less(t, at.Sub(gone), 250*time.Millisecond)
			case <-time.After(5 * time.Second):
				t.Fatal("the replica was never told")
			}
			<-done
			eventually(t, eventSoon, "recorded", func() bool { return g.total("a") == meter.Totals{Canceled: 1} })
			eventually(t, eventSoon, "released", func() bool { return g.Inflight("a-0") == 0 })
		})
	}
}

func TestAClientThatLeavesWithinItsBodyIsRoutedNowhere(t *testing.T) {
	g := start(t, Config{}, chat(1, serves("a", upstream(t, echo))))
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	require.NoError(t, err)
	_, err = io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"model\":")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	assert.Equal(t, http.StatusOK, g.ask(t, "acme/chat").status)
	assert.Equal(t, meter.Totals{OK: 1}, g.total("a"))
}

func TestAClientThatStallsWithinItsBodyIsLetGo(t *testing.T) {
	g := start(t, Config{BodyTimeout: 50 * time.Millisecond}, chat(1, serves("a", upstream(t, echo))))
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(5*time.Second)))
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestTimeout, response.StatusCode)
	require.NoError(t, response.Body.Close())
}

// TestNT14AClientThatTakesNothingIsLetGo never reads an endless answer.
func TestNT14AClientThatTakesNothingIsLetGo(t *testing.T) {
	stopped := make(chan struct{})
	a := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		_, _ = io.Copy(io.Discard, r.Body)
		sse(w)
		block := strings.Repeat("x", 64<<10)
		for r.Context().Err() == nil {
			event(w, block)
		}
	})
	g := start(t, Config{WriteTimeout: 200 * time.Millisecond}, chat(1, serves("a", a)))
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(streamBody), streamBody)
	require.NoError(t, err)
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("the stream still runs")
	}
	eventually(t, eventSoon, "recorded", func() bool { return g.total("a") == meter.Totals{Canceled: 1} })
}

// TestNT9AStreamThatDiesIsNoSuccess lets the replica die within its answer.
func TestNT9AStreamThatDiesIsNoSuccess(t *testing.T) {
	for name, until := range map[string]func(http.ResponseWriter){
		"after the head":    sse,
		"within the stream": func(w http.ResponseWriter) { sse(w); event(w, "first") },
		"within a plain answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "some bytes of a hundred")
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				until(w)
				panic(http.ErrAbortHandler)
			})
			g := start(t, Config{}, chat(1, serves("a", a)))
			reply := g.post(t.Context(), "/v1/chat/completions", streamBody)
			require.Error(t, reply.err, "the client must not take a part for the whole: %+v", reply)
			eventually(t, eventSoon, "recorded", func() bool { return g.total("a") == meter.Totals{ServerErrors: 1} })
		})
	}
}

// TestNT7FastStreamsAreNeverTruncated hammers short streams.
func TestNT7FastStreamsAreNeverTruncated(t *testing.T) {
	want := strings.Repeat("data: token\n\n", 20) + "data: [DONE]\n\n"
	a := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		sse(w)
		for range 20 {
			event(w, "token")
		}
		event(w, "[DONE]")
	})
	g := start(t, Config{}, chat(1, serves("a", a)))
	var wg sync.WaitGroup
	var broken atomic.Int32
	for range 16 {
		wg.Go(func() {
			for range 60 {
				if reply := g.post(t.Context(), "/v1/chat/completions", streamBody); reply.err != nil || reply.body != want {
					broken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.Zero(t, broken.Load())
	eventually(t, eventSoon, "recorded", func() bool { return g.total("a") == meter.Totals{OK: 960} })
}
