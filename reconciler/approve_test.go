package reconciler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// byDigest is a stage whose plans take an approval, with ann as a maintainer.
func byDigest(t *testing.T) (*stage, *memoryRemote, *forgetest.World) {
	t.Helper()
	w, git, f := reviewed(t)
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	f.SetRole("ann", forge.Maintain)
	return w, git, f
}

// wordsOf is a pull request that changes a comment in the same folder.
func (w *stage) wordsOf(git *memoryRemote, f *forgetest.World, author string) *change {
	w.t.Helper()
	head := git.pushOn("refs/heads/words", git.heads["refs/heads/main"], "words", map[string]string{"prod/words.tf": "# a word\n"})
	n := f.OpenPullRequest(forgetest.Opening{Author: author, Title: "words", Head: head, HeadRef: "words", Base: git.heads["refs/heads/main"]})
	w.passes(3*time.Minute, time.Minute)
	return &change{w, git, f, n, "words"}
}

// Two pull requests come in one run, as a merge queue brings them. The author of one says on
// the other that the plan, which has their own change, is fine.
func TestAnAuthorDoesNotApproveTheirPlanByAnotherPullRequestOfTheSameRun(t *testing.T) {
	for _, named := range []bool{false, true} {
		w, git, f := byDigest(t)
		if named {
			w.r.followers[0].config.Forge.Permissions = Permissions{Approve: {{Role: forge.Maintain}, {User: "ann"}}}
		}
		c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
		d := w.wordsOf(git, f, "ben")
		c.merge()
		d.merge()
		w.advance(time.Minute)
		w.passes(3*time.Minute, time.Minute)
		digest := w.stack("models", "prod").Plan
		require.NotEmpty(t, digest)
		f.Say(d.number, "ann", "/sluice approve "+planning.ShortDigest(digest))
		w.advance(time.Minute)
		w.passes(3*time.Minute, time.Minute)
		if named {
			require.Len(t, w.all("chat"), 1, "a grant names her")
			continue
		}
		require.Empty(t, w.all("chat"), w.show())
		require.Contains(t, answers(f, d.number), "ann may not approve a plan that has changes of their own pull request")
		f.Say(d.number, "olga", "/sluice approve "+planning.ShortDigest(digest))
		w.advance(time.Minute)
		w.until("what olga approved is applied", 10*time.Minute, func() bool { return len(w.all("chat")) == 1 })
	}
}

// The same with a pull request that comes later: the run before it was not made, and its
// changes are in the plan of the later one.
func TestAnAuthorDoesNotApproveTheirPlanByALaterPullRequest(t *testing.T) {
	for _, when := range []string{"open", "merged"} {
		w, git, f := byDigest(t)
		c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
		require.NoError(t, w.pass())
		c.merge()
		w.advance(time.Minute)
		w.passes(3*time.Minute, time.Minute)
		d := w.wordsOf(git, f, "ben")
		approve := func() {
			f.Say(d.number, "ann", "/sluice approve "+planning.ShortDigest(w.digestOf(d)))
			w.advance(time.Minute)
			w.passes(3*time.Minute, time.Minute)
		}
		if when == "open" {
			approve()
		}
		d.merge()
		w.advance(time.Minute)
		w.passes(3*time.Minute, time.Minute)
		if when == "merged" {
			approve()
		}
		require.Empty(t, w.all("chat"), w.show())
		f.Say(d.number, "olga", "/sluice approve "+planning.ShortDigest(w.stack("models", "prod").Plan))
		w.advance(time.Minute)
		w.until("what olga approved is applied", 10*time.Minute, func() bool { return len(w.all("chat")) == 1 })
	}
}
