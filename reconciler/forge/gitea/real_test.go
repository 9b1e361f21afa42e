package gitea_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest/realgitea"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/gitea"
)

// The suite of the port against a real Gitea, so that the make-believe one is not only
// as we think that Gitea is.
func TestARealGiteaIsAForge(t *testing.T) {
	server := realgitea.Start(t)
	forgetest.Suite(t, func(t *testing.T) forgetest.Stage {
		server.Repository(t)
		return forgetest.Stage{Forge: over(t, server), Script: server.Script(t)}
	})
	t.Run("its webhooks are understood", func(t *testing.T) { realWebhooks(t, server) })
}

func over(t *testing.T, server *realgitea.Server) forge.Forge {
	t.Helper()
	f, err := gitea.New(gitea.Options{
		URL: server.URL, Repository: "acme/app",
		Token: func(context.Context) (string, error) { return server.Token, nil },
	})
	require.NoError(t, err)
	return f
}

func realWebhooks(t *testing.T, server *realgitea.Server) {
	server.Repository(t)
	var mu sync.Mutex
	var got []forge.Delivery
	hooks := map[string]forge.Hook{"gitea": gitea.Hook(func() ([]byte, error) { return []byte("s3cret"), nil })}
	receiver := httptest.NewServer(forge.Receive(hooks, func(_ string, d forge.Delivery) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, d)
	}, forge.ReceiveLimits{}))
	defer receiver.Close()
	server.Subscribe(t, receiver.URL+"/hooks/gitea", "s3cret")
	script := server.Script(t)
	number := script.OpenPullRequest(forgetest.Opening{Files: []string{"a.hcl"}})
	script.Push(number, "")
	script.Say(number, "ann", "/sluice plan")
	script.Approve(number, "ben")
	script.Merge(number, "")
	for _, want := range []forge.Delivery{
		{Kind: forge.KindPullRequest, PullRequest: number},
		{Kind: forge.KindComment, PullRequest: number},
		{Kind: forge.KindReview, PullRequest: number},
		{Kind: forge.KindPush, Ref: "refs/heads/main"},
	} {
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(got, func(d forge.Delivery) bool {
				return d.Kind == want.Kind && d.PullRequest == want.PullRequest && d.Repository == "acme/app" && d.ID != "" && (want.Ref == "" || d.Ref == want.Ref)
			})
		}, 20*time.Second, 50*time.Millisecond, "%+v", want)
	}
}
