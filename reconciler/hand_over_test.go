package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A block that moves from one stack's folder to another's is handed over with what it has:
// nothing is deleted, nothing is made, whether prune is on or not.
func TestAnEndpointThatMovesToAnotherStackIsHandedOver(t *testing.T) {
	idle := "resource \"sluice_endpoint\" \"idle\" {\n  name = \"idle\"\n}\n"
	for name, mode := range map[string]PruneMode{"prune": PruneOn, "no prune": ""} {
		t.Run(name, func(t *testing.T) {
			w := newStage(t)
			git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat") + idle, "other/main.tf": canaryHouse("talk")})
			r := w.repository("models")
			r.Stacks = append([]StackConfig{{Name: "other", Folder: "other"}}, r.Stacks...)
			if mode != "" {
				r.Prune = PruneConfig{Mode: mode, MostShrink: 100}
			}
			w.begin()
			both := func() bool {
				return w.stack("models", "prod").Phase == InStep && w.stack("models", "other").Phase == InStep
			}
			w.until("in step", 20*time.Minute, both)
			hidden := strings.Replace(idle, "}", "  visibility = \"INTERNAL\"\n}", 1)
			git.push("main", "idle is hidden", map[string]string{"prod/main.tf": canaryHouse("chat") + hidden})
			w.passes(3*time.Minute, time.Minute)
			was := w.endpoint("idle")
			require.NotNil(t, was.Sluice.Owner, w.show())
			require.True(t, strings.HasSuffix(was.Sluice.Owner.ID, " models/prod"))
			git.push("main", "idle moves", map[string]string{"prod/main.tf": canaryHouse("chat"), "other/main.tf": canaryHouse("talk") + hidden})
			w.passes(10*time.Minute, time.Minute)
			now := w.endpoint("idle")
			require.Equal(t, was.ID, now.ID)
			require.True(t, both(), w.show())
			require.Equal(t, 1, w.told("apply.handed_over"))

			git.push("main", "idle is seen", map[string]string{"other/main.tf": canaryHouse("talk") + idle})
			w.passes(10*time.Minute, time.Minute)
			require.True(t, both(), w.show())
			require.True(t, strings.HasSuffix(w.endpoint("idle").Sluice.Owner.ID, " models/other"), w.endpoint("idle").Sluice.Owner.ID)
		})
	}
}
