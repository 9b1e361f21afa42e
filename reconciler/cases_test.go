package reconciler

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// canary is a world with the endpoint chat in step and a canary to b under way.
func canary(t *testing.T, steps ...int) (*stage, *memoryRemote) {
	t.Helper()
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("the endpoint serves", 20*time.Minute, func() bool {
		return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2)
	})
	git.push("main", "canary to b", map[string]string{"prod/main.tf": canaryHouse("chat", steps...)})
	w.until("the canary runs", 10*time.Minute, func() bool { return w.stack("models", "prod").Phase == RollingOut })
	return w, git
}

// serves reports whether a deployment has so many ready replicas.
func (w *stage) serves(endpoint, deployment string, ready int) bool {
	ep := w.endpoint(endpoint)
	for _, d := range ep.Deployments {
		if strings.HasSuffix(d.Name, deployment) {
			return d.ReadyReplicas == ready
		}
	}
	return false
}

func (w *stage) endpoint(name string) api.Endpoint {
	w.t.Helper()
	for ep, err := range w.Client.Endpoints(w.t.Context(), engineclient.ListOptions{}) {
		require.NoError(w.t, err)
		if strings.HasSuffix(ep.Name, "/"+name) {
			return ep
		}
	}
	w.t.Fatalf("no endpoint %s", name)
	return api.Endpoint{}
}

func (w *stage) phase(want Phase) func() bool {
	return func() bool { return w.stack("models", "prod").Phase == want }
}

// C3: a rollout that a person has canceled is not started again by itself, only for a new
// spec or on a person's word.
func TestACanceledRolloutIsNotStartedAgainByItself(t *testing.T) {
	w, git := canary(t, 10, 100)
	r := w.all("chat")[0]
	_, err := w.person("ana").CancelRollout(t.Context(), r.EndpointID, r.ID, api.Control{Reason: "p95 looks wrong"})
	require.NoError(t, err)
	w.until("it is seen", 5*time.Minute, w.phase(Ahead))
	n := len(w.calls)
	w.passes(50*time.Minute, time.Minute)
	require.Len(t, w.all("chat"), 1)
	require.Empty(t, w.writes(n))
	require.Contains(t, w.stack("models", "prod").Waits[0].What, "canceled by ana")

	git.push("main", "a readme", map[string]string{"README.md": "nothing"})
	w.passes(5*time.Minute, time.Minute)
	require.Len(t, w.all("chat"), 1, "another commit with the same spec is no new decision")

	git.push("main", "smaller first step", map[string]string{"prod/main.tf": canaryHouse("chat", 5, 100)})
	w.until("the new spec runs", 10*time.Minute, w.phase(RollingOut))
	require.Len(t, w.all("chat"), 2)
}

// C3: a process that begins with an empty journal respects the cancel too.
func TestACancelIsRespectedByAJournalThatHasJustBegun(t *testing.T) {
	w, _ := canary(t, 10, 100)
	r := w.all("chat")[0]
	_, err := w.person("ana").CancelRollout(t.Context(), r.EndpointID, r.ID, api.Control{Reason: "no"})
	require.NoError(t, err)
	w.journal, w.config.State.Instance = newJournal(), w.r.instance
	w.begin()
	w.passes(30*time.Minute, time.Minute)
	require.Len(t, w.all("chat"), 1)
	require.Equal(t, Ahead, w.stack("models", "prod").Phase)
}

