package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// template is a canary of three replicas in a world where every phase takes time,
// apart from those that are over at once by their nature. The gate's first look is
// not confirmed, so that CONFIRMING is passed through too.
const template = `given
  source: 3 ready; drain 20s
  target: stopped; cold start 2m; drain 20s
  rollout: canary 34 100
  gate: router_latency p95 regression 25 higher; window 60s
  routers: late 5s
  measure: router_latency source 700
  measure: router_latency target 700
when
  +0:00 start
  in SOAKING of step 1 after 80s: measure router_latency target 7000
  in SOAKING of step 1 after 100s: measure router_latency target 700
`

// worldAt plays the template until the first step is in a phase, for a while, and
// lets a command come then.
func worldAt(t *testing.T, p Phase, after, command string) *world {
	t.Helper()
	step := "1"
	if p == PhaseReleasing {
		step = "2"
	}
	when := "in " + string(p) + " of step " + step + after + ": " + command
	s, err := parseScenario(template + "  " + when + "\nthen\n")
	require.NoError(t, err)
	return play(t, s, crashPlan{})
}

// moments are the instants of a phase at which a control comes: as the phase
// begins, before anything of it was done, and in the middle of it.
func moments() []string { return []string{"", " after 2s"} }

// C1 (argo-rollouts#4898): an abort waited for ever. Cancel in each phase of a
// step: CANCELED at once, and the split is what was served at that moment.
func TestC1CancelInEachPhase(t *testing.T) {
	for _, p := range Phases() {
		for _, after := range moments() {
			t.Run(string(p)+after, func(t *testing.T) {
				w := worldAt(t, p, after, `cancel "stop"`)
				require.Empty(t, w.watch.violations)
				r := w.record()
				if r.State == Completed {
					// The phase was over before the control came.
					require.NotEmpty(t, after)
					return
				}
				require.Equal(t, Canceled, r.State)
				assert.Equal(t, r.Canceling.At, r.CompletedAt, "frozen in the instant of the cancel")
				assert.Equal(t, r.Percent, w.router.served)
				assert.Equal(t, "stop", r.Canceling.Reason)
				for i, st := range r.Steps {
					assert.Contains(t, []StepState{StepPassed, StepCanceled, StepSkipped}, st.State, "step %d", i+1)
					assert.False(t, st.CompletedAt.IsZero(), "step %d has no end", i+1)
				}
			})
		}
	}
}

// Cancel while a person's pause or the engine's own park holds, in each phase.
func TestC1CancelWhilePausedInEachPhase(t *testing.T) {
	for _, p := range Phases() {
		t.Run(string(p), func(t *testing.T) {
			w := worldAt(t, p, "", "pause")
			require.Equal(t, Paused, w.record().State)
			w.now = w.now.Add(72 * time.Hour)
			require.NoError(t, w.control(func(r Rollout) (Rollout, []Event, error) { return r.Cancel("ana", "stop", w.now) }))
			w.run(w.now)
			assert.Equal(t, Canceled, w.record().State)
			assert.Empty(t, w.watch.violations)
		})
	}
}

// Pause in each phase holds the split, and moves nothing; resume completes.
func TestPauseInEachPhase(t *testing.T) {
	for _, p := range Phases() {
		for _, after := range moments() {
			t.Run(string(p)+after, func(t *testing.T) {
				w := worldAt(t, p, after, "pause")
				if w.record().State == Completed {
					require.NotEmpty(t, after)
					return
				}
				require.Equal(t, Paused, w.record().State)
				steps := len(w.events)
				w.now = w.now.Add(9 * 24 * time.Hour)
				w.run(w.now)
				require.Len(t, w.events, steps, "nine days of pause tell nothing")

				require.NoError(t, w.control(func(r Rollout) (Rollout, []Event, error) { return r.Resume("ana", w.now) }))
				w.run(w.now.Add(24 * time.Hour))
				assert.Equal(t, Completed, w.record().State)
				assert.Empty(t, w.watch.violations)
			})
		}
	}
}

// Promote in each phase skips to the last step and runs that one in full.
func TestPromoteInEachPhase(t *testing.T) {
	for _, p := range Phases() {
		for _, after := range moments() {
			t.Run(string(p)+after, func(t *testing.T) {
				w := worldAt(t, p, after, "promote")
				r := w.record()
				assert.Equal(t, Completed, r.State)
				assert.Empty(t, w.watch.violations)
				assert.Equal(t, StepPassed, r.Steps[1].State)
				if p != PhaseReleasing && after == "" {
					assert.Equal(t, StepSkipped, r.Steps[0].State)
				}
			})
		}
	}
}

// Promote on a park, in each phase in which a rollout can be paused.
func TestPromoteWhilePausedInEachPhase(t *testing.T) {
	for _, p := range Phases() {
		t.Run(string(p), func(t *testing.T) {
			w := worldAt(t, p, "", "pause")
			w.now = w.now.Add(time.Hour)
			require.NoError(t, w.control(func(r Rollout) (Rollout, []Event, error) { return r.Promote("ana", w.now) }))
			w.run(w.now.Add(24 * time.Hour))
			assert.Equal(t, Completed, w.record().State)
			assert.Empty(t, w.watch.violations)
		})
	}
}

// The template visits every phase, so that the tests above test what they say.
func TestTemplateVisitsEveryPhase(t *testing.T) {
	for _, p := range Phases() {
		w := worldAt(t, p, "", "traffic 5/s")
		assert.Empty(t, w.triggers, "%s is never entered", p)
		assert.Equal(t, Completed, w.record().State)
	}
}
