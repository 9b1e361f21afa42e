package reconciler

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// forgeOf gives a repository a forge with people: ann and ben may write, olga is
// administrator, zoe is nobody.
func (w *stage) forgeOf(repository string) *forgetest.World {
	w.t.Helper()
	f := forgetest.New(forgetest.Options{Repository: "acme/" + repository, Now: func() time.Time { return w.now }})
	forgetest.People(f)
	w.forges[repository] = f.Forge()
	w.repository(repository).Forge = &ForgeConfig{Kind: GitHub, Repository: "acme/" + repository, Interval: time.Minute}
	return f
}

// change is a pull request of a branch of the memory remote.
type change struct {
	w      *stage
	git    *memoryRemote
	forge  *forgetest.World
	number int
	branch string
}

// propose opens a pull request with files.
func (w *stage) propose(git *memoryRemote, f *forgetest.World, branch string, files map[string]string) *change {
	w.t.Helper()
	head := git.pushOn("refs/heads/"+branch, git.heads["refs/heads/main"], branch, files)
	git.heads["refs/pull/"+branch+"/head"] = head
	n := f.OpenPullRequest(forgetest.Opening{Author: "ann", Title: branch, Head: head, HeadRef: branch, Base: git.heads["refs/heads/main"]})
	w.advance(time.Minute)
	return &change{w, git, f, n, branch}
}

func (c *change) push(files map[string]string) string {
	head := c.git.pushOn("refs/heads/"+c.branch, c.git.heads["refs/heads/"+c.branch], "more", files)
	c.forge.Push(c.number, head)
	return head
}

// merge merges as a squash does: one commit on main with the head's files.
func (c *change) merge() string {
	c.w.t.Helper()
	base := c.git.heads["refs/heads/main"]
	tree, err := c.git.Merge(c.w.t.Context(), base, c.git.heads["refs/heads/"+c.branch])
	require.NoError(c.w.t, err)
	files := map[string]string{}
	for path := range c.git.commits[base].files {
		files[path] = ""
	}
	for _, f := range tree.Files {
		files[f.Path] = string(f.Bytes)
	}
	id := c.git.push("main", "Merge "+c.branch, files)
	c.forge.Merge(c.number, id)
	return id
}

// comment is the sticky comment; empty when there is none.
func (c *change) comment() string {
	for _, x := range c.forge.Comments(c.number) {
		if x.Bot && strings.HasPrefix(x.Body, "<!-- sluice instance=") {
			return x.Body
		}
	}
	return ""
}

// reviewed is a stage with the endpoint chat in step and a forge.
func reviewed(t *testing.T) (*stage, *memoryRemote, *forgetest.World) {
	t.Helper()
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	f := w.forgeOf("models")
	w.begin()
	w.until("the endpoint serves", 20*time.Minute, func() bool {
		return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2)
	})
	return w, git, f
}

// A pull request gets its plan as one comment; its merge starts the rollout, which the
// comment follows to the receipt.
func TestAPullRequestIsPlannedMergedAndFollowedToItsReceipt(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	plan := c.comment()
	require.Contains(t, plan, "sluice_rollout.r")
	require.Contains(t, plan, "10")
	require.Len(t, w.all("chat"), 0)
	statuses := f.Statuses(git.heads["refs/heads/canary"])
	require.Len(t, statuses, 1)
	require.Equal(t, forge.Success, statuses[0].State, statuses[0].Text)

	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	require.NoError(t, w.pass())
	live := c.comment()
	require.Contains(t, live, w.all("chat")[0].ID)
	require.NotEqual(t, plan, live)
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "completed")
	n, comments := f.Writes(forgetest.Any), len(f.Comments(c.number))
	require.Equal(t, 1, comments)
	w.passes(2*time.Hour, time.Minute)
	require.Equal(t, n, f.Writes(forgetest.Any), "K1: nothing new, nothing written")
	t.Log(c.comment())
}

