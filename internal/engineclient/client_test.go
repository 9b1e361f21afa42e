package engineclient

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(Config{BaseURL: s.URL, APIKey: "k", Project: "proj_1", UserAgent: "test/1", Retries: Retries{First: time.Millisecond, Most: 2 * time.Millisecond}})
	require.NoError(t, err)
	return c
}

func answer(t *testing.T, w http.ResponseWriter, status int, v any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	require.NoError(t, json.NewEncoder(w).Encode(v))
}

func refuse(t *testing.T, w http.ResponseWriter, status int, code, message string) {
	t.Helper()
	answer(t, w, status, api.ErrorBody{Message: message, Error: api.ErrorDetail{Message: message, Type: "invalid_request_error", Code: &code}})
}

func TestBaseURLMayHaveAVersionOrASlash(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:1":                    "http://h:1",
		"http://h:1/":                   "http://h:1",
		"http://h:1/v2":                 "http://h:1",
		"http://h:1/v2/":                "http://h:1",
		"https://api.together.ai/v1":    "https://api.together.ai",
		"https://proxy.example/llm/v2/": "https://proxy.example/llm",
	} {
		got, err := rootOf(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{"", "h:1", "ftp://h", "http://", "://"} {
		_, err := rootOf(bad)
		require.Error(t, err, bad)
	}
}

func TestEveryCallCarriesKeyAgentAndJSON(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "Bearer k", r.Header.Get("Authorization"))
		require.Equal(t, "test/1", r.Header.Get("User-Agent"))
		require.Equal(t, "/v2/projects/proj_1/endpoints", r.URL.Path)
		require.Equal(t, "digest-1", r.Header.Get("Idempotency-Key"))
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		answer(t, w, 201, api.Endpoint{ID: "ep_1"})
	})
	e, err := c.CreateEndpoint(context.Background(), api.CreateEndpoint{Name: "chat"}, "digest-1")
	require.NoError(t, err)
	require.Equal(t, "ep_1", e.ID)
}

func TestStartSendsNoBody(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.Header.Get("Content-Type"))
		require.Zero(t, r.ContentLength)
		answer(t, w, 200, api.Rollout{ID: "rol_1", State: StateRunning})
	})
	_, err := c.StartRollout(context.Background(), "ep_1", "rol_1")
	require.NoError(t, err)
}

func TestIDsAreEscapedAndEmptyOnesRefused(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v2/projects/proj_1/endpoints/a%2Fb", r.URL.EscapedPath())
		answer(t, w, 200, api.Endpoint{ID: "a/b"})
	})
	_, err := c.GetEndpoint(context.Background(), "a/b")
	require.NoError(t, err)
	for _, bad := range []string{"", ".", ".."} {
		require.ErrorContains(t, c.DeleteEndpoint(context.Background(), bad, ""), "is not an id")
	}
}

func TestProjectComesFromTheKeyOnce(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/whoami" {
			asked.Add(1)
			answer(t, w, 200, api.WhoAmI{ProjectID: "proj_key"})
			return
		}
		require.Equal(t, "/v2/projects/proj_key/endpoints/ep_1", r.URL.Path)
		answer(t, w, 200, api.Endpoint{ID: "ep_1"})
	}))
	t.Cleanup(s.Close)
	c, err := New(Config{BaseURL: s.URL, APIKey: "k"})
	require.NoError(t, err)
	for range 3 {
		_, err := c.GetEndpoint(context.Background(), "ep_1")
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, asked.Load())
}

func TestRefusalsAreTypedInBothForms(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "both"):
			refuse(t, w, 400, api.CodeInvalidArgument, "no such metric")
		case strings.HasSuffix(r.URL.Path, "top"):
			answer(t, w, 403, map[string]string{"message": "not yours"})
		default:
			w.WriteHeader(404)
			_, _ = w.Write([]byte("<html>nginx</html>"))
		}
	})
	_, err := c.GetEndpoint(context.Background(), "both")
	var e *api.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, api.Error{Status: 400, Code: api.CodeInvalidArgument, Type: "invalid_request_error", Message: "no such metric"}, *e)
	_, err = c.GetEndpoint(context.Background(), "top")
	require.EqualError(t, err, "not yours")
	_, err = c.GetEndpoint(context.Background(), "html")
	require.ErrorContains(t, err, "<html>nginx</html>")
	require.False(t, IsNotFound(err), "a proxy's 404 page says nothing about the endpoint")
}

