package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func withBreaker(change func(*api.CircuitBreaker)) api.RolloutSpec {
	s, limit := good(), 0.05
	b := &api.CircuitBreaker{SignedBy: "ana@example.org", Rules: []api.MetricRule{{Name: "router_error_rate", ThresholdCheck: &api.ThresholdCheck{Operator: "THRESHOLD_OPERATOR_LT", Value: &limit}}}}
	change(b)
	s.Sluice = &api.SpecExtra{HoldSource: true, CircuitBreaker: b}
	return s
}

// What an engine tells of a way back is what HCL says, there and back again.
func TestAWayBackSurvivesTheModel(t *testing.T) {
	s := withBreaker(func(*api.CircuitBreaker) {})
	d := asModel(s).decode()
	require.True(t, d.digestKnown())
	require.Equal(t, s.Sluice, d.spec.Sluice)
	require.Nil(t, asModel(good()).decode().spec.Sluice)
}

// A way back that follows from something unknown is known at apply.
func TestAnUnknownWayBackIsNoProblemAtPlan(t *testing.T) {
	m := asModel(good())
	m.HoldSource, m.CircuitBreaker = types.BoolUnknown(), types.ObjectUnknown(breakerType.AttrTypes)
	_, d, diags := m.check(rollout.DefaultTimings())
	require.Empty(t, diags)
	require.False(t, d.shapeKnown())
}

func TestEachProblemOfABreakerStandsAtItsAttribute(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.CircuitBreaker)
		says   string
	}{
		"unsigned":  {func(b *api.CircuitBreaker) { b.SignedBy = " " }, "A circuit breaker acts without a person. Name who answers for it in signed_by."},
		"no rules":  {func(b *api.CircuitBreaker) { b.Rules = nil }, "never trips"},
		"no check":  {func(b *api.CircuitBreaker) { b.Rules[0].ThresholdCheck = nil }, "needs a threshold_check"},
		"unknown":   {func(b *api.CircuitBreaker) { b.Rules[0].Name = "gpu" }, "Unknown metric"},
		"no number": {func(b *api.CircuitBreaker) { v := 2.0; b.Rules[0].ThresholdCheck.Value = &v }, "could never fail"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, diags := asModel(withBreaker(c.change)).check(rollout.DefaultTimings())
			require.Len(t, diags, 1)
			require.Contains(t, diags[0].Summary(), "Invalid circuit breaker at circuit_breaker.")
			require.Contains(t, diags[0].Summary()+diags[0].Detail(), c.says)
		})
	}
	require.True(t, path.Root("circuit_breaker").AtName("rules").AtListIndex(1).AtName("window").Equal(attributePath("sluice.circuitBreaker.rules[1].window")))
}
