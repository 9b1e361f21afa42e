package testacc

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/probe"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// A pull request from its plan to the receipt of what it brought, with real Git, a real
// engine, real traffic and the real command: denied, mended, merged, parked, canceled by
// somebody who may, taken back.
func TestReconcileAPullRequestFromPlanToReceipt(t *testing.T) {
	for name, world := range map[string]func(w *followed) *follower{
		"Git over HTTP, webhooks": func(w *followed) *follower {
			w.replace("token_file = \"forge\"", "token_file = \"forge\"\n    webhook_secret_file = \"hook\"")
			p := w.start()
			p.hooked()
			return p
		},
		"Git over SSH, polling alone": func(w *followed) *follower {
			w.overSSH()
			return w.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := follow(t, fastEngine, `stack "prod" {`, "policy {\n    path = \"policies\"\n  }\n\n  stack \"prod\" {")
			w.policy()
			ears := w.listens()
			s := &story{w: w, ears: ears, follower: world(w), traffic: w.probed(60)}
			s.serves()
			s.isDeniedAndMended()
			s.parks()
			s.isCanceledByWhoMay()
			s.isTakenBack()
			s.leavesItsReceipt()
		})
	}
}

// policy takes the ladder's rules of the examples, with limits for these waits.
func (w *followed) policy() {
	w.t.Helper()
	for _, name := range []string{"plan.rego", "ladder.rego"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "policy", "rego", name))
		require.NoError(w.t, err)
		w.write(filepath.Join("policies", name), string(text))
	}
	w.write(filepath.Join("policies", "data.json"), `{"limits": {"first_step_percent": 10, "ungated_percent": 10, "ingestion_lag_seconds": 0}}`)
}

// story is one pull request.
type story struct {
	w         *followed
	ears      *ears
	follower  *follower
	pull      *pull
	traffic   func() probe.Tally // ends the traffic
	comment   int64              // the one that is edited in place
	denied    string             // head that the policy denies
	mallory   int64
	takesBack int64
}

// soon bounds a wait for what a few passes bring; a pass comes every 5 s.
const soon = 40 * time.Second

