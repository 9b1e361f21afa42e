package reconciler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// queryAll asks for all of history.
var queryAll = journal.Query{}

// M5: a stack that depends on one of another repository is applied when that one is at
// rest and in step, and says what it waits for until then.
func TestAStackWaitsForOneOfAnotherRepository(t *testing.T) {
	w := newStage(t)
	a := w.follow("base", map[string]string{"prod/main.tf": canaryHouse("base")})
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Stacks[0].DependsOn = []StackKey{{"base", "prod"}}
	w.begin()
	w.until("both serve", 30*time.Minute, func() bool {
		return w.stack("base", "prod").Phase == InStep && w.phase(InStep)() && w.serves("chat", "stable", 2) && w.serves("base", "stable", 2)
	})
	a.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("base", 10, 100)})
	w.until("the base runs", 10*time.Minute, func() bool { return w.stack("base", "prod").Phase == RollingOut })
	w.remotes["models"].push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(5*time.Minute, time.Minute)
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase, w.show())
	require.Equal(t, ForDependency, s.Waits[0].For)
	require.Contains(t, s.Waits[0].What, "base/prod is rolling out")
	require.Empty(t, w.all("chat"))
	w.until("it runs", 5*time.Hour, w.phase(RollingOut))
	require.Equal(t, engineclient.StateCompleted, w.all("base")[0].State)
}

// The limit on rollouts at once holds over repositories, and the one that waits is named.
func TestTheLimitOnRolloutsHoldsOverRepositories(t *testing.T) {
	w := newStage(t)
	w.config.Limits.Rollouts = 1
	remotes := map[string]*memoryRemote{}
	for _, name := range []string{"one", "two", "three"} {
		remotes[name] = w.follow(name, map[string]string{"prod/main.tf": canaryHouse(name)})
	}
	w.begin()
	w.until("all serve", 30*time.Minute, func() bool {
		for name := range remotes {
			if w.stack(name, "prod").Phase != InStep || !w.serves(name, "stable", 2) {
				return false
			}
		}
		return true
	})
	for name, m := range remotes {
		m.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse(name, 10, 100)})
	}
	done := func() int {
		n := 0
		for name := range remotes {
			for _, r := range w.all(name) {
				if r.State == engineclient.StateCompleted {
					n++
				}
			}
		}
		return n
	}
	waited := false
	w.until("all are over", 12*time.Hour, func() bool {
		under := 0
		for name := range remotes {
			for _, r := range w.all(name) {
				if !engineclient.Terminal(r.State) {
					under++
				}
			}
			for _, x := range w.stack(name, "prod").Waits {
				waited = waited || x.For == ForSlot
			}
		}
		require.LessOrEqual(t, under, 1)
		return done() == 3
	})
	require.True(t, waited)
}

// A change freeze starts nothing and stops nothing.
func TestAFreezeStartsNothingAndStopsNothing(t *testing.T) {
	w, git := canary(t, 10, 100)
	until := w.now.Add(6 * time.Hour)
	w.r.config.Freezes = []Freeze{{Name: "holidays", Reason: "nobody is in", From: w.now, Until: until}}
	w.until("what runs goes on to its end", 3*time.Hour, func() bool { return w.all("chat")[0].State == engineclient.StateCompleted })
	git.push("main", "and back", map[string]string{"prod/main.tf": backwardsHouse(20, 100)})
	w.passes(time.Hour, time.Minute)
	require.Len(t, w.all("chat"), 1)
	s := w.stack("models", "prod")
	require.Equal(t, Waiting, s.Phase)
	require.Equal(t, ForFreeze, s.Waits[0].For)
	require.Equal(t, until, s.Waits[0].Till)
	require.Contains(t, s.Waits[0].What, "nobody is in")
	w.advance(until.Sub(w.now))
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
}

// H13: with every, each of three commits is run to its end, in their order.
func TestEveryCommitIsRunToItsEndInOrder(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Supersede = Every
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	git.push("main", "one", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	git.push("main", "two", map[string]string{"prod/main.tf": backwardsHouse(20, 100)})
	last := git.push("main", "three", map[string]string{"prod/main.tf": canaryHouse("chat", 30, 100)})
	w.until("all are over", 24*time.Hour, func() bool { return len(w.all("chat")) == 3 && w.phase(InStep)() })
	for i, percent := range []int{10, 20, 30} {
		r := w.all("chat")[i]
		require.Equal(t, percent, r.Status.Steps[0].TargetTrafficPercent)
		require.Equal(t, engineclient.StateCompleted, r.State)
	}
	s := w.stack("models", "prod")
	require.Equal(t, last, s.Settled)
	require.Empty(t, s.Skipped)
}

// C5: a park is told once and reminded of at the interval that is configured, and not any
// more when it has ended.
// C11: what is parked or canceled is seen in the status and the exit code.
func TestAParkIsRemindedOfAtTheConfiguredInterval(t *testing.T) {
	w, _ := canary(t, 10, 100)
	var heard []notify.Event
	w.r.outbox = notify.NewOutbox(notify.Options{Journal: w.r.ledger, Write: w.r.ledger.write, Destinations: []notify.Destination{
		{Name: "people", Events: []string{"rollout.parked"}, Remind: 4 * time.Hour, Notifier: hearing(func(e notify.Event) { heard = append(heard, e) })},
	}})
	r := w.all("chat")[0]
	_, err := w.person("ana").PauseRollout(t.Context(), r.EndpointID, r.ID, api.Control{Reason: "holidays"})
	require.NoError(t, err)
	w.until("it is parked", 5*time.Minute, w.phase(Parked))
	w.passes(24*time.Hour+time.Minute, 10*time.Minute)
	require.Len(t, heard, 7, "the park, and six reminders in a day")
	for i, e := range heard {
		require.Equal(t, i, e.Reminder)
	}
	s, err := w.r.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, s.ExitCode())
	_, err = w.person("ana").CancelRollout(t.Context(), r.EndpointID, r.ID, api.Control{Reason: "no"})
	require.NoError(t, err)
	w.passes(24*time.Hour, 10*time.Minute)
	require.Len(t, heard, 7)
	require.Equal(t, Ahead, w.stack("models", "prod").Phase)
	require.Equal(t, 1, w.told("stack.ahead_of_git"), "that live is not what Git says is told")
}

// M: who waits for a slot is told who has it, and which of them waits for a person.
func TestTheWaitForASlotNamesWhoHoldsIt(t *testing.T) {
	w, git, _ := reviewed(t)
	w.config.Limits.Rollouts = 1
	w.follow("talks", map[string]string{"prod/main.tf": canaryHouse("talk")})
	w.begin()
	w.until("in step", 20*time.Minute, func() bool { return w.stack("talks", "prod").Phase == InStep })
	w.parks(git, 10, 100)
	since := w.stack("models", "prod").Since
	w.remotes["talks"].push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("talk", 10, 100)})
	w.passes(time.Hour, time.Minute)
	require.Equal(t, []Wait{{For: ForSlot, What: "1 rollout under way (models/prod, parked since " + stamp(since) + "), and limits { rollouts = 1 } allows no more"}}, w.stack("talks", "prod").Waits)
}
