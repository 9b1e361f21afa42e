package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// A folder that the configuration points elsewhere in mid-rollout deletes nothing: the guard
// of prune holds also a run that has acted.
func TestAFolderThatIsMovedInMidRolloutDeletesNothing(t *testing.T) {
	w, _ := canary(t, 10, 100)
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 30}
	w.repository("models").Stacks[0].Folder = "nowhere"
	w.begin()
	n := len(w.calls)
	w.passes(4*time.Hour, time.Minute)
	require.Empty(t, w.writes(n))
	require.Len(t, w.endpoint("chat").Deployments, 2)
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[0].State)
	require.Equal(t, ForPrune, w.stack("models", "prod").Waits[0].For)
}

// Variables that the configuration changes are no part of what was approved.
func TestVariablesThatChangeAfterTheApprovalNeedAnother(t *testing.T) {
	w := newStage(t)
	files := strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = var.most", 1) + "\nvariable \"most\" {\n  type = number\n}\n"
	w.follow("models", map[string]string{"prod/main.tf": files})
	w.repository("models").Stacks[0].Variables = map[string]string{"most": "4"}
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	w.repository("models").Approval = ApproveByDigest
	w.repository("models").Stacks[0].Variables = map[string]string{"most": "40"}
	w.begin()
	n := len(w.calls)
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, ForApproval, w.stack("models", "prod").Waits[0].For)
}

// A tag that is moved under a range needs a person's word, and the file in Git is none.
func TestATagThatIsMovedUnderARangeNeedsAWord(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", nil)
	w.repository("models").Wanted = gitsource.Wanted{Semver: ">=1.0.0 <2.0.0"}
	first := git.pushOn("refs/tags/v1.0.0", "", "one", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	git.pushOn("refs/tags/v1.0.0", first, "moved", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(5*time.Minute, time.Minute)
	require.Equal(t, ForApproval, w.stack("models", "prod").Waits[0].For)
	digest := w.stack("models", "prod").Plan
	git.pushOn("refs/tags/v1.0.0", git.heads["refs/tags/v1.0.0"], "approves itself", map[string]string{"prod/sluice.approvals": digest + "\n"})
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"))
}

// What a stack depends on comes first, whatever the order of the configuration, and one that
// has not come to the commit is not in step with it.
func TestADependencyThatHasNotComeToTheCommitHolds(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat"), "staging/main.tf": canaryHouse("try")})
	w.repository("models").Stacks = []StackConfig{
		{Name: "prod", Folder: "prod", DependsOn: []StackKey{{"models", "staging"}}},
		{Name: "staging", Folder: "staging"},
	}
	w.begin()
	both := func(p Phase) func() bool {
		return func() bool { return w.stack("models", "prod").Phase == p && w.stack("models", "staging").Phase == p }
	}
	w.until("both serve", 30*time.Minute, both(InStep))
	w.until("both serve", 10*time.Minute, func() bool { return w.serves("chat", "stable", 2) && w.serves("try", "stable", 2) })
	git.push("main", "both", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100), "staging/main.tf": canaryHouse("try", 10, 100)})
	w.until("staging runs", 10*time.Minute, func() bool { return w.stack("models", "staging").Phase == RollingOut })
	require.Empty(t, w.all("chat"))
	require.Equal(t, ForDependency, w.stack("models", "prod").Waits[0].For)
	w.until("both are done", 6*time.Hour, both(InStep))
	require.Len(t, w.all("chat"), 1)
	require.True(t, w.all("chat")[0].CreatedAt.After(w.all("try")[0].CompletedAt.Time))
}

// A deployment that is pruned stays one of the stack's until it is gone.
func TestAPrunedDeploymentIsFollowedUntilItIsGone(t *testing.T) {
	w := newStage(t)
	spare := "\nresource \"sluice_deployment\" \"spare\" {\n  endpoint_id = sluice_endpoint.e.id\n  name = \"spare\"\n  model = \"m/c\"\n  autoscaling = { min_replicas = 1, max_replicas = 1 }\n}\n"
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat") + spare})
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 50}
	w.begin()
	w.until("it serves", 30*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "spare", 1) })
	git.push("main", "no spare", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.until("it is gone", time.Hour, func() bool {
		return len(w.endpoint("chat").Deployments) == 2 && w.stack("models", "prod").Phase == InStep
	})
}

// Canceled, another one canceled, and back to the first: it does not start by itself.
func TestTwoCanceledSpecsAreBothRemembered(t *testing.T) {
	w, git := canary(t, 10, 100)
	cancel := func() {
		all := w.all("chat")
		_, err := w.person("ana").CancelRollout(t.Context(), all[len(all)-1].EndpointID, all[len(all)-1].ID, api.Control{Reason: "no"})
		require.NoError(t, err)
		w.until("it is seen", 5*time.Minute, w.phase(Ahead))
	}
	cancel()
	git.push("main", "another", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	cancel()
	git.push("main", "the first again", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(30*time.Minute, time.Minute)
	require.Len(t, w.all("chat"), 2)
}