// C11: after a cancel the next good commit is planned and started.
// E11: and it waits for nothing of the one before.
func TestTheNextCommitStartsAfterACancel(t *testing.T) {
	w, git := canary(t, 10, 100)
	r := w.all("chat")[0]
	_, err := w.person("ana").CancelRollout(t.Context(), r.EndpointID, r.ID, api.Control{Reason: "no"})
	require.NoError(t, err)
	w.until("it is seen", 5*time.Minute, w.phase(Ahead))
	git.push("main", "again, slower", map[string]string{"prod/main.tf": canaryHouse("chat", 5, 50, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it ends", 5*time.Hour, w.phase(InStep))
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[1].State)
}

// C5: paused for nine days: no deadline, no flap, one report of the park.
func TestAParkOfNineDaysIsToldOnce(t *testing.T) {
	w, _ := canary(t, 10, 100)
	r := w.all("chat")[0]
	_, err := w.person("ana").PauseRollout(t.Context(), r.EndpointID, r.ID, api.Control{Reason: "holidays"})
	require.NoError(t, err)
	w.until("it is parked", 5*time.Minute, w.phase(Parked))
	since := w.stack("models", "prod").Since
	n := len(w.calls)
	w.passes(9*24*time.Hour, time.Hour)
	require.Empty(t, w.writes(n))
	require.Equal(t, since, w.stack("models", "prod").Since)
	require.Equal(t, 1, w.told("rollout.parked"))
	require.Equal(t, engineclient.StatePaused, w.all("chat")[0].State)
}

// told counts the lines of history of a kind.
func (w *stage) told(kind string) int {
	w.t.Helper()
	n := 0
	for e, err := range w.journal.History(w.t.Context(), journal.Query{Kind: kind}) {
		require.NoError(w.t, err)
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// E3: an answer that was lost after the engine took the call makes no second rollout.
func TestALostAnswerMakesNoSecondRollout(t *testing.T) {
	for _, verb := range []string{"/rollouts", "/start", "/deployments", "/endpoints"} {
		t.Run(verb, func(t *testing.T) {
			w := newStage(t)
			git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
			w.begin()
			lost := 0
			w.lost = func(req *http.Request) bool {
				if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, verb) && lost < 2 {
					lost++
					return true
				}
				return false
			}
			tolerant := func(d time.Duration) {
				for until := w.now.Add(d); w.now.Before(until); w.advance(30 * time.Second) {
					_ = w.pass()
				}
			}
			tolerant(10 * time.Minute)
			git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			tolerant(3 * time.Hour)
			require.Positive(t, lost)
			require.Len(t, w.all("chat"), 1)
			require.Equal(t, InStep, w.stack("models", "prod").Phase, w.show())
		})
	}
}

// E9: a restart with nothing new only reads.
func TestARestartOnlyReads(t *testing.T) {
	w, _ := canary(t, 10, 100)
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	n := len(w.calls)
	w.begin()
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, InStep, w.stack("models", "prod").Phase)
}

// E13: a commit that comes while a rollout runs is planned at once and waits for its end;
// the rollout stays as it is.
func TestACommitThatComesInMidRolloutWaitsForItsEnd(t *testing.T) {
	w, git := canary(t, 10, 100)
	second := git.push("main", "and back", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat", 20, 100), "source_deployment_id = sluice_deployment.stable.id\n  target_deployment_id = sluice_deployment.candidate.id", "source_deployment_id = sluice_deployment.candidate.id\n  target_deployment_id = sluice_deployment.stable.id", 1)})
	require.NoError(t, w.pass())
	s := w.stack("models", "prod")
	require.Equal(t, second, s.Commit)
	require.Equal(t, RollingOut, s.Phase)
	require.Contains(t, fmt.Sprint(s.Waits), w.all("chat")[0].ID+" is under way")
	w.until("both are over", 6*time.Hour, w.phase(InStep))
	all := w.all("chat")
	require.Len(t, all, 2)
	require.Equal(t, engineclient.StateCompleted, all[0].State)
	require.Equal(t, engineclient.StateCompleted, all[1].State)
}

// F5: a deleted branch is no empty folder: nothing is touched, and its return is noticed.
func TestADeletedBranchTouchesNothing(t *testing.T) {
	w, git := canary(t, 10, 100)
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 100}
	w.begin()
	head := git.heads["refs/heads/main"]
	n := len(w.calls)
	delete(git.heads, "refs/heads/main")
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, 1, w.told("source.deleted"))
	git.heads["refs/heads/main"] = head
	w.passes(2*time.Minute, time.Minute)
	require.Equal(t, 1, w.told("source.restored"))
	require.Empty(t, w.writes(n))
	require.Equal(t, InStep, w.stack("models", "prod").Phase)
}

// F7: an empty repository, and one without matching files, ask for nothing.
func TestAnEmptyRepositoryAsksForNothing(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", nil)
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 100}
	w.begin()
	w.passes(3*time.Minute, time.Minute)
	require.Empty(t, w.writes(0))
	require.Equal(t, Waiting, w.stack("models", "prod").Phase, w.show())
	git.push("main", "only a .gitignore", map[string]string{".gitignore": "*.log"})
	w.passes(3*time.Minute, time.Minute)
	require.Empty(t, w.writes(0))
	require.Equal(t, Waiting, w.stack("models", "prod").Phase, w.show())
	require.Equal(t, Wait{For: ForSource, What: "there is nothing to apply: no *.tf file is in prod at commit " + short(git.heads["refs/heads/main"]) + "; nor is one anywhere among the watched paths"}, w.stack("models", "prod").Waits[0])
}