func TestPassingFailuresAreTriedAgain(t *testing.T) {
	for _, status := range []int{408, 409, 429, 502, 503, 504} {
		var calls atomic.Int32
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) < 3 {
				refuse(t, w, status, api.CodeUnavailable, "later")
				return
			}
			answer(t, w, 200, api.Endpoint{ID: "ep_1"})
		})
		_, err := c.GetEndpoint(context.Background(), "ep_1")
		require.NoError(t, err, status)
		require.EqualValues(t, 3, calls.Load(), status)
	}
}

func TestDeterministicRefusalsAreNotTriedAgain(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 409, 500} {
		var calls atomic.Int32
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("X-Should-Retry", "false")
			refuse(t, w, status, api.CodeLocked, "held by rol_9")
		})
		_, err := c.GetEndpoint(context.Background(), "ep_1")
		require.ErrorContains(t, err, "held by rol_9")
		require.EqualValues(t, 1, calls.Load(), status)
	}
}

func TestRetryAfterIsHonouredAndBounded(t *testing.T) {
	h := http.Header{}
	h.Set("Retry-After", "7")
	d, ok := retryAfter(h)
	require.True(t, ok)
	require.Equal(t, 7*time.Second, d)
	h.Set("Retry-After-Ms", "250")
	d, _ = retryAfter(h)
	require.Equal(t, 250*time.Millisecond, d)
	r := retrying{how: Retries{First: time.Second, Most: 10 * time.Second}.withDefaults()}
	h = http.Header{"Retry-After": {"86000"}}
	require.Equal(t, time.Minute, r.wait(1, Response{Header: h}))
	for try := 1; try < 80; try++ {
		require.LessOrEqual(t, r.wait(try, Response{Header: http.Header{}}), 10*time.Second+1)
	}
}

func TestHangingEngineIsUnreachableNotForever(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hang) })
	c, err := New(Config{BaseURL: s.URL, APIKey: "k", Project: "p", AttemptTimeout: 20 * time.Millisecond, Retries: Retries{Attempts: 2, First: time.Millisecond}})
	require.NoError(t, err)
	_, err = c.GetEndpoint(context.Background(), "ep_1")
	require.True(t, IsUnreachable(err), err)
	require.ErrorContains(t, err, "in 2 attempt(s)")
}

func TestCanceledContextEndsACallAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
	})
	began := time.Now()
	_, err := c.GetEndpoint(ctx, "ep_1")
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), 5*time.Second)
}

// lossy loses the answer of every POST that the engine has accepted.
type lossy struct{ next http.RoundTripper }

func (l lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil || r.Method != http.MethodPost {
		return resp, err
	}
	_ = resp.Body.Close()
	return nil, errors.New("connection reset by peer")
}

func TestLostAnswerOfACancelIsReadNotRepeated(t *testing.T) {
	var posts atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			answer(t, w, 200, api.Rollout{ID: "rol_1", State: StateCancelling})
			return
		}
		answer(t, w, 200, api.Rollout{ID: "rol_1", State: StateCanceled})
	}))
	t.Cleanup(s.Close)
	c, err := New(Config{BaseURL: s.URL, APIKey: "k", Project: "p", Transport: lossy{http.DefaultTransport}, Retries: Retries{First: time.Millisecond}})
	require.NoError(t, err)
	r, err := c.CancelRollout(context.Background(), "ep_1", "rol_1", api.Control{Reason: "r"})
	require.NoError(t, err)
	require.Equal(t, StateCanceled, r.State)
	require.EqualValues(t, 1, posts.Load())
	_, err = c.PromoteRollout(context.Background(), "ep_1", "rol_1", api.Control{})
	require.True(t, IsUnreachable(err), "whether a promote arrived cannot be read, so it is told as lost")
	require.EqualValues(t, 2, posts.Load())
}

