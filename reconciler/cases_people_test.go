package reconciler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// keys are those of the HTTP door, one for each role.
var keys = map[string]forge.Role{"nobody": forge.None, "reader": forge.Read, "writer": forge.Write, "keeper": forge.Maintain, "root": forge.Admin}

// ask posts to the door of the process that lives, about models/prod, and checks the
// status of the answer.
func (w *stage) ask(key, verb, body string, want int) {
	w.t.Helper()
	require.NoError(w.t, w.r.ledger.renew(w.t.Context())) // as the process does in between
	w.r.config.HTTP.Keys = nil
	w.r.getenv = func(name string) string { return "secret of " + name }
	for name, role := range keys {
		w.r.config.HTTP.Keys = append(w.r.config.HTTP.Keys, KeyConfig{Name: name, Secret: Secret{Env: name}, Role: role})
	}
	req := httptest.NewRequest(http.MethodPost, "/v1/stacks/models/prod/"+verb, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer secret of "+key)
	rec := httptest.NewRecorder()
	w.r.Handler().ServeHTTP(rec, req)
	require.Equal(w.t, want, rec.Code, "%s by %s: %s", verb, key, rec.Body)
}

// H7: comment and HTTP let the same ranks do the same.
func TestCommentsAndTheHTTPDoorLetTheSamePeopleDoTheSame(t *testing.T) {
	body := map[Verb]string{Approve: `{"digest":"aaaaaaaaaaaa"}`, Override: `{"rule":"x","reason":"y"}`}
	words := map[Verb]string{Approve: " aaaaaaaaaaaa", Override: " x y"}
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	for name, role := range keys {
		f.SetRole(name, role)
		for _, u := range usages {
			if u.verb == Help || u.verb == Override && role >= forge.Maintain { // no rule is there to be lifted
				continue
			}
			allowed, err := Permissions(nil).Allows(t.Context(), Person{Name: name, Door: ByKey}, u.verb, KeyRank(role))
			require.NoError(t, err)
			text, code := body[u.verb], http.StatusForbidden
			if text == "" {
				text = `{"reason":"because"}`
			}
			if allowed.OK {
				code = http.StatusAccepted
			}
			w.ask(name, string(u.verb), text, code)
			word, reason := "/sluice "+string(u.verb)+words[u.verb], ""
			if u.reason == reasonNeeded && words[u.verb] == "" {
				reason = " because"
			}
			id := f.Say(c.number, name, word+reason)
			w.advance(time.Minute)
			require.NoError(t, w.pass())
			denied := slices.ContainsFunc(f.Comments(c.number), func(x forge.Comment) bool {
				return strings.Contains(x.Body, fmt.Sprintf("answer=%d.", id)) && strings.Contains(x.Body, "may not")
			})
			if role == forge.None { // a stranger gets a sign and no comment
				require.False(t, denied)
				denied = slices.Contains(f.Signs(id), forge.Denied)
			}
			require.Equal(t, !allowed.OK, denied, "%s by %s", u.verb, name)
		}
	}
	require.Empty(t, w.all("chat"), "and an open pull request starts nothing, whatever is said")
}

// H5: what is approved on an open pull request waits for the merge: there is no way to
// apply from a pull request.
func TestAnApprovedPullRequestIsAppliedAfterItsMergeOnly(t *testing.T) {
	w, git, f := reviewed(t)
	w.r.followers[0].config.Approval = ApproveByDigest
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	f.Say(c.number, "olga", "/sluice approve "+planning.ShortDigest(w.r.followers[0].pulls.known[c.number].Plans[0].Digest))
	n := len(w.calls)
	w.advance(time.Minute)
	w.passes(2*time.Hour, time.Minute)
	require.Empty(t, w.writes(n))
	c.merge()
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
}

// H9: a commit that comes while one waits for an approval takes its place; the old digest
// approves nothing any more.
func TestACommitThatComesWhileOneWaitsForAnApprovalTakesItsPlace(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	w.r.followers[0].config.Approval = ApproveByDigest
	first := git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.until("it waits", 5*time.Minute, w.phase(Waiting))
	old := w.stack("models", "prod").Plan
	git.push("main", "slower", map[string]string{"prod/main.tf": canaryHouse("chat", 5, 100)})
	w.passes(3*time.Minute, time.Minute)
	s := w.stack("models", "prod")
	require.NotEqual(t, old, s.Plan)
	require.Contains(t, s.Skipped, first)
	require.Equal(t, 1, w.told("run.superseded"))
	w.ask("root", "approve", fmt.Sprintf(`{"digest":%q}`, old), http.StatusAccepted)
	w.passes(3*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"), "the id of the old plan is unusable")
	w.ask("root", "approve", fmt.Sprintf(`{"digest":%q}`, s.Plan), http.StatusAccepted)
	w.until("it runs", 5*time.Minute, w.phase(RollingOut))
	require.Equal(t, 5, w.all("chat")[0].Status.Steps[0].TargetTrafficPercent)
}

// A suspended stack starts nothing until somebody continues it, by either door.
func TestASuspensionHoldsUntilItIsEndedByEitherDoor(t *testing.T) {
	w, git, f := reviewed(t)
	w.ask("keeper", "suspend", `{"reason":"on call changes"}`, http.StatusAccepted)
	require.NoError(t, w.pass())
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.passes(time.Hour, time.Minute)
	require.Empty(t, w.all("chat"))
	require.Contains(t, fmt.Sprint(w.stack("models", "prod").Waits), "on call changes")
	f.Say(c.number, "olga", "/sluice continue")
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
}

// G1: a hint that comes many times is one look.
// G5: and with no hint at all for an hour everything is seen by polling.
func TestDoubledAndLostWebhooksChangeNothing(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	for range 5 {
		w.r.followers[0].lookSoon()
		w.r.followers[0].hasten()
	}
	require.Len(t, w.r.followers[0].wake, 1, "five hints wake once")
	merges := git.calls["merge"]
	require.NoError(t, w.pass())
	require.NoError(t, w.pass())
	require.Equal(t, merges+1, git.calls["merge"], "one plan")
	require.Equal(t, 1, len(f.Comments(c.number)))

	f.Close(c.number)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "closed")
	f.Reopen(c.number)
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "sluice_rollout.r")
	c.merge()
	w.advance(time.Minute)
	w.until("the merge is seen", 3*time.Minute, w.phase(RollingOut))
	w.until("the first step", time.Hour, func() bool { p := w.all("chat")[0].CurrentTrafficPercent; return p != nil && *p == 10 })
	f.Say(c.number, "ann", "/sluice cancel enough")
	w.until("the command is seen", 3*time.Minute, func() bool { return w.all("chat")[0].State == engineclient.StateCanceled })
}

