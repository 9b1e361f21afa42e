package probe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryAnswerIsTallied(t *testing.T) {
	var n atomic.Int64
	keys := make(chan string, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string `json:"model"`
			Key   string `json:"prompt_cache_key"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		keys <- body.Key
		switch n.Add(1) % 4 {
		case 0:
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "upstream \x1b[31mgone")
		case 1: // an answer that is cut is none
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		default:
			w.Header().Set("X-Sluice-Deployment", "dep_a")
			_, _ = io.WriteString(w, "{}")
		}
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for n.Load() < 40 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	var log bytes.Buffer
	tally, err := probe.Run(ctx, probe.Config{BaseURL: srv.URL + "/v1/", Model: "demo/chat", RPS: 500, Log: &log})
	require.NoError(t, err)
	require.EqualValues(t, n.Load(), tally.Requests, "what was sent is counted, also when it ends")
	require.Equal(t, tally.ByStatus[200], tally.ByDeployment["dep_a"])
	require.Equal(t, tally.Requests-tally.ByStatus[200], tally.Non200())
	require.Positive(t, tally.ByStatus[0])
	require.Positive(t, tally.ByStatus[502])
	require.NotNil(t, tally.FirstBad)
	require.Equal(t, tally.Requests, bytes.Count(log.Bytes(), []byte("\n")))
	require.Contains(t, tally.String(), "non-200")
	seen := map[string]bool{}
	for len(keys) > 0 {
		k := <-keys
		require.False(t, seen[k], "each request has a key of its own")
		seen[k] = true
	}
}

func TestARateThatCannotBeMeantIsRefused(t *testing.T) {
	for _, rps := range []float64{0, -1, 1e6} {
		_, err := probe.Run(t.Context(), probe.Config{RPS: rps})
		require.Error(t, err)
	}
}
