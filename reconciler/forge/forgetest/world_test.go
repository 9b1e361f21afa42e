package forgetest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/gitea"
)

func TestTheForgeInMemoryIsAForge(t *testing.T) {
	forgetest.Suite(t, func(*testing.T) forgetest.Stage {
		w := forgetest.New(forgetest.Options{})
		forgetest.People(w)
		return forgetest.Stage{Forge: w.Forge(), Script: w}
	})
}

func TestTheForgeInMemoryTellsFaultsByTheirReaction(t *testing.T) {
	forgetest.Faults(t, func(_ *testing.T, w *forgetest.World) forge.Forge { return w.Forge() })
}

// A webhook may be lost or come twice; the receiver makes at most one hint of it.
func TestWebhooksAreLostAndDoubled(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	var hints []forge.Delivery
	hook := map[string]forge.Hook{"gitea": gitea.Hook(func() ([]byte, error) { return []byte("s"), nil })}
	receiver := forge.Receive(hook, func(_ string, d forge.Delivery) { hints = append(hints, d) }, forge.ReceiveLimits{})
	w.Subscribe(forgetest.Gitea, []byte("s"), "/hooks/gitea", receiver)
	number := w.OpenPullRequest(forgetest.Opening{})
	require.Len(t, hints, 1)
	w.LoseWebhooks(1)
	w.Push(number, "")
	require.Len(t, hints, 1)
	w.DoubleWebhooks(1)
	w.Say(number, "ann", "/sluice plan")
	require.Len(t, hints, 2)
	w.Merge(number, "")
	require.Len(t, hints, 4, "the merge, and the push that it is")
	assert.Equal(t, forge.KindPush, hints[3].Kind)
	assert.Equal(t, "refs/heads/main", hints[3].Ref)
}
