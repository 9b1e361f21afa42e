package reconciler

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// backwardsHouse declares the canary from the candidate to the stable one.
func backwardsHouse(steps ...int) string {
	return strings.Replace(canaryHouse("chat", steps...), "source_deployment_id = sluice_deployment.stable.id\n  target_deployment_id = sluice_deployment.candidate.id", "source_deployment_id = sluice_deployment.candidate.id\n  target_deployment_id = sluice_deployment.stable.id", 1)
}

// J3: what an earlier rollout has left is no drift between the making and the start of the
// next one; where drift is corrected, the two would wait for each other for ever.
func TestTheWayBackStartsWhereDriftIsCorrected(t *testing.T) {
	w, git := canary(t, 10, 100)
	w.repository("models").Drift = CorrectDrift
	w.begin()
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	git.push("main", "and back", map[string]string{"prod/main.tf": backwardsHouse(20, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[1].State)
	require.Zero(t, w.told("drift.seen"))
}

// E11: a rollout that was made and could not be started waits for nothing when Git does
// not declare it any more: it is taken back, and its endpoint is free.
func TestARolloutThatNeverStartedGoesWithItsBlock(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	w.fault = func(req *http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/start") {
			return errNoStart
		}
		return nil
	}
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.Error(t, w.pass())
	require.Len(t, w.all("chat"), 1)
	w.fault = nil
	git.push("main", "on second thoughts", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.until("it is taken back", 10*time.Minute, func() bool { return len(w.all("chat")) == 0 && w.stack("models", "prod").Phase == InStep })
	w.passes(5*time.Minute, time.Minute)
	require.Equal(t, InStep, w.stack("models", "prod").Phase, w.show())
}

var errNoStart = &api.Error{Status: http.StatusServiceUnavailable, Message: "not now"}

// M3, H13: where every commit is run, one that only another commit can help does not hold
// up those behind it.
func TestACommitThatCannotBeDoneHoldsUpNoQueue(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Supersede = Every
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	git.push("main", "a parse error", map[string]string{"prod/main.tf": canaryHouse("chat")[:200]})
	w.until("it is seen", 5*time.Minute, w.phase(Invalid))
	git.push("main", "the fix", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.until("the fix runs", 10*time.Minute, w.phase(RollingOut))
}

// F1: history that is forced back to a commit whose rollout is under way watches that one
// rollout on.
func TestHistoryForcedBackToARunningCommitWatchesItOn(t *testing.T) {
	w, git := canary(t, 10, 100)
	first := git.heads["refs/heads/main"]
	git.push("main", "slower", map[string]string{"prod/main.tf": canaryHouse("chat", 5, 50, 100)})
	require.NoError(t, w.pass())
	git.heads["refs/heads/main"] = first
	w.advance(time.Minute)
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	require.Len(t, w.all("chat"), 1)
	require.Equal(t, "COMPLETED", w.stack("models", "prod").Rollouts[0].State)
}

// What people have asked for is kept with its answer for a while, and not for ever.
func TestAnAskIsForgottenAfterAWhile(t *testing.T) {
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep })
	k := StackKey{"models", "prod"}
	require.NoError(t, w.r.recordAsk(t.Context(), k, askRecord{ID: "http 1", Stack: "prod", Verb: Replan, Who: "ana", Via: "http", At: w.now}))
	w.passes(7*24*time.Hour, 6*time.Hour)
	a, err := read[askRecord](t.Context(), w.journal, askKey(k, "http 1"))
	require.NoError(t, err)
	require.False(t, a.Ended.IsZero())
	w.passes(2*24*time.Hour, 6*time.Hour)
	a, err = read[askRecord](t.Context(), w.journal, askKey(k, "http 1"))
	require.NoError(t, err)
	require.Empty(t, a.ID)
}

// F1, M3: where every commit is run, a commit that history was rewritten under gives way to
// the one that stands there now, also after a restart.
func TestACommitThatIsGoneGivesWayWhereEveryOneIsRun(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Supersede = Every
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	first := git.heads["refs/heads/main"]
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.begin()
	tip := git.pushOn("refs/heads/main", first, "another history", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 5", 1)})
	w.until("it comes to rest", 6*time.Hour, func() bool { s := w.stack("models", "prod"); return s.Phase == InStep && s.Settled == tip })
}
