package reconciler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// deploymentID is the id of an endpoint's deployment.
func (w *stage) deploymentID(endpoint, name string) string {
	w.t.Helper()
	for _, d := range w.endpoint(endpoint).Deployments {
		if strings.HasSuffix(d.Name, name) {
			return d.ID
		}
	}
	w.t.Fatalf("endpoint %s has no deployment %s", endpoint, name)
	return ""
}

// shares is the standing split by deployment, weights above 0 only.
func (w *stage) shares(endpoint string) map[string]float64 {
	out := map[string]float64{}
	for _, e := range w.endpoint(endpoint).TrafficSplit {
		if e.Weight > 0 {
			out[e.DeploymentID] = e.Weight
		}
	}
	return out
}

// A retired source that somebody deletes comes back neither with traffic nor with the whole
// rollout: what a completed rollout left is never disturbed. Where drift is corrected it is
// made again, without traffic.
func TestADeletedSourceComesBackWithoutTraffic(t *testing.T) {
	for _, mode := range []DriftMode{ReportDrift, CorrectDrift} {
		t.Run(string(mode), func(t *testing.T) {
			w, _ := canary(t, 10, 100)
			w.r.followers[0].config.Drift = mode
			w.until("it ends", 3*time.Hour, w.phase(InStep))
			before := w.shares("chat")
			bob := w.person("bob")
			ep := w.endpoint("chat")
			require.NoError(t, bob.DeleteDeployment(t.Context(), ep.ID, w.deploymentID("chat", "stable"), ""))
			n := len(w.calls)
			w.passes(time.Hour, time.Minute)
			require.Equal(t, before, w.shares("chat"))
			require.Len(t, w.all("chat"), 1)
			if mode == ReportDrift {
				require.Empty(t, w.writes(n))
				require.Contains(t, fmt.Sprint(w.stack("models", "prod").Drift), "deleted at the engine")
				require.Equal(t, 1, w.told("drift.seen"))
				return
			}
			require.Len(t, w.endpoint("chat").Deployments, 2)
		})
	}
}

// A split that somebody has made by hand after a rollout is told, and left.
func TestAHandMadeSplitAfterARolloutIsToldAndLeft(t *testing.T) {
	w, _ := canary(t, 10, 100)
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	bob, ep, stable := w.person("bob"), w.endpoint("chat"), w.deploymentID("chat", "stable")
	one := 1
	_, err := bob.UpdateDeployment(t.Context(), ep.ID, stable, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &one, MaxReplicas: &one}})
	require.NoError(t, err)
	w.advance(2 * time.Minute)
	_, err = bob.SetWeight(t.Context(), ep.ID, stable, 1)
	require.NoError(t, err)
	split := w.shares("chat")
	n := len(w.calls)
	w.passes(30*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	require.Equal(t, split, w.shares("chat"))
	require.Contains(t, fmt.Sprint(w.stack("models", "prod").Drift), "traffic split")
}

// A reverse goes back from where the live split is, also when somebody has moved it, and
// one that the engine refuses is no decision.
func TestAReverseGoesBackFromTheLiveSplit(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 50, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.until("it ends", 4*time.Hour, w.phase(InStep))
	bob, ep, stable := w.person("bob"), w.endpoint("chat"), w.deploymentID("chat", "stable")
	two := 2
	_, err := bob.UpdateDeployment(t.Context(), ep.ID, stable, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &two, MaxReplicas: &two}})
	require.NoError(t, err)
	w.advance(2 * time.Minute)
	_, err = bob.SetWeight(t.Context(), ep.ID, stable, 1)
	require.NoError(t, err)
	f.Say(c.number, "ann", "/sluice reverse answers are worse")
	w.advance(time.Minute)
	w.until("the reverse is made", 10*time.Minute, func() bool { return len(w.all("chat")) == 2 })
	require.Len(t, w.all("chat")[1].Status.Steps, 1, "half is there already")
	w.until("the reverse ends", 5*time.Hour, func() bool { return w.all("chat")[1].State == engineclient.StateCompleted })
}

// A stack whose Git was never read is not in step.
func TestAStackWhoseGitWasNeverReadIsNotInStep(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	git.down = errGitDown
	w.begin()
	require.Error(t, w.pass())
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase)
	require.Contains(t, s.Waits[0].What, "Git has not been read yet")
	require.Zero(t, w.told("stack.in_step"))
}

// Without a prune block what is declared no more stays, and no plan says otherwise.
func TestWithoutPruneNoPlanDeletesAnything(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "tidy", map[string]string{"prod/main.tf": ""})
	require.NoError(t, w.pass())
	require.NotContains(t, c.comment(), "3 destroyed")
	require.Contains(t, c.comment(), "there is no prune block")
	n := len(w.calls)
	c.merge()
	w.advance(time.Minute)
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	text, ok, err := w.r.followers[0].planStatus(t.Context(), w.r.followers[0].config.Stacks[0])
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, text.Text, "there is no prune block")
	require.NotContains(t, text.Text, "3 destroyed")
}

