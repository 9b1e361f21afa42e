package github_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/github"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, forgetest.IdleConnections()...) }

// adaptor is one for the world, over real HTTP.
func adaptor(t *testing.T, w *forgetest.World) forge.Forge {
	t.Helper()
	f, err := github.New(github.Options{
		URL: w.Serve(t, forgetest.GitHub), Repository: "acme/app",
		Token: func(context.Context) (string, error) { return "token", nil },
	})
	require.NoError(t, err)
	return f
}

func stage(t *testing.T) forgetest.Stage {
	w := forgetest.New(forgetest.Options{})
	forgetest.People(w)
	return forgetest.Stage{Forge: adaptor(t, w), Script: w}
}

func TestTheGitHubAdaptorIsAForge(t *testing.T) { forgetest.Suite(t, stage) }

func TestTheGitHubAdaptorIsAForgeWithSmallPages(t *testing.T) {
	forgetest.Suite(t, func(t *testing.T) forgetest.Stage {
		s := stage(t)
		w, _ := s.Script.(*forgetest.World)
		w.SetPage(1)
		return s
	})
}

func TestTheGitHubAdaptorTellsFaultsByTheirReaction(t *testing.T) {
	forgetest.Faults(t, adaptor)
}
