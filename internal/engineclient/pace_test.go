package engineclient

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// All callers of a client share one pace: a second's worth at once, then evenly.
func TestRequestsAreHeldBackToAPaceThatAllCallersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		began := time.Now()
		p := newPaced(doFunc(func(context.Context, Request) (Response, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(began))
			return Response{Status: 200}, nil
		}), 4)
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() { _, _ = p.Do(t.Context(), Request{}) })
		}
		all.Wait()
		require.Len(t, at, 12)
		require.Equal(t, time.Duration(0), at[3], "a second's worth leaves at once")
		require.Equal(t, 250*time.Millisecond, at[4])
		require.Equal(t, 2*time.Second, at[11])
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 5 {
			_, err := p.Do(ctx, Request{})
			require.ErrorIs(t, err, context.Canceled, "a wait for a place ends with its context")
		}
	})
}

type doFunc func(context.Context, Request) (Response, error)

func (f doFunc) Do(ctx context.Context, req Request) (Response, error) { return f(ctx, req) }

func TestRetryAfterIsNeverCutShortAndSpreadOut(t *testing.T) {
	r := retrying{how: Retries{Most: 10 * time.Second}.withDefaults()}
	seen := map[time.Duration]bool{}
	for range 200 {
		d := r.wait(1, Response{Header: http.Header{"Retry-After": {"4"}}})
		require.GreaterOrEqual(t, d, 4*time.Second)
		require.LessOrEqual(t, d, 5*time.Second)
		seen[d] = true
	}
	require.Greater(t, len(seen), 100, "callers that were told the same do not come back together")
}

func TestKeyThatAnEngineEchoesIsInNoError(t *testing.T) {
	const key = "sk-this-is-a-secret"
	for name, answer := range map[string]http.HandlerFunc{
		"in a refusal": func(w http.ResponseWriter, r *http.Request) {
			refuse(t, w, 401, "UNAUTHENTICATED", "no such key: "+r.Header.Get("Authorization"))
		},
		"in a page": func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, "<html>"+r.Header.Get("Authorization"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			c, err := New(Config{BaseURL: server.URL, APIKey: key, Project: "p", Retries: Retries{Attempts: 1}})
			require.NoError(t, err)
			_, err = c.GetEndpoint(t.Context(), "ep_1")
			require.Error(t, err)
			require.NotContains(t, err.Error(), key)
			require.Contains(t, err.Error(), "[the API key]")
		})
	}
}
