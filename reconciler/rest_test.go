package reconciler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// plansOf counts the plans that were made of each stack since the last call.
func plansOf(told *tracetest.InMemoryExporter) map[string]int {
	out := map[string]int{}
	for _, s := range told.GetSpans() {
		if s.Name != "plan" {
			continue
		}
		for _, a := range s.Attributes {
			if a.Key == ofStack {
				out[a.Value.AsString()]++
			}
		}
	}
	told.Reset()
	return out
}

// A commit that touches one stack of a repository, or none, leaves the others at rest: they
// take it in as theirs, and neither plan nor ask the engine about anything.
func TestACommitThatTouchesNothingOfAStackIsNotPlannedThere(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"a/main.tf": canaryHouse("chat"), "b/main.tf": canaryHouse("code")})
	w.repository("models").Stacks = []StackConfig{{Name: "a", Folder: "a"}, {Name: "b", Folder: "b"}}
	told := w.traced()
	w.begin()
	bothIn := func() bool {
		return w.stack("models", "a").Phase == InStep && w.stack("models", "b").Phase == InStep
	}
	w.until("both are in step", 20*time.Minute, func() bool { return bothIn() && w.serves("chat", "stable", 2) && w.serves("code", "stable", 2) })
	w.passes(3*time.Minute, time.Minute)
	plansOf(told)

	none := git.push("main", "a word in the readme", map[string]string{"README.md": "models"})
	require.NoError(t, w.pass())
	require.Empty(t, plansOf(told))
	require.Equal(t, none, w.stack("models", "a").Commit)
	require.Equal(t, none, w.stack("models", "b").Commit)

	git.push("main", "one on the way", map[string]string{"b/main.tf": canaryHouse("code") + "# on the way\n"})
	logs := git.calls["log"]
	one := git.push("main", "more of a", map[string]string{"a/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 5", 1), "b/main.tf": canaryHouse("code")})
	require.NoError(t, w.pass())
	require.NotContains(t, plansOf(told), "b", "what came and went on the way is not run for itself")
	require.Equal(t, one, w.stack("models", "b").Commit)
	require.Equal(t, logs+1, git.calls["log"], "one stretch of history for all stacks")
	w.until("a follows", 10*time.Minute, bothIn)
	require.Equal(t, one, w.stack("models", "a").Commit)

	w.begin() // what was taken in is in the journal
	w.passes(2*time.Minute, time.Minute)
	require.Equal(t, one, w.stack("models", "b").Commit)
	require.True(t, bothIn(), w.show())
}

// Where every commit is run, one on the way that has other files is run also when the
// newest has the old ones again.
func TestWhereEveryCommitIsRunOneOnTheWayIsToo(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Supersede = Every
	told := w.traced()
	w.begin()
	w.until("it is in step", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	w.passes(5*time.Minute, time.Minute)
	plansOf(told)
	git.push("main", "more", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 5", 1)})
	last := git.push("main", "and back", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.until("the last one is in step", 10*time.Minute, func() bool {
		s := w.stack("models", "prod")
		return s.Phase == InStep && s.Commit == last
	})
	require.NotZero(t, plansOf(told)["prod"])
	require.Equal(t, 2, w.count("PATCH", w.deploymentID("chat", "stable")), "up, and down again")
}

// A head that cannot be merged is not fetched by every pass, whoever proposed it; a new
// head, and somebody who asks, are looked at at once.
func TestAHeadThatCannotBeMergedIsTriedEverMoreSeldom(t *testing.T) {
	w, git, f := reviewed(t)
	git.unmergeable = errors.New("the pack ends too soon")
	c := w.propose(git, f, "bomb", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	tries := func() int { return git.calls["merge"] }
	for until := w.now.Add(2 * time.Hour); w.now.Before(until); w.advance(time.Minute) {
		_ = w.pass() // the pull request cannot be planned, which is told; nothing else is kept from its work
	}
	require.Less(t, tries(), 20)
	s, err := w.r.Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, s.Repositories[0].Forge, "the pack ends too soon")
	require.Equal(t, InStep, w.stack("models", "prod").Phase)

	before := tries()
	f.Say(c.number, "ann", "/sluice plan")
	w.advance(time.Minute)
	_ = w.pass()
	require.Equal(t, before+1, tries())
	git.unmergeable = nil
	c.push(map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Equal(t, before+2, tries())
	require.Contains(t, c.comment(), "sluice_rollout.r")
	require.True(t, slices.ContainsFunc(f.Statuses(git.heads["refs/heads/bomb"]), func(s forge.Status) bool { return s.State == forge.Success }))
}

// What is too large to be merged is told on the pull request, once, and fetched no more.
func TestAHeadThatIsTooLargeIsToldOnItsPullRequest(t *testing.T) {
	w, git, f := reviewed(t)
	git.unmergeable = &gitsource.TooMuch{What: "the pack", Limit: "256 MiB", Hint: "keep large files in LFS"}
	c := w.propose(git, f, "bomb", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(time.Hour, time.Minute)
	require.Equal(t, 1, git.calls["merge"])
	require.Contains(t, c.comment(), "There is no merge result to plan: the pack: more than the limit of 256 MiB; keep large files in LFS")
	require.Contains(t, c.comment(), "✗ Not planned: the branch cannot be merged into main")
}
