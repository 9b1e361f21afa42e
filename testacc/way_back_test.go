package testacc

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// failingEngine is fastEngine with a candidate that answers every other request 500.
var failingEngine = strings.Replace(fastEngine, "  - {id: cr_never", "  - {id: cr_failing, models: [demo/candidate], hardware: 1xtest, simulated: {cold_start: 50ms, latency: 5ms, error_rate: 0.5}}\n  - {id: cr_never", 1)

// failing makes an endpoint whose source serves with so many replicas, and a stopped
// target that fails.
func (e *testEngine) failing(t *testing.T, replicas int) (endpoint, source, target string) {
	t.Helper()
	ctx := t.Context()
	ep, err := e.Client.CreateEndpoint(ctx, api.CreateEndpoint{Name: "chat"}, "")
	require.NoError(t, err)
	none := 0
	a, err := e.Client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "a", Model: "demo/stable", Config: "cr_stable", Autoscaling: api.Autoscaling{MinReplicas: &replicas, MaxReplicas: &replicas}}, "")
	require.NoError(t, err)
	b, err := e.Client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "b", Model: "demo/candidate", Config: "cr_failing", Autoscaling: api.Autoscaling{MinReplicas: &none, MaxReplicas: &none}}, "")
	require.NoError(t, err)
	_, err = e.Client.SetWeight(ctx, ep.ID, a.ID, 1)
	require.NoError(t, err)
	e.trafficTo(t, "acme/chat", 120)
	require.True(t, e.untilServed(ctx, "acme/chat"))
	return ep.ID, a.ID, b.ID
}

// A target that fails takes a blue-green's whole traffic, and the circuit breaker takes
// it back by itself: the source is whole, nothing is retried, and the feed says who
// answers for it.
func TestCircuitBreakerTakesTheTrafficBackFromATargetThatFails(t *testing.T) {
	t.Parallel()
	e := startEngine(t, failingEngine)
	ctx := t.Context()
	endpoint, source, target := e.failing(t, 2)
	window, limit := api.Duration(500e6), 0.2
	spec := api.RolloutSpec{
		SourceDeploymentID: source, TargetDeploymentID: target, BlueGreen: &api.BlueGreen{},
		Sluice: &api.SpecExtra{CircuitBreaker: &api.CircuitBreaker{SignedBy: "ana@example.org", Rules: []api.MetricRule{{
			Name: "router_error_rate", Window: &window,
			ThresholdCheck: &api.ThresholdCheck{Operator: api.PrefixOperator + "LT", Value: &limit},
		}}}},
	}
	preview, err := e.Client.PreviewRollout(ctx, endpoint, spec)
	require.NoError(t, err)
	require.Contains(t, codesOf(preview.Warnings), "SOURCE_HELD")
	made, err := e.Client.CreateRollout(ctx, endpoint, spec, "")
	require.NoError(t, err)
	_, err = e.Client.StartRollout(ctx, endpoint, made.ID)
	require.NoError(t, err)
	parked := e.reaches(t, endpoint, made.ID, "SYSTEM_PAUSED")
	require.Equal(t, api.PrefixCategory+"METRIC_REGRESSION", parked.Status.Condition.Category)
	require.Contains(t, parked.Status.Condition.Message, "signed by ana@example.org")
	require.Contains(t, parked.Status.Condition.Message, "the source is at its full size (2 of 2 replicas answer)")
	require.NotNil(t, parked.Sluice.Trip)
	require.Equal(t, 0, parked.Sluice.Trip.ToPercent)
	require.Nil(t, parked.Sluice.RetryAt)
	require.Eventually(t, func() bool {
		r, err := e.Client.GetRollout(ctx, endpoint, made.ID)
		return err == nil && *r.CurrentTrafficPercent == 0 && engineclient.Short(r.State) == "SYSTEM_PAUSED"
	}, 20*time.Second, 20*time.Millisecond)
	live, err := e.Client.GetDeployment(ctx, endpoint, source)
	require.NoError(t, err)
	require.Equal(t, 2, live.Status.ReadyReplicas)
	require.Equal(t, 1, e.happened(t, endpoint, made.ID, "rollout.breaker_tripped"))
	_, err = e.Client.CancelRollout(ctx, endpoint, made.ID, api.Control{Reason: "it fails"})
	require.NoError(t, err)
	require.Equal(t, 0, *e.reaches(t, endpoint, made.ID, "CANCELED").CurrentTrafficPercent)
}

func codesOf(warnings []api.Warning) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Code)
	}
	return out
}