// F7, J7: a folder that is moved away, or mistyped, is not one whose wishes are fulfilled.
func TestAFolderThatIsNotThereIsNotInStep(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	n, told := len(w.calls), w.told("stack.waiting")
	git.push("main", "tidy up", map[string]string{"prod/main.tf": "", "production/main.tf": canaryHouse("chat")})
	w.passes(time.Hour, time.Minute)
	require.Empty(t, w.writes(n))
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase)
	require.Contains(t, s.Waits[0].What, "no *.tf file is in prod at commit "+short(s.Commit)+"; among the watched paths there are some in production. What the stack has stays as it is")
	require.Equal(t, told+1, w.told("stack.waiting"))
	w.repository("models").Stacks[0].Folder = "production"
	w.begin()
	w.until("it is found", 10*time.Minute, w.phase(InStep))
	require.Empty(t, w.writes(n))
}

// H13: three merges in one minute: with latest the skipped ones are listed, with every all
// are run in their order.
func TestMergesThatOvertakeEachOtherAreNeverSilent(t *testing.T) {
	for _, mode := range []SupersedeMode{Latest, Every} {
		t.Run(string(mode), func(t *testing.T) {
			w := newStage(t)
			git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
			w.repository("models").Supersede = mode
			w.begin()
			w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
			first := git.push("main", "one", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			second := git.push("main", "two", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
			git.push("main", "three", map[string]string{"prod/main.tf": canaryHouse("chat", 30, 100)})
			w.until("something runs", 10*time.Minute, w.phase(RollingOut))
			require.NoError(t, w.pass())
			if mode == Latest {
				require.Equal(t, []string{first, second}, w.stack("models", "prod").Skipped)
				require.Equal(t, 30, w.all("chat")[0].Status.Steps[0].TargetTrafficPercent)
				return
			}
			require.Empty(t, w.stack("models", "prod").Skipped)
			require.Equal(t, 10, w.all("chat")[0].Status.Steps[0].TargetTrafficPercent)
		})
	}
}

// J3: drift is corrected, but never against a rollout that is under way, and what one has
// left is not undone.
func TestDriftIsNeverCorrectedAgainstARollout(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Drift = CorrectDrift
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 50, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	require.NoError(t, w.pass())
	n := len(w.calls)
	w.until("half is over", time.Hour, func() bool {
		p := w.all("chat")[0].CurrentTrafficPercent
		return p != nil && *p == 50
	})
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.writes(n), "no write against the rollout")
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	w.passes(time.Hour, time.Minute)
	require.Empty(t, w.writes(n), "what the rollout left is not undone")
}

// J3: a hand edit of what no rollout has touched is told once, and put right when that is
// asked for.
func TestAHandEditIsToldOnceAndPutRightWhenAsked(t *testing.T) {
	for _, mode := range []DriftMode{ReportDrift, CorrectDrift} {
		t.Run(string(mode), func(t *testing.T) {
			w := newStage(t)
			w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
			w.repository("models").Drift = mode
			w.begin()
			w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
			ep := w.endpoint("chat")
			public := api.VisibilityInternal
			_, err := w.person("bob").UpdateEndpoint(t.Context(), ep.ID, "visibility", api.UpdateEndpoint{Visibility: &public})
			require.NoError(t, err)
			w.passes(30*time.Minute, time.Minute)
			require.Equal(t, 1, w.told("drift.seen"), w.show())
			if mode == ReportDrift {
				require.Equal(t, api.VisibilityInternal, w.endpoint("chat").Visibility)
				require.Len(t, w.stack("models", "prod").Drift, 1)
				return
			}
			require.Equal(t, api.VisibilityPrivate, w.endpoint("chat").Visibility)
			require.Empty(t, w.stack("models", "prod").Drift)
		})
	}
}

// J5: a renamed file and a block in another file are no change; a renamed label with moved
// is a move.
func TestARenamedFileOrLabelDeletesNothing(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 30}
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	n := len(w.calls)
	git.push("main", "another file", map[string]string{"prod/main.tf": "", "prod/endpoint.tf": canaryHouse("chat")})
	w.passes(5*time.Minute, time.Minute)
	renamed := strings.ReplaceAll(strings.ReplaceAll(canaryHouse("chat"), `"sluice_endpoint" "e"`, `"sluice_endpoint" "chat"`), "sluice_endpoint.e.", "sluice_endpoint.chat.")
	git.push("main", "another label", map[string]string{"prod/endpoint.tf": renamed + "\nmoved {\n  from = sluice_endpoint.e\n  to   = sluice_endpoint.chat\n}\n"})
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, InStep, w.stack("models", "prod").Phase, w.show())
}

