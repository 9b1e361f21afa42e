package reconciler

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

// parks pushes a canary whose candidate is slow, and waits for its park.
func (w *stage) parks(git *memoryRemote, steps ...int) {
	w.t.Helper()
	git.push("main", fmt.Sprintf("canary %v", steps), map[string]string{"prod/main.tf": canaryHouse("chat", steps...)})
	w.until("it runs", 20*time.Minute, w.phase(RollingOut))
	w.meter.value[w.deploymentID("chat", "candidate")] = 400
	w.until("it is parked", 2*time.Hour, w.phase(Parked))
}

// isOver waits for the newest rollout to be in an end state and the stack to know it.
func (w *stage) isOver(state string) {
	w.t.Helper()
	w.until("it is "+state, 5*time.Hour, func() bool {
		all := w.all("chat")
		return all[len(all)-1].State == state && w.stack("models", "prod").Phase == Ahead
	})
}

// One canary after the other fails and is taken back: the side that serves is as large as
// Git has it each time, and no candidate is left on it.
func TestCanariesThatAreTakenBackLeaveTheSourceAsLargeAsItWas(t *testing.T) {
	w, git, _ := reviewed(t)
	for n, first := range []int{10, 20, 30} {
		w.parks(git, first, 100)
		w.ask("writer", "reverse", fmt.Sprintf(`{"id":"%d","reason":"slow"}`, n), http.StatusAccepted)
		w.isOver(engineclient.StateCompleted)
		require.Len(t, w.all("chat"), 2*(n+1))
		require.True(t, w.serves("chat", "stable", 2), "%+v", w.endpoint("chat").Deployments)
		require.True(t, w.serves("chat", "candidate", 0))
	}
}

// Where an endpoint has had a rollout before, a word about it means the one under way, by
// each of its names and by none.
func TestAReverseMeansTheRolloutThatIsUnderWay(t *testing.T) {
	for _, selector := range []string{"", "chat", "prod/chat", "models/prod/chat", "acme/chat", "sluice_rollout.r"} {
		t.Run(selector, func(t *testing.T) {
			w, git, _ := reviewed(t)
			w.parks(git, 10, 100)
			ep, first := w.endpoint("chat"), w.all("chat")[0]
			_, err := w.person("bob").CancelRollout(t.Context(), ep.ID, first.ID, api.Control{Reason: "enough"})
			require.NoError(t, err)
			w.isOver(engineclient.StateCanceled)
			w.parks(git, 20, 100)
			second := w.all("chat")[1]
			w.ask("writer", "reverse", fmt.Sprintf(`{"id":"a","selector":%q,"reason":"slow"}`, selector), http.StatusAccepted)
			w.isOver(engineclient.StateCompleted)
			all := w.all("chat")
			require.Len(t, all, 3)
			require.Equal(t, engineclient.StateCanceled, all[1].State)
			require.Contains(t, all[2].Sluice.Origin, "reverse of "+second.ID)
			waits := w.stack("models", "prod").Waits
			require.Len(t, waits, 1)
			require.Contains(t, waits[0].What, second.ID+" was taken back by writer")
		})
	}
}

