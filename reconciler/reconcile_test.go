package reconciler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A commit that declares a canary is rolled out to its end, and nothing is written after.
func TestACommitIsRolledOutToItsEnd(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("the endpoint is made", 10*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep })
	git.push("main", "canary to b", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.until("the canary runs", 10*time.Minute, func() bool { return w.stack("models", "prod").Phase == RollingOut })
	w.until("the canary ends", 3*time.Hour, func() bool { return w.stack("models", "prod").Phase == InStep })
	all := w.all("chat")
	require.Len(t, all, 1)
	require.Equal(t, engineclient.StateCompleted, all[0].State)
	n := len(w.calls)
	w.passes(time.Hour, time.Minute)
	require.Empty(t, w.writes(n))
}
