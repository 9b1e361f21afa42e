package reconciler

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An engine that does not know the key any more, or that something else answers for, is a
// pass that failed: the door says so.
func TestAnEngineThatShutsTheKeyOutIsAFailedPass(t *testing.T) {
	refuses := func(status int) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(`{"error":{"message":"no","type":"invalid_request_error"}}`))
		}
	}
	for name, door := range map[string]http.HandlerFunc{
		"401":       refuses(http.StatusUnauthorized),
		"403":       refuses(http.StatusForbidden),
		"a website": func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("<html>")) },
		"a gateway": func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no such page", http.StatusNotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newStage(t)
			w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
			w.begin()
			w.until("serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep })
			ready := func() int {
				rec := httptest.NewRecorder()
				w.r.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
				return rec.Code
			}
			require.Equal(t, http.StatusOK, ready())
			w.door, w.Client = door, w.client(w.key)
			w.begin()
			for range 3 {
				w.advance(time.Minute)
				require.Error(t, w.pass())
			}
			require.Equal(t, http.StatusServiceUnavailable, ready())
			require.Equal(t, ForEngine, w.stack("models", "prod").Waits[0].For)
		})
	}
}

// K: what has traffic is told in the plan and never asked of the engine to end.
func TestAnEndpointThatServesIsNeitherRenamedNorPruned(t *testing.T) {
	const more = `resource "sluice_endpoint" "more" { name = "more" }`
	for name, after := range map[string]string{"renamed": canaryHouse("other"), "pruned": ""} {
		t.Run(name, func(t *testing.T) {
			w := newStage(t)
			git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat"), "prod/more.tf": more})
			w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 100}
			w.begin()
			w.until("serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
			n := len(w.calls)
			git.push("main", name, map[string]string{"prod/main.tf": after, "prod/more.tf": more})
			w.passes(10*time.Minute, time.Minute)
			for _, c := range w.writes(n) {
				require.NotRegexp(t, `DELETE .*/endpoints/[^/]*$`, c.Method+" "+c.Path)
			}
			require.True(t, w.serves("chat", "stable", 2))
			require.Contains(t, w.show(), "it serves traffic (stable with 100 %)")
		})
	}
}

// Another project behind the same address reads as if everything had been deleted: a
// journal is about one project, and nothing is written to another.
func TestAnotherProjectBehindTheSameAddressIsLeftAlone(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep })
	door := w.door
	w.door = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		req.URL.Path = strings.ReplaceAll(req.URL.Path, "proj_b", "proj_a")
		rec := httptest.NewRecorder()
		door.ServeHTTP(rec, req)
		rw.WriteHeader(rec.Code)
		_, _ = rw.Write([]byte(strings.ReplaceAll(rec.Body.String(), "proj_a", "proj_b")))
	})
	w.Client = w.client(w.key)
	w.begin()
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	n := len(w.calls)
	for range 5 {
		w.advance(time.Minute)
		require.ErrorContains(t, w.pass(), "the journal is about project proj_a, and the engine answers for project proj_b")
	}
	require.Empty(t, w.writes(n))
	require.Equal(t, ForEngine, w.stack("models", "prod").Waits[0].For)
	w.door, w.Client = door, w.client(w.key)
	w.begin()
	require.NoError(t, w.pass())
	require.Len(t, w.all("chat"), 1, "with the right key it goes on")
}