// What was taken back is not taken back a second time, and a word that is refused changes
// nothing of what is told about runs that are over.
func TestAReverseThatIsRefusedLeavesTheRunsAsTheyAre(t *testing.T) {
	w, git, _ := reviewed(t)
	w.parks(git, 10, 100)
	w.ask("writer", "reverse", `{"id":"a","reason":"slow"}`, http.StatusAccepted)
	w.isOver(engineclient.StateCompleted)
	git.push("main", "on the way to another one", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.until("the newer commit is in step", 10*time.Minute, w.phase(InStep))
	w.passes(2*time.Minute, time.Minute)
	before := w.stack("models", "prod")
	lines, err := w.r.History(t.Context(), journal.Query{Most: 1000})
	require.NoError(t, err)
	first, back := w.all("chat")[0].ID, w.all("chat")[1].ID

	w.ask("writer", "reverse", `{"id":"b","reason":"once more"}`, http.StatusAccepted)
	w.passes(5*time.Minute, time.Minute)
	after := w.stack("models", "prod")
	require.Equal(t, before, after)
	now, err := w.r.History(t.Context(), journal.Query{Most: 1000})
	require.NoError(t, err)
	require.Len(t, now, len(lines)+1)
	require.Contains(t, now[0].Text, fmt.Sprintf("refused: rollout %s was taken back already, by %s, which is COMPLETED", first, back))
}

// Who ended a rollout is who did it, also where somebody else has steered it before.
func TestACancelIsTheirsWhoSentIt(t *testing.T) {
	w, git, _ := reviewed(t)
	w.parks(git, 10, 100)
	w.ask("writer", "resume", `{"id":"a"}`, http.StatusAccepted)
	require.NoError(t, w.pass())
	w.advance(time.Minute)
	w.until("it parks again", time.Hour, w.phase(Parked))
	_, err := w.person("bob").CancelRollout(t.Context(), w.endpoint("chat").ID, w.all("chat")[0].ID, api.Control{Reason: "enough"})
	require.NoError(t, err)
	w.isOver(engineclient.StateCanceled)
	require.Contains(t, w.stack("models", "prod").Waits[0].What, "was canceled by bob")
	lines, err := w.r.History(t.Context(), journal.Query{Most: 1000, Kind: "rollout.canceled"})
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.True(t, strings.HasSuffix(lines[0].Text, ", by bob"), lines[0].Text)
}

// A split that somebody makes by hand after a rollout was taken back, or canceled, is told
// as drift like one after a rollout that has completed.
func TestAHandMadeSplitAfterAWayBackIsTold(t *testing.T) {
	w, git, _ := reviewed(t)
	w.parks(git, 10, 100)
	ep, stable := w.endpoint("chat"), w.deploymentID("chat", "stable")
	_, err := w.person("bob").CancelRollout(t.Context(), ep.ID, w.all("chat")[0].ID, api.Control{Reason: "enough"})
	require.NoError(t, err)
	w.isOver(engineclient.StateCanceled)
	w.passes(20*time.Minute, time.Minute)
	require.Empty(t, w.stack("models", "prod").Drift)
	_, err = w.person("bob").SetWeight(t.Context(), ep.ID, stable, 0.2)
	require.NoError(t, err)
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, fmt.Sprint(w.stack("models", "prod").Drift), "10 % on the target of "+w.all("chat")[0].ID+", as its cancel left it")

	w.ask("writer", "reverse", `{"id":"a","reason":"slow"}`, http.StatusAccepted)
	w.isOver(engineclient.StateCompleted)
	w.passes(20*time.Minute, time.Minute)
	require.Empty(t, w.stack("models", "prod").Drift)
	one, candidate := 1, w.deploymentID("chat", "candidate")
	_, err = w.person("bob").UpdateDeployment(t.Context(), ep.ID, candidate, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &one, MaxReplicas: &one}})
	require.NoError(t, err)
	w.advance(5 * time.Minute)
	_, err = w.person("bob").SetWeight(t.Context(), ep.ID, candidate, 1)
	require.NoError(t, err)
	w.passes(2*time.Minute, time.Minute)
	require.Contains(t, fmt.Sprint(w.stack("models", "prod").Drift), "all on the target of "+w.all("chat")[1].ID)
	require.GreaterOrEqual(t, w.told("drift.seen"), 2)
}

// A rollout is frozen at once and taken back although no plan can be made, and the passes
// do not chase each other meanwhile.
func TestAReverseIsDoneWhileThePolicyIsBroken(t *testing.T) {
	w, git, _ := reviewed(t)
	rules := priced(t, "500000")
	w.repository("models").Policies = []PolicyConfig{{Path: rules}}
	w.begin()
	w.parks(git, 10, 100)
	files, err := filepath.Glob(filepath.Join(rules, "*.rego"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], []byte("package x\nderp derp {"), 0o600))
	w.begin()
	w.ask("writer", "reverse", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
	require.Error(t, w.pass())
	require.NotEqual(t, engineclient.StateSystemPaused, w.all("chat")[0].State, w.show())
	hot := 0
	for range 240 {
		w.advance(time.Minute)
		require.NoError(t, w.r.ledger.renew(t.Context()))
		_ = w.pass() // the plan fails, which is told
		select {
		case <-w.r.followers[0].wake:
			hot++
		default:
		}
	}
	require.LessOrEqual(t, hot, 2)
	all := w.all("chat")
	require.Len(t, all, 2, w.show())
	require.Equal(t, engineclient.StateCompleted, all[1].State)
	require.True(t, w.serves("chat", "stable", 2))
}

