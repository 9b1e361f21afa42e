package forgetest_test

import (
	"testing"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
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