func TestControlAnsweredWith503IsReadBeforeItIsSentAgain(t *testing.T) {
	for carriedOut, wantPosts := range map[bool]int32{true: 1, false: 2} {
		var posts atomic.Int32
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet && carriedOut:
				answer(t, w, 200, api.Rollout{ID: "rol_1", State: StatePausing})
			case r.Method == http.MethodGet:
				answer(t, w, 200, api.Rollout{ID: "rol_1", State: StateRunning})
			case posts.Add(1) == 1:
				refuse(t, w, 503, api.CodeUnavailable, "did not answer in time")
			default:
				answer(t, w, 200, api.Rollout{ID: "rol_1", State: StatePausing})
			}
		})
		r, err := c.PauseRollout(context.Background(), "ep_1", "rol_1", api.Control{})
		require.NoError(t, err)
		require.Equal(t, StatePausing, r.State)
		require.Equal(t, wantPosts, posts.Load())
	}
}

func TestNothingListensIsUnreachable(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c, err := New(Config{BaseURL: "http://" + l.Addr().String(), APIKey: "k", Project: "p", Retries: Retries{Attempts: 2, First: time.Millisecond}})
	require.NoError(t, err)
	_, err = c.CancelRollout(context.Background(), "ep_1", "rol_1", api.Control{})
	var u *Unreachable
	require.ErrorAs(t, err, &u)
	require.Equal(t, 2, u.Attempts, "a connection that was never made may be tried again even for a control")
}

func TestPagesAreWalkedToTheEnd(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "rol_1", r.URL.Query().Get("subjectId"))
		require.Equal(t, "rollout.created,rollout.started", r.URL.Query().Get("types"))
		next := "c2"
		switch r.URL.Query().Get("after") {
		case "":
			answer(t, w, 200, api.Page[api.Event]{Object: "list", Data: []api.Event{{ID: "1"}, {ID: "2"}}, NextCursor: &next})
		case "c2":
			answer(t, w, 200, api.Page[api.Event]{Object: "list", Data: []api.Event{{ID: "3"}}})
		default:
			t.Errorf("unexpected cursor %s", r.URL)
		}
	})
	got, err := Collect(c.Events(context.Background(), "ep_1", EventQuery{SubjectID: "rol_1", Types: []string{"rollout.created", "rollout.started"}}))
	require.NoError(t, err)
	require.Len(t, got, 3)
}

func TestListEndsWithItsError(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(t, w, 401, api.CodeUnauthenticated, "no such key")
	})
	_, err := Collect(c.Endpoints(context.Background(), ListOptions{}))
	require.EqualError(t, err, "no such key")
}

func TestActiveRolloutIncludesPendingAndPausedOnes(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.URL.Query().Get("filter"))
		answer(t, w, 200, api.Page[api.Rollout]{Data: []api.Rollout{{ID: "rol_1", State: StateCompleted}, {ID: "rol_2", State: StateSystemPaused}}})
	})
	r, found, err := c.ActiveRollout(context.Background(), "ep_1")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "rol_2", r.ID)
}

func TestWeightIsMergedAndAStaleEtagTriedAgain(t *testing.T) {
	var patches atomic.Int32
	etag, split := "1", []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 1}}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(t, w, 200, api.Endpoint{ID: "ep_1", ETag: etag, TrafficSplit: split})
			return
		}
		var body api.UpdateEndpoint
		require.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		require.Equal(t, "trafficSplit", r.URL.Query().Get("updateMask"))
		if patches.Add(1) == 1 {
			etag = "2"
			split = append(split, api.TrafficWeight{DeploymentID: "dep_b", Weight: 2})
			w.Header().Set("X-Should-Retry", "false")
			refuse(t, w, 409, api.CodeAborted, "stale")
			return
		}
		require.Equal(t, "2", body.ETag)
		answer(t, w, 200, api.Endpoint{ID: "ep_1", TrafficSplit: *body.TrafficSplit})
	})
	e, err := c.SetWeight(context.Background(), "ep_1", "dep_c", 0.5)
	require.NoError(t, err)
	require.Equal(t, []api.TrafficWeight{{DeploymentID: "dep_a", Weight: 1}, {DeploymentID: "dep_b", Weight: 2}, {DeploymentID: "dep_c", Weight: 0.5}}, e.TrafficSplit)
}

func TestAnswerThatIsNotJSONIsTold(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	_, err := c.GetEndpoint(context.Background(), "ep_1")
	require.ErrorContains(t, err, "not the API's JSON")
	require.ErrorContains(t, err, "hello")
}

func TestQueriesLeaveOutWhatIsEmpty(t *testing.T) {
	require.Equal(t, url.Values{}, EventQuery{}.values())
	require.Equal(t, url.Values{}, ListOptions{}.query())
}
