package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
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

// A stack that is renamed in the configuration goes on with what it has: the new name takes
// over what the old one owned, and a word on the old pull request is answered.
func TestARenamedStackTakesOverWhatTheOldOneOwned(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(2*time.Minute, time.Minute)
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.passes(2*time.Minute, time.Minute)
	w.repository("models").Stacks[0].Name = "production"
	w.begin()
	word := f.Say(c.number, "ann", "/sluice cancel chat because slow")
	w.advance(time.Minute)
	w.passes(3*time.Minute, time.Minute)
	require.Contains(t, f.Signs(word), forge.Denied)
	all := f.Comments(c.number)
	require.Contains(t, all[len(all)-1].Body, "not in the configuration any more")
	require.Contains(t, all[len(all)-1].Body, "sluice rollout chat --cancel --reason …")
	w.until("the new one is in step", 5*time.Hour, func() bool { return w.stack("models", "production").Phase == InStep })
	git.push("main", "three", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat", 10, 100), `name = "chat"`, "name = \"chat\"\n  visibility = \"INTERNAL\"", 1)})
	w.passes(10*time.Minute, time.Minute)
	require.Equal(t, InStep, w.stack("models", "production").Phase, w.show())
	require.True(t, strings.HasSuffix(w.endpoint("chat").Sluice.Owner.ID, " models/production"), w.endpoint("chat").Sluice.Owner.ID)
}
