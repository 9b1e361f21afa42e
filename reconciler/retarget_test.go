package reconciler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// A pull request that is made to go into another branch is closed for the followed one, and
// comes back with it. What is merged elsewhere waits for nothing.
func TestAPullRequestThatIsRetargetedIsClosedAndComesBack(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "**To apply:** merge")
	f.Retarget(c.number, "release")
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "– Goes into release: nothing of it was applied")
	require.Contains(t, c.comment(), "It goes into another branch now: its plan is void")
	require.NotContains(t, c.comment(), "To apply")

	f.Retarget(c.number, "main")
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "**To apply:** merge")

	f.Retarget(c.number, "release") // and it is merged there before anybody looks
	f.Merge(c.number, git.pushOn("refs/heads/release", git.heads["refs/heads/main"], "merge", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)}))
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "– Goes into release: nothing of it was applied")
	writes := f.Writes(forgetest.Any)
	w.wait(keepPulls + time.Hour)
	require.Equal(t, writes, f.Writes(forgetest.Any))
	require.NotContains(t, w.r.followers[0].pulls.known, c.number)
}

// The merge commit of a pull request does not come into the followed history: after a day it
// is over, and it is not told as applied.
func TestAMergeThatIsNotInTheFollowedHistoryIsOverAfterADay(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	base := git.heads["refs/heads/main"]
	c.merge()
	git.heads["refs/heads/main"] = base // it is pushed away before it was seen
	w.advance(time.Minute)
	w.wait(12 * time.Hour)
	require.Contains(t, c.comment(), "has not come to it yet")
	require.NotContains(t, c.comment(), "Applied")
	w.wait(13 * time.Hour)
	require.Contains(t, c.comment(), "– Merged, and not into main: nothing of it was applied")
	require.Contains(t, c.comment(), "is not in the history of main")
	require.False(t, w.r.followers[0].pulls.known[c.number].awaits("prod"), "the stack is at rest again")
	w.wait(keepPulls)
	require.NotContains(t, w.r.followers[0].pulls.known, c.number)
}
