package planning

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func previewed(source, target, seed int) api.Preview {
	timings := rollout.DefaultTimings()
	timings.IngestionLag = 30 * time.Second
	return api.Preview{
		SourceReplicas: source, TargetReplicas: target, TargetMinReplicas: target, TargetMaxReplicas: target, EstimatedSeedPercent: &seed,
		Sluice: &api.PreviewExtra{Timings: wire.TimingsToAPI(timings), PeakReplicas: 9},
	}
}

// The plan of the way back said scale_up = 1 although its target runs already.
func TestAWayBackOntoReplicasThatRunScalesNothingUp(t *testing.T) {
	j := OnPreview(api.RolloutSpec{SourceDeploymentID: "b", TargetDeploymentID: "a", BlueGreen: &api.BlueGreen{}}, previewed(1, 2, 90))
	require.Len(t, j.Steps, 1)
	require.Equal(t, 10, j.Steps[0].DeltaPercent)
	require.Equal(t, 1, *j.Steps[0].ScaleUp, "2 stand, the pair's 3 are needed")
	j = OnPreview(api.RolloutSpec{SourceDeploymentID: "b", TargetDeploymentID: "a", BlueGreen: &api.BlueGreen{}, FinalTargetReplicas: ptr(2)}, previewed(1, 2, 90))
	require.Zero(t, *j.Steps[0].ScaleUp)
}

func TestAPreviewsJourneyRunsByTheEnginesWaits(t *testing.T) {
	window := api.Duration(5 * time.Minute)
	percentile := 95
	s := api.RolloutSpec{SourceDeploymentID: "a", TargetDeploymentID: "b", Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}},
		Metrics: []api.MetricRule{{Name: "router_latency", Stat: api.PrefixStat + "PERCENTILE", Percentile: &percentile, Window: &window, RegressionCheck: &api.RegressionCheck{Direction: api.PrefixDirection + "HIGHER_IS_WORSE"}}}}
	require.Empty(t, Check(s))
	j := OnPreview(s, previewed(4, 0, 0))
	require.Equal(t, 5*time.Minute+30*time.Second, j.Steps[0].Wait)
	require.Equal(t, 9, *j.Totals.PeakReplicas, "the engine's own number")
	s.Metrics[0].RegressionCheck = nil
	problems := Check(s)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "exactly one of regressionCheck and thresholdCheck")
}

// Of the default ladder the 5 was left out without a word when the target carried 10 %.
func TestStepsThatTheTargetIsPastAreNamed(t *testing.T) {
	s := api.RolloutSpec{Canary: &api.Canary{}}
	require.Equal(t, []int{5}, LeftOut(s, previewed(1, 1, 10)))
	require.Empty(t, LeftOut(s, previewed(1, 0, 0)))
	s.Canary.Steps = []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}
	require.Empty(t, LeftOut(s, previewed(1, 1, 10)))
	require.Empty(t, LeftOut(api.RolloutSpec{BlueGreen: &api.BlueGreen{}}, previewed(1, 1, 10)))
}
