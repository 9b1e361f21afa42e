package forge_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/gitea"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/github"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/gitlab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, forgetest.IdleConnections()...) }

func secret() ([]byte, error) { return []byte("s3cret"), nil }

var hooks = map[string]forge.Hook{"github": github.Hook(secret), "gitlab": gitlab.Hook(secret), "gitea": gitea.Hook(secret)}

// hints collects what a receiver was told.
type hints struct {
	mu  sync.Mutex
	all []forge.Delivery
}

func (h *hints) hint(_ string, d forge.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
}

func (h *hints) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

func opened(d forgetest.Dialect, id string) *http.Request {
	return forgetest.Webhook(d, []byte("s3cret"), "/hooks/"+string(d), id, "opened", "acme/app", forge.PullRequest{Number: 7})
}

func post(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// G1: one delivery five times at once is one hint, and the others are told so.
func TestTheSameDeliveryFiveTimesIsOneHint(t *testing.T) {
	for _, d := range []forgetest.Dialect{forgetest.GitHub, forgetest.GitLab, forgetest.Gitea} {
		t.Run(string(d), func(t *testing.T) {
			var got hints
			h := forge.Receive(hooks, got.hint, forge.ReceiveLimits{})
			var wg sync.WaitGroup
			var mu sync.Mutex
			answers := map[string]int{}
			for range 5 {
				wg.Go(func() {
					rec := post(h, opened(d, "delivery-1"))
					mu.Lock()
					defer mu.Unlock()
					assert.Equal(t, http.StatusOK, rec.Code)
					answers[strings.TrimSpace(rec.Body.String())]++
				})
			}
			wg.Wait()
			assert.Equal(t, map[string]int{"accepted": 1, "coalesced": 4}, answers)
			require.Equal(t, 1, got.count())
			assert.Equal(t, forge.Delivery{ID: "delivery-1", Kind: forge.KindPullRequest, Repository: "acme/app", PullRequest: 7}, got.all[0])
			assert.Equal(t, "accepted\n", post(h, opened(d, "delivery-2")).Body.String())
		})
	}
}

func TestADeliveryWithoutAnIDIsKnownByItsBody(t *testing.T) {
	var got hints
	h := forge.Receive(hooks, got.hint, forge.ReceiveLimits{})
	for range 2 {
		r := opened(forgetest.GitHub, "")
		post(h, r)
	}
	assert.Equal(t, 1, got.count())
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestWhatCostsNothingIsRefusedBeforeTheBodyIsRead(t *testing.T) {
	var got hints
	h := forge.Receive(hooks, got.hint, forge.ReceiveLimits{Burst: 4, Rate: 0.001})
	request := func(method, path string, length int64) *http.Request {
		r := httptest.NewRequest(method, path, unread{t})
		r.ContentLength = length
		return r
	}
	assert.Equal(t, http.StatusMethodNotAllowed, post(h, request(http.MethodGet, "/hooks/github", 2)).Code)
	assert.Equal(t, http.StatusNotFound, post(h, request(http.MethodPost, "/hooks/nobody", 2)).Code)
	for range 4 {
		assert.Equal(t, http.StatusRequestEntityTooLarge, post(h, request(http.MethodPost, "/hooks/github", 1<<30)).Code)
	}
	limited := post(h, request(http.MethodPost, "/hooks/github", 2))
	assert.Equal(t, http.StatusTooManyRequests, limited.Code, "the rate of one source")
	assert.NotEmpty(t, limited.Header().Get("Retry-After"))
	other := opened(forgetest.GitHub, "1")
	other.RemoteAddr = "[2001:db8:1:2::5]:1234"
	assert.Equal(t, http.StatusOK, post(h, other).Code, "another source has its own")
	assert.Equal(t, 1, got.count())
}

func TestAnIPv6HostHasOneRateForAllItsAddresses(t *testing.T) {
	h := forge.Receive(hooks, func(string, forge.Delivery) {}, forge.ReceiveLimits{Burst: 1, Rate: 0.001})
	codes := map[int]int{}
	for n := range 5 {
		r := opened(forgetest.GitHub, fmt.Sprint(n))
		r.RemoteAddr = fmt.Sprintf("[2001:db8:1:2::%x]:1234", n)
		codes[post(h, r).Code]++
	}
	assert.Equal(t, map[int]int{http.StatusOK: 1, http.StatusTooManyRequests: 4}, codes)
}

// G3: whatever strangers send, the answer is a refusal before any parsing.
func TestAWrongSignatureIsRefusedBeforeTheJSONIsLookedAt(t *testing.T) {
	var got hints
	h := forge.Receive(hooks, got.hint, forge.ReceiveLimits{Burst: 1000})
	bodies := map[string]string{
		"not JSON":       "{{{{",
		"deep nesting":   strings.Repeat("[", 1<<20-1),
		"deep object":    strings.Repeat(`{"a":`, 150_000),
		"a right object": `{"repository":{"full_name":"acme/app"}}`,
		"empty":          "",
	}
	for name, body := range bodies {
		for _, d := range []forgetest.Dialect{forgetest.GitHub, forgetest.GitLab, forgetest.Gitea} {
			for header, values := range map[string][]string{
				"X-Hub-Signature-256": {"", "sha256=", "sha256=zz", "sha256=" + strings.Repeat("0", 64), "sha1=" + strings.Repeat("0", 40)},
				"X-Gitlab-Token":      {"", "s3cre", "s3cret2"},
				"webhook-signature":   {"v1,AAAA", "v1,!!!", "v2,AAAA"},
			} {
				for _, value := range values {
					r := httptest.NewRequest(http.MethodPost, "/hooks/"+string(d), strings.NewReader(body))
					r.Header.Set(header, value)
					rec := post(h, r)
					require.Equal(t, http.StatusUnauthorized, rec.Code, "%s %s %s %q", name, d, header, value)
				}
			}
		}
	}
	assert.Zero(t, got.count())
}

func TestSignedNonsenseIsOnlyAnUnknownHint(t *testing.T) {
	for name, body := range map[string]string{
		"deep nesting": strings.Repeat("[", 1<<20-1),
		"not JSON":     "{{{{",
		"wrong types":  `{"repository":{"full_name":7},"ref":[],"pull_request":{"number":"x"},"issue":"no","object_kind":{}}`,
		"a list":       `[1,2]`,
		"null":         `null`,
	} {
		t.Run(name, func(t *testing.T) {
			var got hints
			h := forge.Receive(hooks, got.hint, forge.ReceiveLimits{})
			good := forgetest.Sign(forgetest.GitHub, []byte("s3cret"), "/hooks/github", "1", []byte(body))
			good.Header.Set("X-GitHub-Event", strings.Repeat("evil ", 100))
			require.Equal(t, http.StatusOK, post(h, good).Code)
			require.Equal(t, 1, got.count())
			assert.Equal(t, forge.Delivery{ID: "1", Kind: forge.KindUnknown}, got.all[0])
		})
	}
}

func TestASecretThatCannotBeReadIsOurFaultAndSaysNothing(t *testing.T) {
	broken := map[string]forge.Hook{"github": github.Hook(func() ([]byte, error) { return nil, errors.New("/etc/sluice/secret: permission denied") })}
	rec := post(forge.Receive(broken, nil, forge.ReceiveLimits{}), opened(forgetest.GitHub, "1"))
	assert.Equal(t, http.StatusInternalServerError, rec.Code)
	assert.NotContains(t, rec.Body.String(), "/etc")
	empty := map[string]forge.Hook{"github": github.Hook(func() ([]byte, error) { return nil, nil })}
	rec = post(forge.Receive(empty, nil, forge.ReceiveLimits{}), opened(forgetest.GitHub, "1"))
	assert.Equal(t, http.StatusUnauthorized, rec.Code, "an empty secret is no secret")
}

// endless is a body that goes on for so long. The transport may still read from it when
// the answer is there.
type endless struct{ left atomic.Int64 }

func endlessOf(size int64) *endless {
	var e endless
	e.left.Store(size)
	return &e
}

func (e *endless) Read(p []byte) (int, error) {
	left := e.left.Load()
	if left <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), left))
	e.left.Add(-int64(n))
	return n, nil
}

