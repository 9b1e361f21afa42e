package engineclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// engineOf answers whoami as the key of proj_1 and lists that project alone.
func engineOf(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/whoami", func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, 200, api.WhoAmI{ProjectID: "proj_1", ProjectSlug: "acme"})
	})
	mux.HandleFunc("GET /v2/projects/proj_1/endpoints", func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, 200, api.Page[api.Endpoint]{})
	})
	mux.HandleFunc("GET /page/v1/whoami", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) })
	mux.HandleFunc("GET /gateway/v1/whoami", func(w http.ResponseWriter, _ *http.Request) {
		refuse(t, w, 404, "unknown_url", "Unknown path /v1/whoami")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 404, api.CodeNotFound, "not found") })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestVerifyNamesWhatIsWrongWithAnAddressOrProject(t *testing.T) {
	s := engineOf(t)
	for name, c := range map[string]struct{ path, project, says string }{
		"right":             {"", "", ""},
		"right project":     {"/v2", "proj_1", ""},
		"wrong project":     {"", "nope", "The key belongs to project proj_1 (acme)"},
		"path of a version": {"/v3", "", "The address has the path /v3; the API is at " + s.URL},
		"gateway":           {"/gateway", "", "looks like a gateway"},
		"web page":          {"/page", "", "is not an engine's API"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(Config{BaseURL: s.URL + c.path, APIKey: "k", Project: c.project, Retries: Retries{Attempts: 1}})
			require.NoError(t, err)
			err = client.Verify(context.Background())
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			var wrong *WrongAddress
			require.ErrorAs(t, err, &wrong)
			require.Contains(t, err.Error(), c.says)
		})
	}
}

// A refused key and an engine that is down are no wrong address.
func TestVerifyLeavesOtherErrorsAlone(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 401, api.CodeUnauthenticated, "no") })
	var wrong *WrongAddress
	err := c.Verify(context.Background())
	require.Error(t, err)
	require.NotErrorAs(t, err, &wrong)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err = New(Config{BaseURL: gone.URL, APIKey: "k", Retries: Retries{Attempts: 2, First: time.Millisecond}})
	require.NoError(t, err)
	err = c.Verify(context.Background())
	require.True(t, IsUnreachable(err), err)
	require.True(t, strings.Contains(err.Error(), "2 attempt"), err)
}
