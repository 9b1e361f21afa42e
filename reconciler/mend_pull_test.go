package reconciler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// answers are the comments by which the reconciler has answered commands.
func answers(f *forgetest.World, number int) string {
	var out []string
	for _, c := range f.Comments(number) {
		if c.Bot && strings.HasPrefix(c.Body, "<!-- sluice answer=") {
			out = append(out, c.Body)
		}
	}
	return strings.Join(out, "\n")
}

// Whoever may not approve a plan on its own pull request may not do it on another one.
func TestAnAuthorDoesNotApproveTheirPlanByAnotherPullRequest(t *testing.T) {
	w, git, f := reviewed(t)
	w.r.followers[0].config.Approval = ApproveByDigest
	f.SetRole("mia", forge.Maintain)
	five := func(s string) string { return strings.ReplaceAll(s, "max_replicas = 4", "max_replicas = 5") }
	old := w.propose(git, f, "old", map[string]string{"prod/main.tf": five(canaryHouse("chat"))})
	require.NoError(t, w.pass())
	f.Say(old.number, "olga", "/sluice approve "+planning.ShortDigest(w.r.followers[0].pulls.known[old.number].Plans[0].Digest))
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	old.merge()
	w.advance(time.Minute)
	w.until("the old one is done", 20*time.Minute, w.phase(InStep))

	head := git.pushOn("refs/heads/mine", git.heads["refs/heads/main"], "mine", map[string]string{"prod/main.tf": five(canaryHouse("chat", 10, 100))})
	n := f.OpenPullRequest(forgetest.Opening{Author: "mia", Title: "mine", Head: head, HeadRef: "mine", Base: git.heads["refs/heads/main"]})
	mine := &change{w, git, f, n, "mine"}
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	word := "/sluice approve " + planning.ShortDigest(w.r.followers[0].pulls.known[n].Plans[0].Digest)
	mine.merge()
	w.advance(time.Minute)
	w.passes(3*time.Minute, time.Minute)
	f.Say(old.number, "mia", word)
	w.advance(time.Minute)
	w.passes(4*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"))
	require.Contains(t, answers(f, old.number), "say it on pull request 2")
	f.Say(n, "olga", word)
	w.advance(time.Minute)
	w.until("the plan that olga approved is applied", 10*time.Minute, func() bool { return len(w.all("chat")) == 1 })
}

// A word about a park is not done at the next park, which nobody has looked at.
func TestAPromoteSaidOfAnEarlierParkIsRefused(t *testing.T) {
	parkedAt := api.Time{Time: epoch.Add(time.Hour)}
	live := api.Rollout{ID: "rol_1", State: "ROLLOUT_STATE_SYSTEM_PAUSED", PauseInfo: &api.PauseInfo{PausedAt: parkedAt}}
	require.ErrorContains(t, fresh(&askRecord{At: parkedAt.Add(-time.Second)}, live), "has parked again since")
	require.NoError(t, fresh(&askRecord{At: parkedAt.Time}, live))
	live.State = "ROLLOUT_STATE_RUNNING"
	require.NoError(t, fresh(&askRecord{At: parkedAt.Add(-time.Second)}, live))
}

// The same from the forge to the engine: the forge was away while the rollout was resumed
// and parked once more.
func TestAPromoteThatIsHeardLateDoesNotSkipTheNextGate(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 30, 60, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Second)
	require.NoError(t, w.pass())
	slow := func(ms float64) {
		for _, d := range w.endpoint("chat").Deployments {
			if strings.HasSuffix(d.Name, "candidate") {
				w.meter.value[d.ID] = ms
			}
		}
	}
	slow(400)
	w.until("it is parked", 2*time.Hour, w.phase(Parked))
	f.Always(forgetest.CallComments, forgetest.Answer(500))
	f.Say(c.number, "olga", "/sluice promote this park is fine")
	slow(100)
	r := w.all("chat")[0]
	_, err := w.person("sre").ResumeRollout(t.Context(), r.EndpointID, r.ID, api.Control{})
	require.NoError(t, err)
	for range 60 {
		if *w.all("chat")[0].CurrentStep == 1 {
			break
		}
		w.advance(time.Minute)
		_ = w.pass() // the forge is away
	}
	slow(900)
	for range 60 {
		if parked(w.all("chat")[0].State) {
			break
		}
		w.advance(time.Minute)
		_ = w.pass()
	}
	require.True(t, parked(w.all("chat")[0].State))
	f.Heal()
	w.advance(time.Minute)
	w.passes(4*time.Minute, time.Minute)
	require.Equal(t, 1, *w.all("chat")[0].CurrentStep)
	require.Contains(t, answers(f, c.number), "has parked again since")
}

// unreadable is a forge with one pull request whose comments, or which itself, is not there.
type unreadable struct {
	forge.Forge
	number int
	gone   bool
}

func (u *unreadable) Comments(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	if number == u.number {
		return nil, &forge.Refused{Status: 404, What: "list the comments"}
	}
	return u.Forge.Comments(ctx, number, since)
}

func (u *unreadable) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	all, err := u.Forge.Open(ctx, base)
	return slices.DeleteFunc(all, func(pr forge.PullRequest) bool { return u.gone && pr.Number == u.number }), err
}

func (u *unreadable) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	if number == u.number && u.gone {
		return forge.PullRequest{}, &forge.Refused{Status: 404, What: "read the pull request"}
	}
	return u.Forge.PullRequest(ctx, number)
}

// A cancel is heard although another pull request cannot be read, or is gone.
func TestAPullRequestThatCannotBeReadStopsNoOther(t *testing.T) {
	for _, gone := range []bool{false, true} {
		w, git, f := rollingOut(t)
		c := w.propose(git, f, "other", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
		require.NoError(t, w.pass())
		w.r.followers[0].forge = &unreadable{w.forges["models"], c.number, gone}
		f.Say(c.number, "ann", "hello")
		f.Say(1, "ann", "/sluice cancel at once, it burns")
		for range 3 {
			w.advance(time.Minute)
			_ = w.pass() // it tells what could not be read
		}
		require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State)
	}
}