// H11: an open pull request that is never merged writes nothing at the engine.
// K1: and a thousand polls without news write nothing at the forge.
func TestAnOpenPullRequestWritesNothingAtTheEngine(t *testing.T) {
	w, git, f := reviewed(t)
	w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	n, writes := len(w.calls), f.Writes(forgetest.Any)
	w.passes(24*time.Hour, 90*time.Second)
	require.Empty(t, w.writes(n))
	require.Equal(t, writes, f.Writes(forgetest.Any))
}

// K9: thirty pushes are one comment.
func TestThirtyPushesAreOneComment(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	for i := range 30 {
		require.NoError(t, w.pass())
		c.push(map[string]string{"prod/main.tf": canaryHouse("chat", 11+i, 100)})
		w.advance(time.Minute)
	}
	require.NoError(t, w.pass())
	require.Len(t, f.Comments(c.number), 1)
	require.Contains(t, c.comment(), "40")
	_, earlier, _ := strings.Cut(c.comment(), "Earlier pushes (30 plans")
	require.Equal(t, 20, strings.Count(earlier, "1 rollout, 1 created"), "each with its verdict, bounded")
}

// A parked rollout is canceled by a comment of somebody who may, taken back by another,
// and the comment ends with the receipt.
func TestAParkIsCanceledAndTakenBackByComments(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	for _, d := range w.endpoint("chat").Deployments {
		if strings.HasSuffix(d.Name, "candidate") {
			w.meter.value[d.ID] = 400
		}
	}
	w.until("it is parked", 2*time.Hour, w.phase(Parked))
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "METRIC_REGRESSION")
	require.Contains(t, c.comment(), "/sluice cancel")

	mallory := f.Say(c.number, "zoe", "/sluice cancel because I say so")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.NoError(t, w.pass())
	require.Contains(t, f.Signs(mallory), forge.Denied)
	require.Equal(t, engineclient.StateSystemPaused, w.all("chat")[0].State)

	word := f.Say(c.number, "ann", "/sluice cancel p95 doubled")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State)
	require.Contains(t, f.Signs(word), forge.Done)
	require.Equal(t, Ahead, w.stack("models", "prod").Phase)

	f.Say(c.number, "ann", "/sluice reverse nobody needs it")
	w.advance(time.Minute)
	w.until("the reverse runs", 10*time.Minute, func() bool { return len(w.all("chat")) == 2 })
	w.until("the reverse ends", 5*time.Hour, func() bool { return w.all("chat")[1].State == engineclient.StateCompleted })
	w.passes(time.Hour, time.Minute)
	require.Len(t, w.all("chat"), 2, "live stays ahead of Git")
	require.Equal(t, Ahead, w.stack("models", "prod").Phase)
	require.Contains(t, c.comment(), "nobody needs it")
	t.Log(c.comment())
}

// A completed rollout can be taken back by a comment.
func TestACompletedRolloutIsTakenBack(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	f.Say(c.number, "ben", "/sluice reverse answers are worse")
	w.advance(time.Minute)
	w.until("the reverse is made", 10*time.Minute, func() bool { return len(w.all("chat")) == 2 })
	w.until("the reverse ends", 5*time.Hour, func() bool { return w.all("chat")[1].State == engineclient.StateCompleted })
	w.passes(time.Hour, time.Minute)
	require.Len(t, w.all("chat"), 2)
	require.Equal(t, Ahead, w.stack("models", "prod").Phase)
}

// H9: an approval names a digest; a new push makes another plan, and the old approval is
// void. What was approved is applied after the merge and nothing else.
func TestAnApprovalHoldsForItsDigestOnly(t *testing.T) {
	w, git, f := reviewed(t)
	w.r.followers[0].config.Approval = ApproveByDigest
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	digest := func() string {
		p := w.r.followers[0].pulls.known[c.number].Plans
		require.Len(t, p, 1)
		return planning.ShortDigest(p[0].Digest)
	}
	first := digest()
	require.Contains(t, c.comment(), first)
	f.Say(c.number, "olga", "/sluice approve "+first)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "olga")

	c.push(map[string]string{"prod/main.tf": canaryHouse("chat", 50, 100)})
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	second := digest()
	require.NotEqual(t, first, second)
	c.merge()
	w.advance(time.Minute)
	w.passes(30*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"), "the approval was of another plan")
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase)
	require.Equal(t, ForApproval, s.Waits[0].For)
	require.Contains(t, s.Waits[0].What, "is void")

	f.Say(c.number, "ann", "/sluice approve "+second)
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"), "ann is the author, and has no grant")
	f.Say(c.number, "olga", "/sluice approve "+second)
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	require.Equal(t, 50, w.all("chat")[0].Status.Steps[0].TargetTrafficPercent)
}

