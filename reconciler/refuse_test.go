package reconciler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// The talk of a pull request is locked, or has as many comments as the forge takes: an answer
// is refused, and the comment that is there goes on telling what happens.
func TestAnAnswerThatTheForgeRefusesHoldsUpNoReport(t *testing.T) {
	for _, status := range []int{403, 404, 410, 422, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			w, git, f := reviewed(t)
			c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			require.NoError(t, w.pass())
			require.NotEmpty(t, c.comment())
			f.Always(forgetest.CallComment, forgetest.Answer(status)) // no further comment is taken; edits are
			wrong := f.Say(c.number, "ben", "/sluice aprove")
			w.advance(time.Minute)
			w.stumble(2)
			tries := f.Calls(forgetest.CallComment)
			c.merge()
			w.advance(time.Minute)
			w.stumble(10)
			require.NotEmpty(t, w.all("chat"))
			require.Contains(t, c.comment(), w.all("chat")[0].ID)
			if status == 404 || status == 500 { // it may pass
				f.Heal()
				w.stumble(2)
				require.Contains(t, answers(f, c.number), "did you mean approve?")
				return
			}
			require.Equal(t, tries, f.Calls(forgetest.CallComment), "what was refused is not sent again")
			require.Contains(t, f.Signs(wrong), forge.Denied)
		})
	}
}

// A status that the forge refuses holds up neither those of other endpoints nor the comment.
func TestACommentThatTheForgeRefusesHoldsUpNoStatus(t *testing.T) {
	w, git, f := reviewed(t)
	f.Always(forgetest.CallComment, forgetest.Answer(403))
	w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.stumble(1)
	require.Len(t, f.Statuses(git.heads["refs/heads/canary"]), 1)
}

// In an incident a forge answers that nothing is there. The merged pull request is not
// forgotten for that: people go on steering by it.
func TestACancelIsHeardAfterTheForgeSaidThatNothingIsThere(t *testing.T) {
	w, f, c := underWay(t)
	lost := func(span time.Duration) {
		f.Always(forgetest.CallComments, forgetest.Answer(404))
		f.Always(forgetest.CallPullRequest, forgetest.Answer(404))
		w.stumble(int(span / time.Minute))
		f.Heal()
	}
	lost(2 * time.Minute)
	f.Say(c.number, "ann", "/sluice cancel prod/chat because p95 doubled")
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State, "%s\n%s", answers(f, c.number), w.show())
	require.Zero(t, w.r.followers[0].pulls.known[c.number].Missing)
}

// One that is not there for a day is forgotten, unless what it brought is still under way.
func TestAPullRequestThatIsGoneForADayIsForgottenWhenItsRunIsOver(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	other := w.propose(git, f, "words", map[string]string{"prod/words.tf": "# a word\n"})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.slow("chat", 400)
	w.until("it is parked", 2*time.Hour, w.phase(Parked))
	w.r.followers[0].forge = &unreadable{w.forges["models"], c.number, true}
	w.wait(25 * time.Hour)
	require.Contains(t, w.r.followers[0].pulls.known, c.number, "its rollout is parked")
	w.r.followers[0].forge = w.forges["models"]
	f.Say(c.number, "ann", "/sluice cancel prod/chat because p95 doubled")
	w.advance(time.Minute)
	w.until("it is canceled", 10*time.Minute, func() bool { return w.all("chat")[0].State == engineclient.StateCanceled })

	w.r.followers[0].forge = &unreadable{w.forges["models"], other.number, true}
	w.wait(23 * time.Hour)
	require.Contains(t, w.r.followers[0].pulls.known, other.number)
	w.wait(2 * time.Hour)
	require.NotContains(t, w.r.followers[0].pulls.known, other.number)
}

// slow makes the candidate of an endpoint answer in so many milliseconds.
func (w *stage) slow(endpoint string, ms float64) {
	w.t.Helper()
	w.meter.value[w.deploymentID(endpoint, "candidate")] = ms
}

// wait lets time go by with a pass in each quarter of an hour.
func (w *stage) wait(d time.Duration) {
	w.t.Helper()
	for until := w.now.Add(d); w.now.Before(until); w.advance(15 * time.Minute) {
		require.NoError(w.t, w.r.Begin(w.t.Context()))
		_ = w.pass()
	}
}

// What a forge refuses for good is not sent again in each pass: neither a comment nor a
// status, and neither waits for the other.
func TestWhatAForgeRefusesForGoodIsTriedSeldom(t *testing.T) {
	for call, status := range map[forgetest.Call]int{forgetest.CallSetStatus: 422, forgetest.CallComment: 403} {
		t.Run(string(call), func(t *testing.T) {
			w, git, f := reviewed(t)
			f.Always(call, forgetest.Answer(status))
			c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			n := f.Calls(call)
			for range 24 * 60 {
				require.NoError(t, w.r.ledger.renew(t.Context()))
				_ = w.pass() // the refusal is told
				w.advance(time.Minute)
			}
			require.Less(t, f.Calls(call)-n, 60)
			require.Greater(t, f.Calls(call)-n, 20)
			if call == forgetest.CallComment {
				require.NotEmpty(t, f.Statuses(git.heads["refs/heads/canary"]))
			} else {
				require.NotEmpty(t, c.comment())
			}
		})
	}
}

// Our comment that a person deletes or changes is there again, as we wrote it, within an hour
// or so, once.
func TestACommentThatAPersonHasTouchedIsPutRight(t *testing.T) {
	for name, touch := range map[string]func(f *forgetest.World, number int, x forge.Comment){
		"deleted": func(f *forgetest.World, number int, x forge.Comment) { f.Delete(number, x.ID) },
		"changed": func(f *forgetest.World, number int, x forge.Comment) {
			marker, _, _ := strings.Cut(x.Body, "\n")
			f.Edit(number, x.ID, marker+"\nApproved by `olga`")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, git, f := reviewed(t)
			c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			require.NoError(t, w.pass())
			was := c.comment()
			require.Contains(t, was, "Plan")
			for _, x := range f.Comments(c.number) {
				if x.Bot {
					touch(f, c.number, x)
				}
			}
			w.passes(2*time.Hour, time.Minute)
			require.Equal(t, was, c.comment())
			n := f.Writes(forgetest.Any)
			w.passes(5*time.Hour, time.Minute)
			require.Equal(t, n, f.Writes(forgetest.Any))
		})
	}
}