// An engine that has lost all that a stack had is not filled again by the next commit, nor
// by drift that is corrected, until somebody says so.
func TestAnEngineThatWasEmptiedIsFilledByAPersonsWordAlone(t *testing.T) {
	for _, mode := range []DriftMode{ReportDrift, CorrectDrift} {
		t.Run(string(mode), func(t *testing.T) {
			w, git := canary(t, 10, 100)
			w.r.followers[0].config.Drift = mode
			w.until("it ends", 3*time.Hour, w.phase(InStep))
			bob, ep := w.person("bob"), w.endpoint("chat")
			_, err := bob.SetWeight(t.Context(), ep.ID, w.deploymentID("chat", "candidate"), 0)
			require.NoError(t, err)
			none := 0
			for _, d := range ep.Deployments {
				_, err := bob.UpdateDeployment(t.Context(), ep.ID, d.ID, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &none, MaxReplicas: &none}})
				require.NoError(t, err)
			}
			w.advance(10 * time.Minute)
			for _, d := range ep.Deployments {
				require.NoError(t, bob.DeleteDeployment(t.Context(), ep.ID, d.ID, ""))
			}
			require.NoError(t, bob.DeleteEndpoint(t.Context(), ep.ID, ""))
			n := len(w.calls)
			git.push("main", "a word", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100) + "# a word\n"})
			w.passes(time.Hour, time.Minute)
			require.Empty(t, w.writes(n))
			waits := w.stack("models", "prod").Waits
			require.Len(t, waits, 1, w.show())
			require.Equal(t, ForApproval, waits[0].For)
			require.Contains(t, waits[0].What, "the engine has none of the 1 endpoint that this stack has made")
			w.ask("keeper", "approve", `{"digest":"`+w.stack("models", "prod").Plan+`"}`, http.StatusAccepted)
			w.until("the whole journey is made again", 3*time.Hour, w.phase(InStep))
			require.Equal(t, map[string]float64{w.deploymentID("chat", "candidate"): 1}, w.shares("chat"))
			require.Zero(t, w.told("stack.failed"))
		})
	}
}

// One commit that declares all of it, the rollout too: the rollout waits until its source
// serves, and nothing fails on the way.
func TestARolloutInTheFirstCommitWaitsForItsSource(t *testing.T) {
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.begin()
	require.NoError(t, w.pass())
	waits := w.stack("models", "prod").Waits
	require.Len(t, waits, 1, w.show())
	require.Equal(t, Wait{For: ForReady, What: "sluice_deployment.stable: 0 of 2 replicas ready"}, waits[0])
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	require.Len(t, w.all("chat"), 1)
	require.Zero(t, w.told("stack.failed"))
}

// candidateAlone is canaryHouse without its stable side and its rollout.
const candidateAlone = `
resource "sluice_endpoint" "e" { name = "chat" }
resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.e.id
  name        = "candidate"
  model       = "m/b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`

// Git that goes back to a commit from before a side was pruned: what is made again takes no
// traffic from what serves, and a rollout that cannot be is told, and not passed over.
func TestGitThatGoesBackBehindAPruneDisturbsNothing(t *testing.T) {
	w, git := canary(t, 10, 100)
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 100}
	w.begin()
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	back := git.heads["refs/heads/main"]
	git.push("main", "the candidate alone", map[string]string{"prod/main.tf": candidateAlone})
	w.until("the old side is gone", 10*time.Minute, func() bool { return w.phase(InStep)() && len(w.endpoint("chat").Deployments) == 1 })
	before := w.shares("chat")
	git.heads["refs/heads/main"] = back
	w.passes(time.Hour, time.Minute)
	require.Equal(t, before, w.shares("chat"), w.show())
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase, w.show())
	require.Contains(t, s.Waits[0].What, "sluice_rollout.r: ")
}

// A spec that somebody has canceled comes back in Git after others: it is told that it is
// not started again, and the stack is not in step.
func TestACanceledSpecThatComesBackInGitIsTold(t *testing.T) {
	w, git := canary(t, 10, 100)
	ep, first := w.endpoint("chat"), w.all("chat")[0]
	_, err := w.person("bob").CancelRollout(t.Context(), ep.ID, first.ID, api.Control{Reason: "enough"})
	require.NoError(t, err)
	w.until("it is known", 10*time.Minute, w.phase(Ahead))
	old := git.heads["refs/heads/main"]
	git.push("main", "another", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)})
	w.until("it ends", 5*time.Hour, w.phase(InStep))
	git.push("main", "and back", map[string]string{"prod/main.tf": git.commits[old].files["prod/main.tf"]})
	w.passes(time.Hour, time.Minute)
	require.Len(t, w.all("chat"), 2)
	s := w.stack("models", "prod")
	require.NotEqual(t, InStep, s.Phase, w.show())
	require.Contains(t, s.Waits[0].What, "sluice_rollout.r")
}

// The approval of a large removal holds: nothing of the plan changes by its being looked at.
func TestOneApprovalIsEnoughForALargeRemoval(t *testing.T) {
	w, git := canary(t, 10, 100)
	w.repository("models").Prune = PruneConfig{Mode: PruneOn, MostShrink: 30}
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	git.push("main", "the candidate alone", map[string]string{"prod/main.tf": candidateAlone})
	w.passes(5*time.Minute, time.Minute)
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase, w.show())
	w.ask("keeper", "approve", `{"digest":"`+s.Plan+`"}`, http.StatusAccepted)
	w.until("the old side is gone", 10*time.Minute, func() bool { return w.phase(InStep)() && len(w.endpoint("chat").Deployments) == 1 })
}

// A commit that comes right after a rollout has ended, as it does to a clock that is behind
// the engine's, does not bring it back to life, nor is its end told again under that commit.
func TestACommitRightAfterARolloutsEndDoesNotTellItAgain(t *testing.T) {
	w := newStage(t)
	w.lag = 2 * time.Hour
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.begin()
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	require.Equal(t, 1, w.told("rollout.completed"))
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	git.push("main", "a third", map[string]string{"prod/third.tf": `
resource "sluice_deployment" "third" {
  endpoint_id = sluice_endpoint.e.id
  name        = "third"
  model       = "m/c"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`})
	require.NoError(t, w.pass())
	require.Equal(t, Waiting, w.stack("models", "prod").Phase, w.show())
	w.passes(2*time.Minute, time.Minute)
	require.Equal(t, 1, w.told("rollout.completed"))
}
