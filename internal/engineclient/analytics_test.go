package engineclient

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

func TestAnalyticsAskForAStretchOfTime(t *testing.T) {
	from := time.Date(2026, 9, 16, 20, 0, 0, 0, time.FixedZone("", 7200))
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v2/projects/proj_1/endpoints/ep_1/analytics", r.URL.Path)
		require.Equal(t, "2026-09-16T18:00:00Z", r.URL.Query().Get("startTime"))
		require.Equal(t, "2026-09-16T19:00:00Z", r.URL.Query().Get("endTime"))
		answer(t, w, http.StatusOK, api.Analytics{EndpointID: "ep_1"})
	})
	got, err := c.Analytics(t.Context(), "ep_1", from, from.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "ep_1", got.EndpointID)
}