// Nobody edits a locked split without the scope that no other includes; with it the edit
// stands against the engine until a resume does the step again, or a cancel keeps it.
func TestBreakGlassTakesAScopeOfItsOwn(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	ctx := t.Context()
	endpoint, source, target := e.pair(t, "chat")
	require.True(t, e.untilServed(ctx, "acme/chat"))
	interval := api.Duration(3600e9)
	made, err := e.Client.CreateRollout(ctx, endpoint, api.RolloutSpec{SourceDeploymentID: source, TargetDeploymentID: target,
		Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 10}, {Traffic: 100}}, StepInterval: &interval}}, "")
	require.NoError(t, err)
	_, err = e.Client.StartRollout(ctx, endpoint, made.ID)
	require.NoError(t, err)
	e.reaches(t, endpoint, made.ID, "STABILIZING")

	_, err = e.Client.SetWeight(ctx, endpoint, target, 90)
	require.True(t, engineclient.IsConflict(err), "%v", err)
	for name, c := range map[string]*engineclient.Client{"admin": e.Client, "operator": e.as(t, "operator", "operate")} {
		_, err = c.BreakGlass(ctx, endpoint, target, 90, "it burns")
		var refused *api.Error
		require.True(t, errors.As(err, &refused), "%s: %v", name, err)
		require.Equal(t, http.StatusForbidden, refused.Status, name)
		require.Contains(t, refused.Message, "break-glass")
	}
	ana := e.as(t, "ana", "operate", "break-glass")
	_, err = ana.BreakGlass(ctx, endpoint, target, 90, " ")
	require.Error(t, err)
	_, err = ana.BreakGlass(ctx, endpoint, target, 90, "it burns") // 90 beside the source's 90: half
	require.NoError(t, err)
	parked := e.reaches(t, endpoint, made.ID, "SYSTEM_PAUSED")
	require.Equal(t, api.PrefixCategory+"ABORTED_BY_OPERATOR", parked.Status.Condition.Category)
	require.Equal(t, 10, parked.Sluice.Drift.SetPercent)
	require.Equal(t, "ana", parked.Sluice.Drift.By)
	require.Equal(t, "it burns", parked.Sluice.Drift.Reason)
	require.Equal(t, 1, e.happened(t, endpoint, made.ID, "endpoint.break_glass"))
	require.Eventually(t, func() bool {
		r, err := e.Client.GetRollout(ctx, endpoint, made.ID)
		return err == nil && *r.CurrentTrafficPercent == 50 && r.Sluice.Drift.ActualPercent == 50
	}, 20*time.Second, 20*time.Millisecond)

	_, err = e.Client.ResumeRollout(ctx, endpoint, made.ID, api.Control{})
	require.NoError(t, err)
	again := e.reaches(t, endpoint, made.ID, "STABILIZING")
	require.Equal(t, 10, *again.CurrentTrafficPercent)
	require.Nil(t, again.Sluice.Drift)
	_, err = ana.BreakGlass(ctx, endpoint, target, 90, "it burns again")
	require.NoError(t, err)
	_, err = e.Client.CancelRollout(ctx, endpoint, made.ID, api.Control{Reason: "half will do"})
	require.NoError(t, err)
	require.Equal(t, 50, *e.reaches(t, endpoint, made.ID, "CANCELED").CurrentTrafficPercent)
}

// The example of the guide: the candidate is too slow, and the traffic is back at the
// source before anybody looked.
func TestExampleCircuitBreakerGoesBackByItself(t *testing.T) {
	t.Parallel()
	e := startEngine(t, demoEngine)
	e.trafficTo(t, "demo/chat", 120)
	w := example(t, e, "circuit-breaker")
	out := w.apply(t, "-var=window=1s")
	require.Contains(t, out, "SOURCE_HELD")
	require.Contains(t, unwrapped(out), "circuit breaker rule 1 of 2, signed by ana@example.org")
	v := w.outputs(t)
	require.Equal(t, "SYSTEM_PAUSED", v["state"])
	r, err := e.Client.GetRollout(t.Context(), v["endpoint_id"], v["rollout_id"])
	require.NoError(t, err)
	require.Equal(t, 0, *r.CurrentTrafficPercent)
}

// A breaker that nobody signed is refused at plan, at its attribute.
func TestCircuitBreakerThatNobodySignedIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house(`canary = {}
  circuit_breaker = {
    signed_by = " "
    rules     = [{ name = "router_error_rate", threshold_check = { operator = "LT", value = 0.05 } }]
  }`)))
	out, code := w.run(t, "plan", "-no-color", "-input=false")
	require.NotZero(t, code)
	require.Contains(t, unwrapped(out), "A circuit breaker acts without a person. Name who answers for it in signed_by.")
	require.Contains(t, unwrapped(out), "circuit_breaker.signed_by")
}