// H1, I3: a push that drops a stack's change drops its plan.
func TestAPushThatDropsAChangeDropsItsPlan(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100), "README.md": "text"})
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "sluice_rollout.r")
	c.push(map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.NotContains(t, c.comment(), "| sluice_rollout.r")
	require.Empty(t, w.r.followers[0].pulls.known[c.number].Plans)
	c.merge()
	w.advance(time.Minute)
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"))
}

// I1: a pull request that is closed leaves nothing behind.
func TestAClosedPullRequestLeavesNothingBehind(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	f.Close(c.number)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "closed")
	n := len(w.calls)
	w.passes(8*24*time.Hour, time.Hour)
	require.Empty(t, w.writes(n))
	require.Empty(t, w.r.followers[0].pulls.known)

	f.Reopen(c.number)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "sluice_rollout.r")
}

// H3: while the base cannot be read nothing is applied.
// F9: and what runs is watched on.
func TestWithoutGitNothingIsAppliedAndWhatRunsIsWatched(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	git.down = errGitDown
	for range 30 {
		require.Error(t, w.pass())
		w.advance(time.Minute)
	}
	require.Empty(t, w.all("chat"))
	git.down = nil
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	git.down = errGitDown
	for range 240 {
		require.Error(t, w.pass())
		w.advance(time.Minute)
	}
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[0].State)
	require.Equal(t, "COMPLETED", w.stack("models", "prod").Rollouts[0].State)
	require.Contains(t, c.comment(), "completed")
}

// A pull request that is merged before anybody looked is followed too.
func TestAPullRequestThatIsMergedUnseenIsFollowed(t *testing.T) {
	w, git, f := reviewed(t)
	head := git.pushOn("refs/heads/quick", git.heads["refs/heads/main"], "quick", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	n := f.OpenPullRequest(forgetest.Opening{Author: "ann", Title: "quick", Head: head, HeadRef: "quick", Base: git.heads["refs/heads/main"]})
	c := &change{w, git, f, n, "quick"}
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "completed")
}

// A merge reaches Git before the forge tells it, or the forge is looked at more seldom:
// the comment of the pull request follows what it brought all the same.
func TestAMergeThatTheForgeTellsLateIsFollowed(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	merged := git.push("main", "Merge canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	require.NoError(t, w.pass())
	f.Merge(c.number, merged)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), w.all("chat")[0].ID)
	word := f.Say(c.number, "ann", "/sluice cancel it is late")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, f.Signs(word), forge.Done)
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State)
}

// The run of a merge is over before the forge tells the merge: its comment says what came
// of it, and that can be taken back.
func TestAMergeThatTheForgeTellsAfterItsRunIsOver(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	merged := git.push("main", "Merge canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	f.Merge(c.number, merged)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), w.all("chat")[0].ID)
	require.Contains(t, c.comment(), "completed")
	f.Say(c.number, "ann", "/sluice reverse it was late")
	w.advance(time.Minute)
	w.until("the reverse is made", 10*time.Minute, func() bool { return len(w.all("chat")) == 2 })
}

// A commit on the followed ref makes the forge be looked at, whatever its interval is:
// the run of a merge knows its pull request from the beginning.
func TestAMergeIsAskedAfterWhenGitHasMoved(t *testing.T) {
	w, git, f := reviewed(t)
	w.r.followers[0].config.Forge.Interval = time.Hour
	w.advance(time.Hour)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), w.all("chat")[0].ID)
}

