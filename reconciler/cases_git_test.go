package reconciler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// F9: while one Git host is away the other repository keeps its cadence, and the pause of
// the one that fails grows to its bound.
func TestARepositoryThatFailsHoldsUpNoOther(t *testing.T) {
	w := newStage(t)
	broken := w.follow("broken", map[string]string{"prod/main.tf": canaryHouse("other")})
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	broken.down = errGitDown
	w.begin()
	look := func() bool {
		require.Error(t, w.pass())
		w.advance(time.Minute)
		return w.stack("models", "prod").Phase == InStep
	}
	for range 30 {
		look()
	}
	require.True(t, w.serves("chat", "stable", 2))
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.False(t, look(), "it is begun in the next pass")
	for range 120 {
		look()
	}
	require.Equal(t, InStep, w.stack("models", "prod").Phase, w.show())
	f := w.r.followers[0]
	require.Equal(t, "broken", f.config.Name)
	require.Greater(t, f.pause(errGitDown), 8*time.Minute)
	require.LessOrEqual(t, f.pause(errGitDown), longestBackOff)
}

// F15: a repository whose address changes is another source: the commits of the old one
// are not looked for there, and nothing that stands is taken for removed.
func TestAnotherAddressInheritsNoCommit(t *testing.T) {
	w, _ := canary(t, 10, 100)
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	n := len(w.calls)
	moved := newMemoryRemote(w)
	moved.push("main", "the same files elsewhere", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.remotes["models"] = moved
	w.repository("models").URL = "https://elsewhere.test/models.git"
	w.begin()
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, InStep, w.stack("models", "prod").Phase, w.show())
	require.Equal(t, 2, w.told("source.first_seen"))
	require.Zero(t, w.told("source.rewritten"))
}

// F17: a tag that is moved is told, planned, and applied when somebody has approved it.
func TestAMovedTagNeedsAnApproval(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", nil)
	git.pushOn("refs/tags/v1", "", "one", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Wanted = gitsource.Wanted{Tag: "v1"}
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	git.pushOn("refs/tags/v1", git.heads["refs/tags/v1"], "two", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(30*time.Minute, time.Minute)
	require.Equal(t, 1, w.told("source.tag_moved"))
	require.Empty(t, w.all("chat"))
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase)
	require.Equal(t, ForApproval, s.Waits[0].For)
	require.Contains(t, s.Waits[0].What, "tag v1 was moved")
	w.ask("root", "approve", fmt.Sprintf(`{"digest":%q}`, s.Plan), 202)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
}
