package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sized makes a body of n bytes.
func sized(n int) string {
	return `{"model":"acme/chat","prompt":"` + strings.Repeat("x", n-len(`{"model":"acme/chat","prompt":""}`)) + `"}`
}

// Twelve clients of 31 MB each took the process to 800 MB.
func TestBodiesBeyondTheBudgetAreRefusedUntilOthersAreAnswered(t *testing.T) {
	const one = 2 << 20
	free, arrived := make(chan struct{}), make(chan struct{}, 13)
	release := sync.OnceFunc(func() { close(free) })
	replica := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-free
		_, _ = io.WriteString(w, "{}")
	})
	t.Cleanup(release)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	g := start(t, Config{MaxBody: 4 << 20, MaxBuffered: 3*one + one/2}, chat(1, serves("a", replica)))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			a := g.post(t.Context(), "/v1/completions", sized(one))
			assert.NoError(t, a.err)
			assert.Equal(t, http.StatusOK, a.status)
		})
	}
	for range 3 {
		<-arrived
	}
	for range 9 {
		a := g.post(ctx, "/v1/completions", sized(one))
		require.NoError(t, a.err)
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Equal(t, "overloaded", a.code(t))
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.LessOrEqual(t, g.budget.held.Load(), g.config.MaxBuffered)
	}
	// Without a length in front: refused when it has grown too large.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/completions", &unsized{strings.NewReader(sized(one))})
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, do(r).status)
	release()
	wg.Wait()
	assert.Equal(t, http.StatusOK, g.post(t.Context(), "/v1/completions", sized(one)).status)
	eventually(t, eventSoon, "all is given back", func() bool { return g.budget.held.Load() == 0 })
}

// A body is let go when its answer begins, not when it ends.
func TestAStreamHoldsNoBody(t *testing.T) {
	address, arrived, free := holding(t)
	g := start(t, Config{}, chat(1, serves("a", address)))
	response := g.open(t.Context(), t) //nolint:bodyclose // closed by open
	<-arrived
	assert.Zero(t, g.budget.held.Load())
	close(free)
	_, err := io.ReadAll(response.Body)
	require.NoError(t, err)
}

func TestEveryRefusalGivesItsBudgetBack(t *testing.T) {
	g := start(t, Config{MaxBody: 100 << 10}, chat(1, serves("a", refused(t))))
	for _, body := range []string{"", "{", `{"model":"acme/missing"}`, sized(2000), sized(80 << 10), sized(200 << 10)} {
		require.NoError(t, g.post(t.Context(), "/v1/completions", body).err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/completions", &unsized{strings.NewReader(body)})
		require.NoError(t, err)
		require.NoError(t, do(r).err)
	}
	g.say(t, chunked("zz\r\n"))
	eventually(t, eventSoon, "all is given back", func() bool { return g.budget.held.Load() == 0 })
}

func TestABufferIsNoLargerThanItsBodyNeeds(t *testing.T) {
	g := New(Config{MaxBody: 8 << 20})
	for _, n := range []int{100, 5000, 64 << 10, 1 << 20, 1<<20 + 1, 5 << 20, 8 << 20} {
		for _, length := range []int{n, -1} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/completions", strings.NewReader(sized(n)))
			r.ContentLength = int64(length)
			b, err := g.readBody(httptest.NewRecorder(), r)
			require.NoError(t, err)
			require.Len(t, b.bytes, n)
			assert.EqualValues(t, cap(b.bytes), b.held)
			most := max(n+1, keptBody)
			if length < 0 {
				most = max(min(2*n, 8<<20+1), keptBody)
			}
			assert.LessOrEqual(t, cap(b.bytes), most)
			b.free()
		}
	}
	assert.Zero(t, g.budget.held.Load())
}

func TestABufferAlwaysGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 64<<20).Draw(t, "limit")
		length := rapid.Int64Range(-1, limit).Draw(t, "length")
		need := length
		if length < 0 {
			need = limit
		}
		for size := int64(rapid.IntRange(1, 64<<10).Draw(t, "pooled")); size <= need; {
			next := int64(nextSize(int(size), length, limit))
			if next <= size || next > need+1 {
				t.Fatalf("%d after %d of %d", next, size, need)
			}
			size = next
		}
	})
}

// send opens a connection and writes the beginning of a request to it.
func (g gate) send(t *testing.T, text string) net.Conn {
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

// status reads an answer's status.
func status(t *testing.T, c net.Conn) int {
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func TestALengthThatIsOnlyClaimedHoldsLittle(t *testing.T) {
	g := start(t, Config{}, chat(1, serves("a", upstream(t, echo))))
	for range 8 {
		g.send(t, post11(fmt.Sprintf("Content-Length: %d\r\n", 31<<20), `{"model":`))
	}
	eventually(t, eventSoon, "all are read", func() bool { return g.budget.held.Load() >= 8<<20 })
	assert.LessOrEqual(t, g.budget.held.Load(), int64(8*(believedLength+1)))
}

// A byte every 29 s held a buffer for as long as its client liked.
func TestAClientThatTricklesItsBodyIsLetGo(t *testing.T) {
	const timeout = 300 * time.Millisecond
	g := start(t, Config{BodyTimeout: timeout}, chat(1, serves("a", upstream(t, echo))))
	c := g.send(t, post11("Content-Length: 1000\r\n", ""))
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 1000 {
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
			time.Sleep(timeout / 10) // never silent for as long as the timeout
		}
	}()
	assert.Equal(t, http.StatusRequestTimeout, status(t, c))
	require.NoError(t, c.Close())
	<-over
	eventually(t, eventSoon, "the buffer is given back", func() bool { return g.budget.held.Load() == 0 })
}

func TestALargeBodyThatKeepsItsPaceMayTakeLonger(t *testing.T) {
	const timeout, pieces = 200 * time.Millisecond, 6
	g := start(t, Config{BodyTimeout: timeout}, chat(1, serves("a", upstream(t, echo))))
	body := sized(pieces * slowestBody)
	c := g.send(t, post11(fmt.Sprintf("Content-Length: %d\r\n", len(body)), ""))
	begun := time.Now()
	for i := range pieces {
		_, err := io.WriteString(c, body[i*slowestBody:(i+1)*slowestBody])
		require.NoError(t, err)
		time.Sleep(timeout / 2) // the client's own pace
	}
	assert.Equal(t, http.StatusOK, status(t, c))
	assert.Greater(t, time.Since(begun), 2*timeout)
}
