package server_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
)

// thin is a meter that saw two requests a second, all of them at one deployment.
type thin struct {
	noTraffic
	busy string
}

func (m thin) Rate(deployment string, _ time.Duration) engine.Rate {
	if deployment != m.busy {
		return engine.Rate{}
	}
	return engine.Rate{Requests: 120, PerSecond: 2}
}

// A preview tells each side's traffic, what a gate would lack of it, and how long the
// cold starts make the way.
func TestAPreviewTellsWhatTheGateWouldLack(t *testing.T) {
	d := newDoor(t)
	ep, source, target := d.endpoint("chat")
	spec := `{"sourceDeploymentId":"` + source + `","targetDeploymentId":"` + target + `","canary":{"steps":[{"traffic":5},{"traffic":100}]},
		"metrics":[{"name":"router_latency","stat":"METRIC_STAT_TYPE_PERCENTILE","percentile":95,"window":"60s","regressionCheck":{"direction":"REGRESSION_DIRECTION_HIGHER_IS_WORSE","maxRegressionPercent":25}}]}`
	path := base + "/" + ep + "/rollouts/preview-defaults"
	idle := d.call("POST", path, spec).ok()
	require.Contains(t, idle.Raw, `"code":"GATE_NEEDS_TRAFFIC"`)
	require.NotContains(t, idle.Raw, "GATE_SAMPLES_SHORT")

	d.engine.Meter = thin{busy: source}
	p := d.call("POST", path, spec).ok()
	require.Contains(t, p.Raw, `{"code":"GATE_SAMPLES_SHORT","message":"at 5 % of 2 requests a second router_latency p95 has its 20 samples in 3m20s, your window is 1m: step 1 would park METRICS_UNAVAILABLE; a window of 5m or a share of 24 % at step 1 would do"}`)
	require.NotContains(t, p.Raw, "GATE_NEEDS_TRAFFIC")
	extra, ok := p.json()["sluice"].(map[string]any)
	require.True(t, ok)
	require.InDelta(t, 2, extra["sourceRequestsPerSecond"], 0)
	require.InDelta(t, 0, extra["targetRequestsPerSecond"], 0)
	require.Equal(t, "600s", extra["coldStart"])
	least, err := time.ParseDuration(extra["leastTime"].(string))
	require.NoError(t, err)
	total, err := time.ParseDuration(extra["timeWithColdStarts"].(string))
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, total-least, "one step starts a replica, and its target runs by the second")
}

// young is a meter whose traffic began twenty seconds ago: four requests a second.
type young struct {
	noTraffic
	busy string
	now  func() time.Time
}

func (m young) Rate(deployment string, window time.Duration) engine.Rate {
	if deployment != m.busy {
		return engine.Rate{}
	}
	return engine.Rate{Requests: 80, PerSecond: 80 / window.Seconds(), Since: m.now().Add(-20 * time.Second)}
}

// A plan that comes seconds after the traffic must not call it thin.
func TestYoungTrafficIsNotTakenForThin(t *testing.T) {
	d := newDoor(t)
	ep, source, target := d.endpoint("chat")
	spec := `{"sourceDeploymentId":"` + source + `","targetDeploymentId":"` + target + `","canary":{"steps":[{"traffic":20},{"traffic":100}]},
		"metrics":[{"name":"router_latency","stat":"METRIC_STAT_TYPE_PERCENTILE","percentile":95,"window":"60s","regressionCheck":{"direction":"REGRESSION_DIRECTION_HIGHER_IS_WORSE","maxRegressionPercent":25}}]}`
	d.engine.Meter = young{busy: source, now: d.engine.Now}
	p := d.call("POST", base+"/"+ep+"/rollouts/preview-defaults", spec).ok()
	require.NotContains(t, p.Raw, "GATE_SAMPLES_SHORT")
	var previewed struct{ Sluice api.PreviewExtra }
	require.NoError(t, json.Unmarshal([]byte(p.Raw), &previewed))
	require.InDelta(t, 4, previewed.Sluice.SourceRequestsPerSecond, 0.5)
	require.Zero(t, previewed.Sluice.TargetRequestsPerSecond)
	var shown api.Endpoint
	require.NoError(t, json.Unmarshal([]byte(d.call("GET", base+"/"+ep, "").ok().Raw), &shown))
	require.InDelta(t, 4, *shown.Sluice.RequestsPerSecond, 0.5)
}