// F5: while the followed branch is gone the comments of open pull requests stay as they are.
func TestAnOpenPullRequestKeepsItsCommentWhileTheBranchIsGone(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	plan := c.comment()
	main := git.heads["refs/heads/main"]
	delete(git.heads, "refs/heads/main")
	w.advance(time.Minute)
	_ = w.pass()
	require.Equal(t, plan, c.comment())
	require.Len(t, f.Comments(c.number), 1)
	git.heads["refs/heads/main"] = main
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Equal(t, plan, c.comment())
}

// A rollout that has moved nothing cannot be taken back: that is said, and what a person
// has decided before still stands.
func TestNothingIsTakenBackOfARolloutThatMovedNothing(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Second)
	require.NoError(t, w.pass())
	require.Len(t, w.all("chat"), 1)
	f.Say(c.number, "ann", "/sluice cancel too early")
	w.r.followers[0].lookSoon()
	require.NoError(t, w.pass())
	no := f.Say(c.number, "ann", "/sluice reverse nobody needs it")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.NoError(t, w.pass())
	require.Contains(t, f.Signs(no), forge.Denied)
	require.Contains(t, f.Comments(c.number)[len(f.Comments(c.number))-1].Body, "there is nothing to take back")
	require.Len(t, w.all("chat"), 1)
	require.Contains(t, w.stack("models", "prod").Waits[0].What, "canceled by ann")
}

// A pull request from a fork is planned when somebody who may write asks for it, and only
// the head that they saw.
func TestAForkIsPlannedWhenSomebodyVouchesForIt(t *testing.T) {
	w, git, f := reviewed(t)
	head := git.pushOn("refs/pull/fork/head", git.heads["refs/heads/main"], "fork", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	n := f.OpenPullRequest(forgetest.Opening{Author: "zoe", Title: "fork", Head: head, HeadRef: "fork", Base: git.heads["refs/heads/main"], Fork: true})
	c := &change{w, git, f, n, "fork"}
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "comes from a fork")
	require.NotContains(t, c.comment(), "sluice_rollout.r` ")
	say := func(who string) string {
		f.Say(n, who, "/sluice plan")
		w.advance(time.Minute)
		require.NoError(t, w.pass())
		return c.comment()
	}
	require.Contains(t, say("zoe"), "comes from a fork")
	require.NotContains(t, say("ann"), "comes from a fork")
	require.Contains(t, c.comment(), "sluice_rollout.r")
	head = git.pushOn("refs/pull/fork/head", head, "another", map[string]string{"prod/main.tf": canaryHouse("chat", 90, 100)})
	f.Push(n, head)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "comes from a fork")
}

// What a person has canceled starts again when a person says so: as a new rollout, once.
func TestACanceledRolloutIsAllowedAgain(t *testing.T) {
	w, _, f := rollingOut(t)
	f.Say(1, "ann", "/sluice cancel the wrong week")
	w.r.followers[0].lookSoon() // before anything has moved: a split that is frozen at 10 % refuses a first step of 10 %
	w.until("it is canceled", 10*time.Minute, w.phase(Ahead))
	f.Say(1, "olga", "/sluice retry")
	w.advance(time.Minute)
	w.until("another one runs", 10*time.Minute, func() bool { return len(w.all("chat")) == 2 })
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State)
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	w.passes(time.Hour, time.Minute)
	require.Len(t, w.all("chat"), 2)
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[1].State)
}

// What a person has taken back starts again when a person says so: live is then what Git
// says, and not only a record of it.
func TestWhatWasTakenBackIsAllowedAgain(t *testing.T) {
	w, _, f := rollingOut(t)
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	f.Say(1, "ann", "/sluice reverse answers are worse")
	w.advance(time.Minute)
	w.until("it is taken back", 5*time.Hour, w.phase(Ahead))
	require.Len(t, w.all("chat"), 2)
	f.Say(1, "olga", "/sluice retry")
	w.advance(time.Minute)
	w.until("a third one runs", 10*time.Minute, func() bool { return len(w.all("chat")) == 3 })
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[2].State)
	require.Equal(t, w.all("chat")[0].TargetDeploymentID, w.all("chat")[2].TargetDeploymentID)
}

