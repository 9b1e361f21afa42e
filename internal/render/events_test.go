package render

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

func TestARowOfTheFeedSaysWhoseItIsAndWhatWasSet(t *testing.T) {
	by := func(name string) *api.EventExtra { return &api.EventExtra{Actor: name} }
	var out bytes.Buffer
	require.NoError(t, Events(&out, []api.Event{
		{Type: "deployment.status_updated", DeploymentID: "dep_a", Name: "qwen35", Message: "All replicas ready"},
		{Type: "endpoint.updated", Name: "chat", Paths: []string{"trafficSplit"}, Message: "endpoint updated", Sluice: by("ann")},
		{Type: "endpoint.break_glass", Message: "ann broke the glass: why", Sluice: by("ann")},
	}, Options{}))
	require.Contains(t, out.String(), "qwen35: All replicas ready\n")
	require.Contains(t, out.String(), "endpoint updated: trafficSplit by ann\n")
	require.Contains(t, out.String(), "ann broke the glass: why\n")
}
