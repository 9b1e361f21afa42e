package engineclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOwnerIsClaimedReleasedAndTaken(t *testing.T) {
	var bodies []string
	taken := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery+" "+string(text))
		if taken {
			w.Header().Set("x-should-retry", "false")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"message":"endpoint ep_1 is owned by \"other\"","type":"conflict_error","code":"LOCKED"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"ep_1","sluice":{"owner":{"id":"me","at":"2026-03-01T12:00:00Z"}}}`)
	}))
	defer s.Close()
	c, err := New(Config{BaseURL: s.URL, APIKey: "k", Project: "p"})
	require.NoError(t, err)
	ep, err := c.ClaimEndpoint(t.Context(), "ep_1", "me")
	require.NoError(t, err)
	require.Equal(t, "me", ep.Sluice.Owner.ID)
	require.Equal(t, 2026, ep.Sluice.Owner.At.Year())
	_, err = c.ReleaseEndpoint(t.Context(), "ep_1", "me")
	require.NoError(t, err)
	_, err = c.TakeEndpoint(t.Context(), "ep_1", "me", "gone")
	require.NoError(t, err)
	path, _, _ := strings.Cut(bodies[0], " {")
	require.Equal(t, []string{
		path + ` {"sluice":{"owner":{"claim":"me"}}}`, path + ` {"sluice":{"owner":{"release":"me"}}}`, path + ` {"sluice":{"owner":{"claim":"me","force":{"reason":"gone"}}}}`,
	}, bodies)
	require.Contains(t, path, "/endpoints/ep_1")
	taken = true
	_, err = c.ClaimEndpoint(t.Context(), "ep_1", "me")
	require.True(t, IsConflict(err))
	require.False(t, IsStale(err))
	require.ErrorContains(t, err, "other")
	require.Len(t, bodies, 4, "a conflict is not tried again")
}