// rollingOut is a reviewed stage whose pull request 1 was merged and whose canary runs.
func rollingOut(t *testing.T) (*stage, *memoryRemote, *forgetest.World) {
	t.Helper()
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Second)
	require.NoError(t, w.pass())
	require.Len(t, w.all("chat"), 1)
	return w, git, f
}

// A commit that only brings the approval leaves the plan what it was, across a restart too.
func TestAnApprovalInAFileApprovesThePlanThatWaits(t *testing.T) {
	w, git := canary(t, 10, 100)
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	back := strings.NewReplacer("source_deployment_id = sluice_deployment.stable.id", "source_deployment_id = sluice_deployment.candidate.id",
		"target_deployment_id = sluice_deployment.candidate.id", "target_deployment_id = sluice_deployment.stable.id").Replace(canaryHouse("chat", 50, 100))
	git.push("main", "and back", map[string]string{"prod/main.tf": back})
	w.passes(3*time.Minute, time.Minute)
	waits := w.stack("models", "prod").Waits
	require.Len(t, waits, 1)
	require.Equal(t, ForApproval, waits[0].For)
	digest := w.stack("models", "prod").Plan
	w.begin()
	w.passes(30*time.Minute, time.Minute)
	require.Equal(t, digest, w.stack("models", "prod").Plan)
	git.push("main", "a person approves a part", map[string]string{"prod/sluice.approvals": planning.ShortDigest(digest) + "\n"})
	w.passes(3*time.Minute, time.Minute)
	require.Contains(t, w.stack("models", "prod").Waits[0].What, "sluice.approvals has "+planning.ShortDigest(digest)+", and takes the whole digest, "+digest)
	git.push("main", "a person approves", map[string]string{"prod/sluice.approvals": "# ana\n" + digest + "\n"})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	require.Len(t, w.all("chat"), 2)
	lines, err := w.r.History(t.Context(), journal.Query{Most: 100, Kind: "asked.approve"})
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0].Text, "is approved by the file sluice.approvals")
}

// What an open pull request shows is what its merge would do now: when somebody moves the
// split, or changes the rules, it is planned and judged anew, and what was approved before
// is told to be void. While nothing changes nothing is planned and nothing is written.
func TestAnOpenPullRequestIsPlannedAnewWhenWhatItRestsOnChanges(t *testing.T) {
	w, git, f := reviewed(t)
	rules := priced(t, "5000")
	w.repository("models").Policies = []PolicyConfig{{Path: rules}}
	w.repository("models").Approval = ApproveByDigest
	told := w.traced()
	w.begin()
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	f.Say(c.number, "olga", "/sluice approve "+planning.ShortDigest(w.digestOf(c)))
	w.advance(time.Minute)
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "Approved by `olga`")
	plansOf(told)
	writes := f.Writes(forgetest.Any)
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, plansOf(told))
	require.Equal(t, writes, f.Writes(forgetest.Any))

	first := w.digestOf(c)
	_, err := w.person("bob").SetWeight(t.Context(), w.endpoint("chat").ID, w.deploymentID("chat", "stable"), 7)
	require.NoError(t, err)
	w.passes(2*time.Minute, time.Minute)
	require.NotEqual(t, first, w.digestOf(c))
	require.Contains(t, c.comment(), "An earlier approval is void")

	data := filepath.Join(rules, "data.json")
	text, err := os.ReadFile(data)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(data, bytes.Replace(text, []byte("5000"), []byte("1"), 1), 0o600))
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "denied")
	statuses := f.Statuses(git.heads["refs/heads/canary"])
	require.Equal(t, forge.Failure, statuses[len(statuses)-1].State)
}

// digestOf is the digest of the plan that a pull request shows.
func (w *stage) digestOf(c *change) string {
	w.t.Helper()
	plans := w.r.followers[0].pulls.known[c.number].Plans
	require.Len(w.t, plans, 1)
	return plans[0].Digest
}