// G3: a gigabyte in chunks, from several at once, costs the bound and no more.
func TestAGigabyteInChunksLeavesTheMemoryFlat(t *testing.T) {
	server := httptest.NewServer(forge.Receive(hooks, func(string, forge.Delivery) {}, forge.ReceiveLimits{}))
	defer server.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			body := endlessOf(1 << 30)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/hooks/github", body)
			if !assert.NoError(t, err) {
				return
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err == nil { // the server may close before the client has read its answer
				assert.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
				_ = resp.Body.Close()
			}
			assert.Greater(t, body.left.Load(), int64(1<<30-64<<20), "most of it was never sent")
		})
	}
	wg.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20), "8 senders, 1 MiB each and what growing it costs")
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(8<<20))
}

// G3: who sends a byte now and then is cut off, and others are served meanwhile.
func TestASlowSenderIsCutOffAndHoldsNobodyUp(t *testing.T) {
	var got hints
	server := httptest.NewServer(forge.Receive(hooks, got.hint, forge.ReceiveLimits{ReadTime: 300 * time.Millisecond}))
	defer server.Close()
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()
	_, err = io.WriteString(slow, "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)

	signed := opened(forgetest.GitHub, "1")
	body, err := io.ReadAll(signed.Body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/hooks/github", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header = signed.Header
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, 1, got.count())

	require.NoError(t, slow.SetReadDeadline(time.Now().Add(10*time.Second)))
	answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
	require.NoError(t, err)
	_ = answer.Body.Close()
	assert.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
}

// blocked is a body that comes when it is let.
type blocked struct{ let chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	<-b.let
	return 0, io.EOF
}

func TestTooManyBodiesAtOnceAreTurnedAway(t *testing.T) {
	h := forge.Receive(hooks, func(string, forge.Delivery) {}, forge.ReceiveLimits{AtOnce: 2})
	body := blocked{make(chan struct{})}
	started := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			post(h, httptest.NewRequest(http.MethodPost, "/hooks/github", io.MultiReader(signal{started}, body)))
		})
		<-started
	}
	assert.Equal(t, http.StatusServiceUnavailable, post(h, opened(forgetest.GitHub, "1")).Code)
	close(body.let)
	wg.Wait()
	assert.Equal(t, http.StatusOK, post(h, opened(forgetest.GitHub, "1")).Code)
}

// signal tells that reading has begun.
type signal struct{ begun chan struct{} }

func (s signal) Read([]byte) (int, error) {
	s.begun <- struct{}{}
	return 0, io.EOF
}

func bodyOf(t testing.TB, r *http.Request) []byte {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return body
}