// inCode is what a forge shows as it is, and does not read.
var inCode = regexp.MustCompile("(?s)```+.*?\n```+|``.*?``|`[^`\n]*`")

// hostile is what somebody may write anywhere.
const hostile = "x` </details> @team <!-- sluice --> \x1b[31mred; rm -rf / [click](http://evil.test) |a|b|"

// K11: names and reasons of others are inert in the comment, the statuses, the texts for
// terminals and the history.
func TestTextOfOthersIsInertEverywhere(t *testing.T) {
	w, git, f := reviewed(t)
	head := git.pushOn("refs/heads/x", git.heads["refs/heads/main"], hostile, map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	git.heads["refs/pull/x/head"] = head
	n := f.OpenPullRequest(forgetest.Opening{Author: "ann", Title: hostile, Head: head, HeadRef: "x` @team </details>", Base: git.heads["refs/heads/main"]})
	c := &change{w, git, f, n, "x"}
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	merge := git.push("main", hostile, map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	f.Merge(n, merge)
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it moves", time.Hour, func() bool { p := w.all("chat")[0].CurrentTrafficPercent; return p != nil && *p == 10 })
	f.Say(n, "ann", "/sluice cancel chat because "+strings.ReplaceAll(hostile, "\x1b", ""))
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State)
	for _, x := range f.Comments(n) {
		if !x.Bot {
			continue
		}
		require.NotContains(t, x.Body, "\x1b")
		shown := inCode.ReplaceAllString(x.Body, "")
		require.NotContains(t, shown, "@team", "nobody is called")
		require.Equal(t, strings.Count(shown, "<details>"), strings.Count(shown, "</details>"))
		require.NotContains(t, shown, "](http://evil.test)")
		require.Equal(t, 1, strings.Count(shown, "<!-- sluice "))
	}
	for _, commit := range []string{head, merge} {
		for _, s := range f.Statuses(commit) {
			require.NotContains(t, s.Text+s.Context, "\x1b")
		}
	}
	status, err := w.r.Status(t.Context())
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, status.Render(&text, render.Options{}))
	require.NotContains(t, text.String(), "\x1b")
	require.NotContains(t, w.show(), "\x1b")
	require.NotEmpty(t, c.comment())
}

