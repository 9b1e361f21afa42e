package reconciler

import (
	"os"
	"path/filepath"
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

// moved is a plan that the comment shows and that is renewed, since somebody moves the split,
// after look has let somebody say something about it.
func (w *stage) moved(c *change, look func()) (first, second string) {
	w.t.Helper()
	require.NoError(w.t, w.pass())
	first = w.digestOf(c)
	w.advance(61 * time.Second)
	require.NoError(w.t, w.pass())
	w.advance(10 * time.Second)
	_, err := w.person("bob").SetWeight(w.t.Context(), w.endpoint("chat").ID, w.deploymentID("chat", "stable"), 7)
	require.NoError(w.t, err)
	w.advance(5 * time.Second)
	require.Contains(w.t, c.comment(), planning.ShortDigest(first))
	look()
	w.advance(5 * time.Second)
	_ = w.pass() // the plan is renewed before the forge is looked at
	second = w.digestOf(c)
	require.NotEqual(w.t, first, second)
	w.advance(time.Minute)
	require.NoError(w.t, w.pass())
	return first, second
}

func (w *stage) approvalsOf(c *change) []string {
	var out []string
	for _, a := range w.r.followers[0].pulls.known[c.number].Approved {
		out = append(out, a.Digest)
	}
	return out
}

// A review approves what its reviewer has seen, and not what took its place before the review
// was heard. A second review approves what stands then.
func TestAReviewApprovesThePlanThatItsReviewerSaw(t *testing.T) {
	w, git, f := byDigest(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	first, second := w.moved(c, func() { f.Approve(c.number, "olga") })
	require.Equal(t, []string{first}, w.approvalsOf(c))
	require.Contains(t, c.comment(), planning.ShortDigest(second))
	f.Approve(c.number, "olga")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Equal(t, []string{first, second}, w.approvalsOf(c), "the same head, and she has seen the second plan")
	f.RequestChanges(c.number, "olga")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Empty(t, w.approvalsOf(c))
}

// The comment cannot be edited: it shows the plan of before, and that is what is approved.
func TestAReviewWhileTheCommentCannotBeEditedApprovesWhatItShows(t *testing.T) {
	w, git, f := reviewed(t)
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	first := w.digestOf(c)
	w.advance(61 * time.Second)
	require.NoError(t, w.pass())
	_, err := w.person("bob").SetWeight(t.Context(), w.endpoint("chat").ID, w.deploymentID("chat", "stable"), 7)
	require.NoError(t, err)
	f.Always(forgetest.CallEditComment, forgetest.Answer(500))
	w.stumble(2)
	require.NotEqual(t, first, w.digestOf(c))
	require.Contains(t, c.comment(), planning.ShortDigest(first))
	f.Approve(c.number, "olga")
	w.advance(5 * time.Second)
	w.stumble(2)
	require.Equal(t, []string{first}, w.approvalsOf(c))
}

// sized is a stage whose policy denies each new rollout, which owners, who may write, may lift.
func sized(t *testing.T) (*stage, *memoryRemote, *forgetest.World) {
	t.Helper()
	w, git, f := reviewed(t)
	text := "package team\n\ndeny contains {\"msg\": \"no\", \"rule\": \"size\", \"override\": [\"owners\"]} if {\n  some c in input.resource_changes\n  c.type == \"sluice_rollout\"\n  \"create\" in c.change.actions\n}\n"
	rules := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(rules, "a.rego"), []byte(text), 0o600))
	w.repository("models").Policies = []PolicyConfig{{Path: rules, Overriders: map[string][]Grant{"owners": {{Role: forge.Write}}}}}
	w.begin()
	return w, git, f
}

// A word for a rule is said of the plan that was shown, and lifts nothing of the one that has
// taken its place.
func TestAnOverrideLiftsADenialOfThePlanThatWasSeen(t *testing.T) {
	w, git, f := sized(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.moved(c, func() { f.Say(c.number, "olga", "/sluice override size because it was rehearsed") })
	require.Empty(t, w.r.followers[0].pulls.known[c.number].Overrides)
	require.Contains(t, answers(f, c.number), "The plan has changed since the comment showed it.")
	f.Say(c.number, "olga", "/sluice override size because it was rehearsed")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Len(t, w.r.followers[0].pulls.known[c.number].Overrides, 1)
}

// The same after the merge: the plan of the run is the one that was shown, or it is refused.
func TestAnOverrideOfAMergedPlanLiftsADenialOfThePlanThatWasSeen(t *testing.T) {
	w, git, f := sized(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.passes(12*time.Minute, time.Minute)
	_, err := w.person("bob").SetWeight(t.Context(), w.endpoint("chat").ID, w.deploymentID("chat", "stable"), 7)
	require.NoError(t, err)
	was := w.stack("models", "prod").Plan
	f.Always(forgetest.CallComments, forgetest.Answer(500))
	f.Say(c.number, "olga", "/sluice override size because it was rehearsed")
	w.stumble(3) // the plan of the run is made anew, and nobody is heard
	require.NotEqual(t, was, w.stack("models", "prod").Plan)
	f.Heal()
	w.advance(time.Minute)
	w.passes(3*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"))
	require.Contains(t, answers(f, c.number), "that was said of plan `"+planning.ShortDigest(was))
	f.Say(c.number, "olga", "/sluice override size because it was rehearsed")
	w.advance(time.Minute)
	w.passes(4*time.Minute, time.Minute)
	require.Len(t, w.all("chat"), 1, w.show())
}

// An approval ends with the pull request: one that is opened again is approved anew.
func TestAnApprovalIsVoidWhenItsPullRequestIsOpenedAgain(t *testing.T) {
	w, git, f := reviewed(t)
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(2*time.Minute, time.Minute)
	f.Say(c.number, "olga", "/sluice approve "+planning.ShortDigest(w.digestOf(c)))
	w.advance(time.Minute)
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "Approved by")
	f.Close(c.number)
	w.advance(time.Minute)
	w.passes(2*time.Minute, time.Minute)
	f.Reopen(c.number)
	w.advance(time.Minute)
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "Not approved yet")
	require.NotContains(t, c.comment(), "Approved by")
}