// probed sends steady traffic once the endpoint serves, and counts every answer.
func (w *followed) probed(rps float64) func() probe.Tally {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var tally probe.Tally
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if w.engine.untilServed(ctx, "acme/chat") {
			tally, err = probe.Run(ctx, probe.Config{BaseURL: w.engine.GatewayURL + "/v1", Model: "acme/chat", RPS: rps})
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	return func() probe.Tally {
		cancel()
		<-done
		require.NoError(w.t, err)
		return tally
	}
}

// serves: what Git has is applied before anybody asks for more.
func (s *story) serves() {
	t := s.w.t
	require.True(t, assertSoon(soon, func() bool { return s.follower.stack().Phase == "in step" }), "what is in Git is applied first")
	require.Empty(t, s.w.rollouts())
}

// isDeniedAndMended: the first step is too large; the author pushes a smaller one.
func (s *story) isDeniedAndMended() {
	t := s.w.t
	s.pull = s.w.propose("canary", gitHouse(gitCanary("cr_slow", "2s", 50, 100)))
	s.pull.shows(soon, "### ✗ Plan `", "for chat is denied by policy (2 denials): 1 rollout, 2 created",
		"**deny** `sluice_rollout.next`: the first step moves 50 % of traffic, and 10 % is the most `[first_step]`",
		"| 1 | 50% (+50) |", "- `+` create `sluice_rollout.next`", "traffic = 50 }, { traffic = 100 }", "METRIC_REGRESSION")
	s.denied, s.comment = s.pull.head, s.pull.own()[0].ID
	s.endsIn(s.denied, forge.Failure, "denied: ")

	s.pull.push(gitHouse(gitCanary("cr_slow", "2s", 10, 100)))
	s.pull.shows(soon, "### ▶ Plan `", "for chat: 1 rollout, 2 created", "| 1 | 10% (+10) |", "**To apply:** merge",
		"Earlier pushes (1 plan", "is denied by policy (2 denials)")
	s.endsIn(s.pull.head, forge.Success, "plan ok: 1 rollout, 2 created")
	require.Empty(t, s.w.rollouts(), "nothing is done before the merge")
}

// endsIn waits until a commit's one status is what it is to be.
func (s *story) endsIn(commit string, state forge.StatusState, text string) {
	t := s.w.t
	t.Helper()
	var all []forge.Status
	require.True(t, assertSoon(soon, func() bool {
		all = s.w.forge.Statuses(commit)
		return len(all) > 0 && all[len(all)-1].State == state && strings.HasPrefix(all[len(all)-1].Text, text)
	}), "%v", all)
	for _, one := range all {
		require.Equal(t, "sluice/models/chat", one.Context)
	}
}

// parks: the merge starts the canary, whose target is slower.
func (s *story) parks() {
	s.pull.merge(gitHouse(gitCanary("cr_slow", "2s", 10, 100)))
	s.pull.shows(soon, "### ‖ chat is parked: `METRIC_REGRESSION` at 10 %", "✗ `router_latency`", "worse (budget 100 %)",
		"**Not touched:** the split stays at 90/10", "`/sluice resume chat`", "`/sluice promote chat`", "`/sluice cancel chat because …`")
	require.Equal(s.w.t, []string{"SYSTEM_PAUSED"}, s.w.states())
	require.True(s.w.t, assertSoon(soon, func() bool { return slices.Contains(s.ears.heard(), "rollout.parked") }), "%v", s.ears.heard())
}

// isCanceledByWhoMay: zoe may read the repository, ann may write.
func (s *story) isCanceledByWhoMay() {
	t := s.w.t
	s.mallory = s.w.forge.Say(s.pull.number, "zoe", "/sluice cancel because I say so")
	s.signed(s.mallory, forge.Denied)
	comments := s.w.forge.Comments(s.pull.number)
	require.Contains(t, comments[len(comments)-1].Body, "zoe may not cancel: it takes role write or more")
	require.Equal(t, []string{"SYSTEM_PAUSED"}, s.w.states())

	s.signed(s.w.forge.Say(s.pull.number, "ann", "/sluice cancel p95 doubled"), forge.Done)
	s.pull.shows(soon, "### ✗ chat: canceled at 90/10", "`cancel` by `ann`", "p95 doubled")
	require.Equal(t, []string{"CANCELED"}, s.w.states())
}

// signed waits until a comment was answered with a sign.
func (s *story) signed(comment int64, sign forge.Sign) {
	s.w.t.Helper()
	require.True(s.w.t, assertSoon(soon, func() bool { return slices.Contains(s.w.forge.Signs(comment), sign) }), "%v", s.w.forge.Signs(comment))
}

// isTakenBack: the way back is a rollout like any other, and the comment follows it.
func (s *story) isTakenBack() {
	t := s.w.t
	s.takesBack = s.w.forge.Say(s.pull.number, "ann", "/sluice reverse nobody needs it")
	s.signed(s.takesBack, forge.Done)
	require.True(t, assertSoon(soon, func() bool { return slices.Equal([]string{"CANCELED", "COMPLETED"}, s.w.states()) }), "%v", s.w.states())
}

// leavesItsReceipt: one comment that says all, few statuses, and nothing more once it is over.
func (s *story) leavesItsReceipt() {
	t := s.w.t
	final := s.pull.shows(soon, "### ✓ chat: taken back in ", "`reverse` by `ann`", "nobody needs it", "(takes back `rol_", "all answered with 200")
	t.Logf("the comment at the end:\n%s", final)
	status, _, _ := s.follower.ask(doorKeys["wall"], "status")
	drift, _, _ := s.follower.ask(doorKeys["wall"], "drift", "models/prod")
	t.Logf("the status at the end:\n%s\n%s", status, drift)
	all := s.w.rollouts()
	require.Len(t, all, 2, "one canary and one on the way back")
	require.Equal(t, all[0].TargetDeploymentID, all[1].SourceDeploymentID)
	require.Equal(t, all[0].SourceDeploymentID, all[1].TargetDeploymentID)
	require.Equal(t, s.comment, s.pull.own()[0].ID, "edited in place")
	require.Equal(t, "ahead of Git", s.follower.stack().Phase)
	for _, commit := range []string{s.denied, s.pull.head, s.w.main} {
		require.LessOrEqual(t, len(s.w.forge.Statuses(commit)), 15, "%v", s.w.forge.Statuses(commit))
	}
	writes, looks := s.w.forge.Writes(forgetest.Any), s.w.forge.Calls(forgetest.CallOpen)
	require.True(t, assertSoon(soon, func() bool { return s.w.forge.Calls(forgetest.CallOpen) >= looks+2 }))
	require.Equal(t, writes, s.w.forge.Writes(forgetest.Any), "nothing new, nothing written")

	heard := s.ears.heard()
	for _, kind := range []string{"run.began", "rollout.canceled", "rollout.completed", "stack.ahead_of_git"} {
		require.Contains(t, heard, kind)
	}
	require.Contains(t, strings.Join(s.ears.chat, "\n"), "is parked at 10 %: METRIC_REGRESSION")

	tally := s.traffic()
	require.Zero(t, tally.Non200(), "%s", tally)
	require.Len(t, tally.ByDeployment, 2, "%s: both sides have served", tally)
	require.Less(t, s.follower.end(syscall.SIGTERM), 10*time.Second)
	require.Zero(t, s.follower.cmd.ProcessState.ExitCode(), s.follower.said)
}