// K7: late moments of a rollout that a newer commit has overtaken are told under its own
// commit, in statuses and in history, and those of the newer one under its own.
func TestLateMomentsOfAnOldRolloutAreToldUnderItsOwnCommit(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	old := c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	d := w.propose(git, f, "back", map[string]string{"prod/main.tf": backwardsHouse(20, 100)})
	require.NoError(t, w.pass())
	newer := d.merge()
	w.advance(time.Minute)
	w.until("both are over", 8*time.Hour, func() bool { return len(w.all("chat")) == 2 && w.phase(InStep)() })
	w.passes(5*time.Minute, time.Minute)
	all := w.all("chat")
	lines, err := w.r.History(t.Context(), queryAll)
	require.NoError(t, err)
	for _, l := range lines {
		if strings.HasPrefix(l.Kind, "rollout.") {
			if strings.Contains(l.Text, "rollout "+all[0].ID) {
				require.Equal(t, old, l.Commit, l.Text)
			} else {
				require.Equal(t, newer, l.Commit, l.Text)
			}
		}
	}
	require.Contains(t, c.comment(), all[0].ID)
	require.NotContains(t, c.comment(), all[1].ID)
	require.Contains(t, d.comment(), all[1].ID)
	for _, commit := range []string{old, newer} {
		states := f.Statuses(commit)
		require.Equal(t, forge.Success, states[len(states)-1].State)
	}
}

// K5: an endpoint of a very long name has a status of its own, within the forge's bound.
func TestLongNamesHaveStatusesOfTheirOwn(t *testing.T) {
	w := newStage(t)
	names := []string{strings.Repeat("a", 55) + "-one", strings.Repeat("a", 55) + "-two"}
	git := w.follow(strings.Repeat("r", 250), map[string]string{"prod/main.tf": ""})
	f := w.forgeOf(strings.Repeat("r", 250))
	w.begin()
	require.NoError(t, w.pass())
	text := ""
	for i, n := range names {
		text += fmt.Sprintf("resource \"sluice_endpoint\" \"e%d\" {\n  name = %q\n}\n", i, n)
	}
	w.propose(git, f, "more", map[string]string{"prod/main.tf": text})
	require.NoError(t, w.pass())
	seen := map[string]bool{}
	for _, s := range f.Statuses(git.heads["refs/heads/more"]) {
		require.LessOrEqual(t, len([]rune(s.Context)), 255)
		seen[s.Context] = true
	}
	require.Len(t, seen, 2)
}

// Where there is no forge there are keys only, and a key that writes may be let suspend.
func TestAKeyMayWhatARepositoryWithoutAForgeLetsIt(t *testing.T) {
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.ask("writer", "suspend", `{"reason":"because"}`, http.StatusForbidden)
	w.repository("models").Permissions = Permissions{Suspend: {{Role: forge.Write}}, Approve: {}}
	w.begin()
	w.ask("writer", "suspend", `{"reason":"because"}`, http.StatusAccepted)
	w.ask("reader", "suspend", `{"reason":"because"}`, http.StatusForbidden)
	w.ask("root", "approve", `{"digest":"aaaaaaaaaaaa"}`, http.StatusForbidden)
	w.ask("writer", "continue", `{}`, http.StatusForbidden)
	w.ask("keeper", "continue", `{}`, http.StatusAccepted)
}