// J7: a set that shrinks too much is not pruned, and a parse error is no removed file.
func TestAShrinkingSetIsNotPruned(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 30}
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	n := len(w.calls)
	git.push("main", "all gone", map[string]string{"prod/main.tf": ""})
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase)
	require.Equal(t, ForPrune, s.Waits[0].For)
	git.push("main", "a parse error", map[string]string{"prod/main.tf": canaryHouse("chat")[:200]})
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, Invalid, w.stack("models", "prod").Phase)
	git.push("main", "a symlink", map[string]string{"prod/main.tf": canaryHouse("chat"), "prod/more.tf": "link"})
	git.refused["prod/more.tf"] = "is a symbolic link"
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, Invalid, w.stack("models", "prod").Phase)
}

// J11: a source that is taken out of Git in mid-rollout stays until the rollout ends.
func TestASourceThatIsRemovedInMidRolloutStaysUntilItsEnd(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 50}
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2) })
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 50, 100)})
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	require.NoError(t, w.pass())
	without := `
resource "sluice_endpoint" "e" {
  name = "chat"
}

resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.e.id
  name        = "candidate"
  model       = "m/b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`
	git.push("main", "the old one goes", map[string]string{"prod/main.tf": without})
	w.passes(5*time.Minute, time.Minute)
	require.Contains(t, fmt.Sprint(w.stack("models", "prod").Waits), "until it ends")
	w.until("the rollout ends and the source goes", 5*time.Hour, func() bool {
		return len(w.endpoint("chat").Deployments) == 1 && w.stack("models", "prod").Phase == InStep
	})
	require.Equal(t, engineclient.StateCompleted, w.all("chat")[0].State)
}

// M1: a park is told at the next look, and newer commits are planned meanwhile.
func TestAParkIsToldAtTheNextLook(t *testing.T) {
	w, git := canary(t, 10, 100)
	for _, d := range w.endpoint("chat").Deployments {
		if strings.HasSuffix(d.Name, "candidate") {
			w.meter.value[d.ID] = 400
		}
	}
	w.until("it is parked", 2*time.Hour, w.phase(Parked))
	require.Equal(t, "METRIC_REGRESSION", w.stack("models", "prod").Rollouts[0].Category)
	git.push("main", "a fix", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
	require.NoError(t, w.pass())
	s := w.stack("models", "prod")
	require.Equal(t, Parked, s.Phase)
	require.Contains(t, fmt.Sprint(s.Waits), "is under way")
}

// M3: a first apply that fails in its middle is mended by the next commit.
func TestAFirstApplyThatFailsIsMendedByTheNextCommit(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.fault = func(req *http.Request) error {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "deployments") {
			return errors.New("connection refused")
		}
		return nil
	}
	for range 5 {
		_ = w.pass()
		w.advance(time.Minute)
	}
	w.fault = nil
	git.push("main", "a fix", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 5", 1)})
	w.until("it is in step", 10*time.Minute, w.phase(InStep))
	require.Len(t, w.endpoint("chat").Deployments, 2)
}

// E1: a process that was frozen past its lease writes nothing when it goes on.
func TestAFrozenReconcilerWritesNothingWhenItGoesOn(t *testing.T) {
	w, git := canary(t, 10, 100)
	old := w.r
	w.advance(time.Minute) // it is frozen past its lease
	w.begin()
	git.push("main", "another", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
	n, commits := len(w.calls), w.journal.Commits()
	err := old.Once(t.Context())
	require.Error(t, err)
	require.Empty(t, w.writes(n))
	_ = commits
}
