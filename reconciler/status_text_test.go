package reconciler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// A stack that is in step and suspended looked as if the next push would be applied.
func TestASuspensionIsSeenAlsoWhileNothingWaitsForIt(t *testing.T) {
	s := Status{Repositories: []RepositoryStatus{{Name: "models", State: "found", Stacks: []StackStatus{
		{Name: "prod", Phase: InStep, Suspended: "ana: until Monday"}, {Name: "staging", Phase: InStep},
	}}}}
	var out strings.Builder
	require.NoError(t, s.Render(&out, render.Options{}))
	require.Contains(t, out.String(), "prod  in step\n      suspended by ana: until Monday\n")
	require.Equal(t, 1, strings.Count(out.String(), "suspended"))
}