// A way back is respected by a journal that has just begun, and under another label of the
// same rollout: the stack is ahead of Git, and nothing starts again.
func TestAWayBackIsRespectedByWhoHasNotSeenIt(t *testing.T) {
	label := func(text string) string {
		return strings.Replace(text, `"sluice_rollout" "r"`, `"sluice_rollout" "q"`, 1)
	}
	moved := "\nmoved {\n  from = sluice_rollout.r\n  to = sluice_rollout.q\n}\n"
	for name, after := range map[string]func(w *stage, git *memoryRemote){
		"a new journal": func(w *stage, _ *memoryRemote) {
			w.journal, w.config.State.Instance = journaltest.New(), w.r.instance
			w.begin()
		},
		"another label": func(_ *stage, git *memoryRemote) {
			git.push("main", "another label", map[string]string{"prod/main.tf": label(canaryHouse("chat", 10, 100))})
		},
		"a moved label": func(_ *stage, git *memoryRemote) {
			git.push("main", "another label", map[string]string{"prod/main.tf": label(canaryHouse("chat", 10, 100)) + moved})
		},
	} {
		for _, end := range []string{"completed", "parked"} {
			t.Run(name+" "+end, func(t *testing.T) {
				w, git, _ := reviewed(t)
				if end == "completed" {
					git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
					w.until("it runs", 20*time.Minute, w.phase(RollingOut))
					w.until("it ends", 5*time.Hour, w.phase(InStep))
				} else {
					w.parks(git, 10, 100)
				}
				w.ask("writer", "reverse", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
				w.isOver(engineclient.StateCompleted)
				after(w, git)
				w.passes(2*time.Hour, time.Minute)
				require.Len(t, w.all("chat"), 2, w.show())
				require.Equal(t, Ahead, w.stack("models", "prod").Phase, w.show())
			})
		}
	}
}

// refusing is a way to the engine that answers some calls with a refusal, so many times.
type refusing struct {
	*stage
	times        int
	status, code string
	when         func(*http.Request) bool
}

// RoundTrip refuses, or carries the call on.
func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.times == 0 || !r.when(req) {
		return r.stage.RoundTrip(req)
	}
	r.times--
	rec := httptest.NewRecorder()
	status, err := strconv.Atoi(r.status)
	if err != nil {
		return nil, err
	}
	rec.Header().Set("Content-Type", "application/json")
	rec.WriteHeader(status)
	_, err = fmt.Fprintf(rec, `{"code":%[1]q,"message":"not now","error":{"code":%[1]q,"message":"not now","type":"invalid_request_error"}}`, r.code)
	return rec.Result(), err
}

// A word that crosses with another write is tried again at the next pass, at each of the
// calls that it takes.
func TestAConflictEndsNoCancelAndNoReverse(t *testing.T) {
	for _, c := range []struct{ verb, call string }{{"cancel", ":cancel"}, {"cancel", "/cancel"}, {"reverse", "cancel"}, {"reverse", "/rollouts"}, {"reverse", "start"}} {
		t.Run(c.verb+" "+c.call, func(t *testing.T) {
			w, git, _ := reviewed(t)
			w.parks(git, 10, 100)
			way := &refusing{stage: w, times: 1, status: "409", code: api.CodeAborted, when: func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, c.call)
			}}
			w.Client = w.clientOver(way, w.key)
			w.begin()
			w.ask("writer", c.verb, `{"id":"1","reason":"slow"}`, http.StatusAccepted)
			for range 120 {
				_ = w.pass() // the one that meets the conflict fails
				w.advance(time.Minute)
				require.NoError(t, w.r.ledger.renew(t.Context()))
			}
			all := w.all("chat")
			require.Equal(t, engineclient.StateCanceled, all[0].State, w.show())
			if c.verb == "reverse" {
				require.Len(t, all, 2, w.show())
				require.Equal(t, engineclient.StateCompleted, all[1].State, w.show())
			}
		})
	}
}

// A way back that the engine will not start is deleted again and said so; it holds the
// endpoint for nobody.
func TestAWayBackThatCannotStartHoldsNothing(t *testing.T) {
	w, git, _ := reviewed(t)
	w.parks(git, 10, 100)
	way := &refusing{stage: w, times: 1, status: "400", code: "FAILED_PRECONDITION", when: func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "start")
	}}
	w.Client = w.clientOver(way, w.key)
	w.begin()
	w.ask("writer", "reverse", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
	w.until("it is canceled", 10*time.Minute, w.phase(Ahead))
	w.passes(3*time.Minute, time.Minute)
	require.Zero(t, way.times)
	require.Len(t, w.all("chat"), 1, w.show())
	lines, err := w.r.History(t.Context(), journal.Query{Most: 100, Kind: "asked.reverse"})
	require.NoError(t, err)
	require.Contains(t, lines[0].Text, "refused: the way back cannot start: not now")
	w.ask("writer", "reverse", `{"id":"2","reason":"slow"}`, http.StatusAccepted)
	w.isOver(engineclient.StateCompleted)
	require.Len(t, w.all("chat"), 2)
}

