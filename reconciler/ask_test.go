package reconciler

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// What people say is done in the order in which they say it: the lines of one comment, and
// comments of one second.
func TestWordsAreDoneInTheirOrder(t *testing.T) {
	for name, say := range map[string]func(f *forgetest.World, number int){
		"one comment": func(f *forgetest.World, number int) {
			f.Say(number, "ann", "Hello\n\n/sluice suspend prod because of the audit\n\nand\n\nafter\n\nit\n\n/sluice continue prod\n")
		},
		"comments of one second": func(f *forgetest.World, number int) {
			id := int64(0)
			for id != 8 && id != 98 { // the next two are 9 and 10, or 99 and 100
				id = f.Say(number, "ben", "talk")
			}
			f.Say(number, "ann", "/sluice suspend prod because of the audit")
			f.Say(number, "ann", "/sluice continue prod")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, git, f := reviewed(t)
			c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			require.NoError(t, w.pass())
			f.SetRole("ann", forge.Maintain)
			say(f, c.number)
			w.advance(time.Minute)
			w.passes(3*time.Minute, time.Minute)
			require.Equal(t, 1, w.told("asked.suspend"))
			require.Equal(t, 1, w.told("asked.continue"))
			require.Empty(t, w.stack("models", "prod").Suspended, w.show())
		})
	}
}

// A host that takes calls and never answers, of Git or the forge, holds up no cancel.
func TestAHostThatHangsHoldsUpNoCancel(t *testing.T) {
	for _, what := range []string{"forge", "git"} {
		t.Run(what, func(t *testing.T) {
			w, git, f := reviewed(t)
			w.parks(git, 10, 100)
			w.repository("models").Deadline = 200 * time.Millisecond
			if what == "forge" {
				f.Always(forgetest.CallOpen, forgetest.Hang())
			}
			w.begin()
			if what == "git" {
				w.r.followers[0].remote = &blackHole{memoryRemote: git}
			}
			w.ask("writer", "cancel", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
			_ = w.pass() // what hangs fails, and is told
			w.advance(time.Minute)
			require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State, w.show())
			require.NoError(t, w.r.ledger.renew(t.Context()))
			_ = w.pass()
			require.Equal(t, 1, w.told("rollout.canceled"), "what runs is watched")
		})
	}
}

// A rollout that cannot be read holds up no word about another one of its stack.
func TestARolloutThatCannotBeReadHoldsUpNoCancelOfAnother(t *testing.T) {
	w := newStage(t)
	second := strings.NewReplacer(`"e"`, `"e2"`, `"stable"`, `"stable2"`, `"candidate"`, `"candidate2"`, `"r"`, `"r2"`, "sluice_endpoint.e.", "sluice_endpoint.e2.", "sluice_deployment.stable.", "sluice_deployment.stable2.", "sluice_deployment.candidate.", "sluice_deployment.candidate2.")
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat"), "prod/talk.tf": second.Replace(canaryHouse("talk"))})
	w.begin()
	w.until("in step", 20*time.Minute, w.phase(InStep))
	git.push("main", "both", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100), "prod/talk.tf": second.Replace(canaryHouse("talk", 10, 100))})
	w.until("both run", 20*time.Minute, func() bool { return len(w.all("chat")) == 1 && len(w.all("talk")) == 1 })
	w.passes(time.Minute, 20*time.Second)
	bad := w.all("chat")[0].ID
	w.fault = func(r *http.Request) error {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, bad) {
			return errors.New("connection reset")
		}
		return nil
	}
	w.ask("writer", "cancel", `{"id":"1","selector":"chat","reason":"slow"}`, http.StatusAccepted)
	w.advance(time.Second)
	w.ask("writer", "cancel", `{"id":"2","selector":"talk","reason":"slow"}`, http.StatusAccepted)
	require.Error(t, w.pass())
	w.advance(time.Minute)
	w.fault = nil
	require.Equal(t, engineclient.StateCanceled, w.all("talk")[0].State, w.show())
	require.NoError(t, w.pass())
	w.advance(time.Minute)
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State, w.show())
}

// While a host of Git is down, what runs is looked at as often as ever, and so is what people
// have asked for while the engine is; a repository with neither is left alone ever longer.
func TestABackOffDelaysNeitherAWatchNorAWord(t *testing.T) {
	w, git, _ := reviewed(t)
	f := w.r.followers[0]
	fails := func() time.Duration {
		for range 8 {
			require.NoError(t, w.r.ledger.renew(t.Context()))
			began := w.now
			err := f.pass(t.Context())
			require.Error(t, err)
			f.notePass(began, err)
			w.advance(time.Minute)
		}
		return f.pause(errGitDown)
	}
	git.down = errGitDown
	require.Greater(t, fails(), 5*time.Minute)
	git.down = nil
	w.parks(git, 10, 100)
	git.down = errGitDown
	require.LessOrEqual(t, fails(), time.Minute)
	git.down = nil
	_, err := w.person("bob").CancelRollout(t.Context(), w.endpoint("chat").ID, w.all("chat")[0].ID, api.Control{Reason: "enough"})
	require.NoError(t, err)
	w.isOver(engineclient.StateCanceled)
	w.ask("writer", "reverse", `{"id":"1","reason":"slow"}`, http.StatusAccepted)
	w.fault = func(*http.Request) error { return errors.New("connection refused") }
	require.LessOrEqual(t, fails(), time.Minute)
}
