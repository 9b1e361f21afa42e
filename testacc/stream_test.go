package testacc

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// wideEngine is fastEngine with room for many endpoints.
var wideEngine = strings.Replace(fastEngine, "capacity: 8", "capacity: 1000", 1)

// pair makes an endpoint with a source that serves and a stopped target.
func (e *testEngine) pair(t *testing.T, name string) (endpoint, source, target string) {
	t.Helper()
	ctx, one, none := t.Context(), 1, 0
	ep, err := e.Client.CreateEndpoint(ctx, api.CreateEndpoint{Name: name}, "")
	require.NoError(t, err)
	s, err := e.Client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "stable", Model: "demo/stable", Config: "cr_stable", Autoscaling: api.Autoscaling{MinReplicas: &one, MaxReplicas: &one}}, "")
	require.NoError(t, err)
	d, err := e.Client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "candidate", Model: "demo/candidate", Config: "cr_good", Autoscaling: api.Autoscaling{MinReplicas: &none, MaxReplicas: &none}}, "")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := e.Client.GetDeployment(ctx, ep.ID, s.ID)
		return err == nil && got.Status.ReadyReplicas == 1
	}, 20*time.Second, 20*time.Millisecond)
	_, err = e.Client.UpdateEndpoint(ctx, ep.ID, "", api.UpdateEndpoint{TrafficSplit: &[]api.TrafficWeight{{DeploymentID: s.ID, Weight: 1}}})
	require.NoError(t, err)
	return ep.ID, s.ID, d.ID
}

// withoutStreams is a way to an engine that hides that it streams events, as a hosted
// one has none.
func withoutStreams(t *testing.T, e *testEngine) string {
	t.Helper()
	up, err := url.Parse(e.APIURL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(up)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/whoami") {
			return nil
		}
		b, err := io.ReadAll(r.Body)
		b = bytes.ReplaceAll(b, []byte(`"event-stream",`), nil)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Del("Content-Length")
		return err
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

// Measured: how long after the engine's change of state a wait returns, with the event
// stream, directly and through a proxy, and without it. Each side is the mean of six
// rollouts that are paused at odd instants of a long soak.
func TestAWaitReturnsSoonerWithTheEventStreamThanByPolling(t *testing.T) {
	t.Parallel()
	e := startEngine(t, wideEngine)
	through := httptest.NewServer(func() http.Handler {
		up, err := url.Parse(e.APIURL)
		require.NoError(t, err)
		return httputil.NewSingleHostReverseProxy(up)
	}())
	t.Cleanup(through.Close)
	mean := map[string]time.Duration{}
	type ended struct {
		way  string
		took time.Duration
	}
	const each = 6
	results := make(chan ended)
	ways := map[string]string{"streamed": e.APIURL, "through a proxy": through.URL, "polled": withoutStreams(t, e)}
	for way, base := range ways {
		c, err := engineclient.New(engineclient.Config{BaseURL: base, APIKey: e.Key})
		require.NoError(t, err)
		for i := range each {
			ep, source, target := e.pair(t, strings.ReplaceAll(way, " ", "-")+string(rune('a'+i)))
			interval := api.Duration(time.Minute)
			r, err := e.Client.CreateRollout(t.Context(), ep, api.RolloutSpec{SourceDeploymentID: source, TargetDeploymentID: target, Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}, StepInterval: &interval}}, "")
			require.NoError(t, err)
			_, err = e.Client.StartRollout(t.Context(), ep, r.ID)
			require.NoError(t, err)
			e.reaches(t, ep, r.ID, "STABILIZING")
			paused := make(chan time.Time, 1)
			time.AfterFunc(4*time.Second+time.Duration(i)*150*time.Millisecond, func() {
				_, _ = e.Client.PauseRollout(t.Context(), ep, r.ID, api.Control{Reason: "measure"}) // a wait that does not end tells
				paused <- time.Now()
			})
			go func() {
				_, _ = c.Await(t.Context(), ep, r.ID, nil)
				results <- ended{way, time.Since(<-paused)}
			}()
		}
	}
	for range each * len(ways) {
		r := <-results
		mean[r.way] += r.took / each
	}
	t.Logf("measured: a wait returns %s after the change with events, %s through a proxy, %s by polling alone", mean["streamed"], mean["through a proxy"], mean["polled"])
	require.Greater(t, mean["polled"], 3*mean["streamed"])
	require.Greater(t, mean["polled"], 3*mean["through a proxy"])
}
