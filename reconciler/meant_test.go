package reconciler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// renamed is canaryHouse with labels of its own, so that two stand in one folder.
func renamed(name string, steps ...int) string {
	return strings.NewReplacer(`"e"`, `"e_`+name+`"`, "sluice_endpoint.e.", "sluice_endpoint.e_"+name+".", `"stable" {`, `"stable_`+name+`" {`, `"candidate" {`, `"candidate_`+name+`" {`,
		".stable.", ".stable_"+name+".", ".candidate.", ".candidate_"+name+".", `"r" {`, `"r_`+name+`" {`).Replace(canaryHouse(name, steps...))
}

// twoUnderWay is a merged pull request whose two rollouts are under way.
func twoUnderWay(t *testing.T) (*stage, *forgetest.World, *change) {
	t.Helper()
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/a.tf": renamed("chat"), "prod/b.tf": renamed("embed")})
	f := w.forgeOf("models")
	w.begin()
	w.until("both serve", 20*time.Minute, func() bool {
		return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) && w.serves("embed", "stable", 2)
	})
	c := w.propose(git, f, "canary", map[string]string{"prod/a.tf": renamed("chat", 10, 100), "prod/b.tf": renamed("embed", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.until("both run", 10*time.Minute, func() bool { return len(w.all("chat")) == 1 && len(w.all("embed")) == 1 })
	return w, f, c
}

// said says something and lets it be done.
func (c *change) said(who, text string) {
	c.w.t.Helper()
	c.forge.Say(c.number, who, text)
	for range 3 {
		c.w.advance(time.Minute)
		require.NoError(c.w.t, c.w.pass())
	}
}

// A command reaches the endpoint that it names, however people name it, and no other.
func TestACommandReachesTheEndpointThatItNamesAndNoOther(t *testing.T) {
	for _, text := range []string{"/sluice cancel chat p95 doubled", "/sluice cancel prod/chat because p95 doubled", "/sluice cancel acme/chat because p95 doubled", "/sluice cancel models/prod/chat because p95 doubled"} {
		t.Run(text, func(t *testing.T) {
			w, _, c := twoUnderWay(t)
			c.said("ann", text)
			require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State)
			require.NotEqual(t, engineclient.StateCanceled, w.all("embed")[0].State)
			c.said("olga", "/sluice retry prod/chat")
			require.Contains(t, fmt.Sprint(w.stack("models", "prod").Waits), "the first step asks for 10 %, which the target carries already")
			require.Len(t, w.all("embed"), 1)
		})
	}
}

// A command that names none of several, or one that is not there, is answered with what
// there is.
func TestACommandThatNamesNoneOfSeveralDoesNothing(t *testing.T) {
	w, f, c := twoUnderWay(t)
	c.said("ann", "/sluice cancel because p95 doubled")
	c.said("ann", "/sluice cancel prod/nothing because p95 doubled")
	require.NotEqual(t, engineclient.StateCanceled, w.all("chat")[0].State)
	require.NotEqual(t, engineclient.StateCanceled, w.all("embed")[0].State)
	answers := ""
	for _, x := range f.Comments(c.number) {
		answers += x.Body
	}
	require.Contains(t, answers, "Say which one: prod/chat, prod/embed")
	require.Contains(t, answers, "Nothing here is named prod/nothing")
}

// Somebody vouches for the head that the comment showed, and for no later one.
func TestAForkThatMovesAfterSomebodyVouchedIsNotPlanned(t *testing.T) {
	w, git, f := reviewed(t)
	head := git.pushOn("refs/pull/fork/head", git.heads["refs/heads/main"], "fork", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	n := f.OpenPullRequest(forgetest.Opening{Author: "zoe", Title: "fork", Head: head, HeadRef: "fork", Base: git.heads["refs/heads/main"], Fork: true})
	c := &change{w, git, f, n, "fork"}
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	f.Say(n, "ann", "/sluice plan")
	head = git.pushOn("refs/pull/fork/head", head, "another", map[string]string{"prod/main.tf": canaryHouse("secret", 10, 100)})
	f.Push(n, head)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "comes from a fork")
	require.NotContains(t, c.comment(), "Plan digest")
	for _, s := range f.Statuses(head) {
		require.NotContains(t, s.Context, "secret")
	}
}

// A review counts while it approves what could be seen: one from before the plan, and one
// that was withdrawn before the merge, do not.
func TestAReviewCountsWhileItApprovesWhatCouldBeSeen(t *testing.T) {
	for _, case1 := range []string{"given", "withdrawn", "before the plan"} {
		t.Run(case1, func(t *testing.T) {
			w, git, f := reviewed(t)
			w.r.followers[0].config.Approval = ApproveByDigest
			head := git.pushOn("refs/heads/canary", git.heads["refs/heads/main"], "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			n := f.OpenPullRequest(forgetest.Opening{Author: "ann", Title: "canary", Head: head, HeadRef: "canary", Base: git.heads["refs/heads/main"]})
			c := &change{w, git, f, n, "canary"}
			if case1 == "before the plan" {
				f.Approve(n, "olga")
			}
			w.advance(time.Minute)
			require.NoError(t, w.pass())
			if case1 != "before the plan" {
				f.Approve(n, "olga")
			}
			w.advance(time.Minute)
			require.NoError(t, w.pass())
			if case1 == "withdrawn" {
				f.RequestChanges(n, "olga")
			}
			c.merge()
			w.advance(time.Minute)
			w.passes(10*time.Minute, time.Minute)
			require.Len(t, w.all("chat"), map[string]int{"given": 1}[case1])
		})
	}
}

// A forge that fails is told, and neither slows down the passes nor makes the process
// unready; and it is not asked more often because of it.
func TestAFailingForgeSlowsNothingDown(t *testing.T) {
	w, git, f := reviewed(t)
	w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	f.Always(forgetest.CallComments, forgetest.Answer(500))
	for range 20 {
		_ = w.pass()
		w.advance(15 * time.Second)
	}
	s := w.r.followers[0].health()
	require.Zero(t, s.Failures)
	require.NotEmpty(t, s.Forge)
	require.LessOrEqual(t, f.Calls(forgetest.CallOpen), 12, "once in its interval")
}
