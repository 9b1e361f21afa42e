package provider

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A thing is gone only while its project is there: a project that is not found says
// nothing about what is in it.
func TestNotFoundInAProjectThatIsNotFoundIsNotGone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/proj_1/endpoints") {
			_, _ = w.Write([]byte(`{"data":[]}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"not found","error":{"message":"not found","type":"not_found_error","code":"NOT_FOUND"}}`))
	}))
	t.Cleanup(s.Close)
	for project, want := range map[string]bool{"proj_1": true, "nope": false} {
		c, err := engineclient.New(engineclient.Config{BaseURL: s.URL, APIKey: "k", Project: project})
		require.NoError(t, err)
		_, gone, err := readTwice(t.Context(), c, func() (api.Endpoint, error) { return c.GetEndpoint(t.Context(), "ep_1") })
		require.Error(t, err)
		require.Equal(t, want, gone, project)
	}
}
