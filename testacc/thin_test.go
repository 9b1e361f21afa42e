package testacc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const p99Gate = `
  canary = { steps = [{ traffic = 5 }, { traffic = 100 }] }
  metrics = [{
    name   = "router_latency"
    stat   = "PERCENTILE"
    percentile = 99
    window = "1s"
    regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 100 }
  }]`

// What the gate would lack of the traffic that there is stands in the plan as a warning.
// It is live, so it is no planned value: the same plan applies after the traffic changed.
func TestAPlanOnAThinEndpointWarnsAndStillApplies(t *testing.T) {
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.apply(t)
	few := e.traffic(t, 5)
	require.True(t, e.untilServed(t.Context(), "acme/chat"))
	w.write(t, realHouse(e.house(p99Gate)))
	out, code := w.run(t, "plan", "-no-color", "-input=false", "-out=thin.tfplan")
	require.Zero(t, code, out)
	require.Contains(t, out, "Warning: GATE_SAMPLES_SHORT")
	require.Contains(t, out, "router_latency p99 has its 100 samples in")
	plan, code := w.run(t, "show", "-json", "thin.tfplan")
	require.Zero(t, code, plan)
	require.NotContains(t, plan, "GATE_SAMPLES_SHORT")

	require.NoError(t, few(nil))
	e.traffic(t, 200)
	out, code = w.run(t, "apply", "-no-color", "-input=false", "thin.tfplan")
	require.Zero(t, code, out)
	require.NotContains(t, out, "inconsistent")
}