// Two people who take the same rollout back bring about one way back, which is told once.
func TestTwoPeopleTakeTheSameRolloutBack(t *testing.T) {
	w, git, _ := reviewed(t)
	w.parks(git, 10, 100)
	w.ask("writer", "reverse", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
	w.ask("keeper", "reverse", `{"id":"1","reason":"slow too"}`, http.StatusAccepted)
	w.isOver(engineclient.StateCompleted)
	require.Len(t, w.all("chat"), 2)
	require.Len(t, w.stack("models", "prod").Rollouts, 2)
	require.Equal(t, 1, w.told("rollout.reversing"))
	require.Equal(t, 2, w.told("asked.reverse"))
}

// What was canceled is allowed again by each name that people use.
func TestARetryTakesEveryName(t *testing.T) {
	for _, selector := range []string{"", "chat", "prod/chat", "models/prod/chat", "acme/chat", "sluice_rollout.r", "nobody"} {
		t.Run(selector, func(t *testing.T) {
			w, _ := canary(t, 10, 100)
			w.ask("writer", "cancel", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
			w.isOver(engineclient.StateCanceled)
			w.ask("keeper", "retry", fmt.Sprintf(`{"id":"2","selector":%q}`, selector), http.StatusAccepted)
			require.NoError(t, w.pass())
			lines, err := w.r.History(t.Context(), journal.Query{Most: 100, Kind: "asked.retry"})
			require.NoError(t, err)
			if selector == "nobody" {
				require.Contains(t, lines[0].Text, "refused: nothing named nobody was canceled or taken back; there is sluice_rollout.r")
				return
			}
			require.Contains(t, lines[0].Text, "sluice_rollout.r may start again")
		})
	}
}

// After the most usual cancel, at a park of the first step, the same ladder cannot start
// again from where the split is: that is told before anything is made, with the way on.
func TestARetryAtTheFirstStepIsToldToGoBackFirst(t *testing.T) {
	w, git, _ := reviewed(t)
	w.parks(git, 10, 100)
	w.ask("writer", "cancel", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
	w.isOver(engineclient.StateCanceled)
	n := len(w.calls)
	w.ask("keeper", "retry", `{"id":"2"}`, http.StatusAccepted)
	w.passes(30*time.Minute, time.Minute)
	require.Empty(t, w.writes(n))
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase, w.show())
	require.Contains(t, s.Waits[0].What, "the first step asks for 10 %, which the target carries already: start above 10, or go back first with a reverse")
	w.ask("writer", "reverse", `{"id":"3","reason":"slow"}`, http.StatusAccepted)
	w.until("it is taken back", 5*time.Hour, func() bool {
		all := w.all("chat")
		return len(all) > 1 && all[1].State == engineclient.StateCompleted
	})
}

// A rollout that was made and not started yet can be called off by either word: it is
// deleted, and nothing starts it later.
func TestARolloutThatHasNotStartedCanBeCalledOff(t *testing.T) {
	for _, verb := range []string{"cancel", "reverse"} {
		t.Run(verb, func(t *testing.T) {
			w, git, _ := reviewed(t)
			w.fault = func(r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "start") {
					return errors.New("connection refused")
				}
				return nil
			}
			git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			require.Error(t, w.pass())
			require.Equal(t, engineclient.StatePending, w.all("chat")[0].State)
			w.ask("writer", verb, `{"id":"1","reason":"on second thoughts"}`, http.StatusAccepted)
			_ = w.pass()
			w.fault = nil
			w.passes(30*time.Minute, time.Minute)
			require.Empty(t, w.all("chat"), w.show())
			s := w.stack("models", "prod")
			require.Equal(t, Ahead, s.Phase, w.show())
			require.Contains(t, s.Waits[0].What, "was canceled by writer")
		})
	}
}

// What Git itself has canceled for another spec is nobody's decision: the first spec is
// asked for again when Git says it again.
func TestWhatGitReplacedIsNoPersonsDecision(t *testing.T) {
	w, git, _ := reviewed(t)
	house := func(first int) string {
		return strings.Replace(canaryHouse("chat", first, 100), "  canary  ", "  destroy_behavior = \"cancel\"\n  canary  ", 1)
	}
	git.push("main", "one", map[string]string{"prod/main.tf": house(20)})
	w.until("it runs", 20*time.Minute, w.phase(RollingOut))
	git.push("main", "two", map[string]string{"prod/main.tf": house(30)})
	w.until("the second runs", 30*time.Minute, func() bool { return len(w.all("chat")) == 2 })
	git.push("main", "one again", map[string]string{"prod/main.tf": house(20)})
	w.passes(10*time.Minute, 20*time.Second)
	s := w.stack("models", "prod")
	require.NotContains(t, []Phase{InStep, Ahead}, s.Phase, w.show())
	require.NotContains(t, fmt.Sprint(s.Waits), "is not started again")
}
