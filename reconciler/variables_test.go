package reconciler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// varHouse declares the endpoint chat with the floor of its stable side in a variable.
func varHouse() string {
	return "variable \"low\" {\n  type = number\n}\n" + strings.Replace(canaryHouse("chat"), "min_replicas = 2, max_replicas = 4", "min_replicas = var.low, max_replicas = 4", 1)
}

// floor is the least number of replicas of the stable side at the engine.
func (w *stage) floor() int {
	w.t.Helper()
	d, err := w.Client.GetDeployment(w.t.Context(), w.endpoint("chat").ID, w.deploymentID("chat", "stable"))
	require.NoError(w.t, err)
	return *d.Autoscaling.MinReplicas
}

// A commit that changes nothing but the values of variables is a change like another, in
// the stack's folder and beside it, with and without a restart before it.
func TestAFileOfVariablesThatChangesAloneIsApplied(t *testing.T) {
	for _, file := range []string{"prod/prod.tfvars", "shared/eu.tfvars"} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s restart %t", file, restart), func(t *testing.T) {
				w := newStage(t)
				git := w.follow("models", map[string]string{"prod/main.tf": varHouse(), file: "low = 2\n"})
				w.repository("models").Stacks[0].VarFiles = []string{strings.TrimPrefix("../"+file, "../prod/")}
				w.begin()
				w.until("in step", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
				if restart {
					w.passes(30*time.Minute, time.Minute)
					w.begin()
				}
				git.push("main", "three", map[string]string{file: "low = 3\n"})
				w.until("it is applied", 10*time.Minute, func() bool { return w.phase(InStep)() && w.floor() == 3 })
				require.Zero(t, w.told("drift.seen"))
			})
		}
	}
}

// A pull request of variables alone shows its change as its own, and its merge applies it.
func TestAPullRequestOfVariablesAloneIsApplied(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": varHouse(), "prod/prod.tfvars": "low = 2\n"})
	w.repository("models").Stacks[0].VarFiles = []string{"prod.tfvars"}
	f := w.forgeOf("models")
	w.begin()
	w.until("in step", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	c := w.propose(git, f, "three", map[string]string{"prod/prod.tfvars": "low = 3\n"})
	w.passes(5*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "1 updated")
	require.NotContains(t, c.comment(), "Theirs")
	c.merge()
	w.advance(time.Minute)
	w.until("it is applied", 10*time.Minute, func() bool { return w.phase(InStep)() && w.floor() == 3 })
}

// A variable of the configuration that changes is applied by the process that reads it.
func TestAVariableOfTheConfigurationIsApplied(t *testing.T) {
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": varHouse()})
	w.repository("models").Stacks[0].Variables = map[string]string{"low": "2"}
	w.begin()
	w.until("in step", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	w.passes(30*time.Minute, time.Minute)
	w.repository("models").Stacks[0].Variables = map[string]string{"low": "3"}
	w.begin()
	w.until("it is applied", 10*time.Minute, func() bool { return w.phase(InStep)() && w.floor() == 3 })
}
