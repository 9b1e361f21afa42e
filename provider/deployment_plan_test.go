package provider

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

func TestShareIsWeightTimesReadyReplicas(t *testing.T) {
	ready := func(id string, n int) api.Deployment {
		return api.Deployment{ID: id, Status: api.DeploymentStatus{ReadyReplicas: n}}
	}
	split := []api.TrafficWeight{{DeploymentID: "a", Weight: 1}, {DeploymentID: "b", Weight: 3}}
	all := []api.Deployment{ready("a", 3), ready("b", 1), ready("c", 9)}
	require.InDelta(t, 0.5, planning.ShareIn(split, all, "a"), 1e-9)
	require.Zero(t, planning.ShareIn(split, all, "c"), "without a weight")
	require.Zero(t, planning.ShareIn(split, []api.Deployment{ready("a", 0)}, "a"), "with no replica that answers nothing is lost")
	require.InDelta(t, 1, planning.ShareIn(split, []api.Deployment{ready("a", 1), ready("b", 0)}, "a"), 1e-9)
	require.Equal(t, "100 %", percentText(1))
	require.Equal(t, "99 %", percentText(0.999))
	require.Equal(t, "less than 1 %", percentText(0.001))
}
