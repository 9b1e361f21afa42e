package rollout_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// golden compares a text with a reviewed file, or rewrites it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// Every state meets everything that can happen; what the table lacks is refused.
func TestTransitionTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("Every state of a rollout with everything that can happen to it. \"–\" is refused\nfor a control and never happens by itself.\n\n")
	for _, s := range States() {
		for _, h := range happenings() {
			next, ok := Next(s, h)
			if !ok {
				next = "–"
			}
			fmt.Fprintf(&b, "%-14s %-18s %s\n", s, h, next)
		}
		b.WriteString("\n")
	}
	golden(t, "testdata/transitions.txt", b.String())
}

// From every state that is not an end, an end is within reach; and none leaves an end.
func TestEveryStateEnds(t *testing.T) {
	for _, s := range States() {
		if s.Terminal() {
			for _, h := range happenings() {
				_, ok := Next(s, h)
				assert.False(t, ok, "%s moves by %q", s, h)
			}
			continue
		}
		assert.True(t, linked(s, Canceled, 4) || linked(s, Completed, 4), "%s has no way to an end", s)
		assert.True(t, s.Parked() || s.Active() || s == Pending, "%s is nobody's to move", s)
	}
}

// A control that a state does not take is refused with the state and a way on, and
// leaves the rollout as it was.
func TestRefusals(t *testing.T) {
	now := epoch
	controls := map[Happening]func(Rollout) (Rollout, []Event, error){
		AskedStart:   func(r Rollout) (Rollout, []Event, error) { return r.Start(now) },
		AskedPause:   func(r Rollout) (Rollout, []Event, error) { return r.PauseBy("ana", "", now) },
		AskedResume:  func(r Rollout) (Rollout, []Event, error) { return r.Resume("ana", now) },
		AskedPromote: func(r Rollout) (Rollout, []Event, error) { return r.Promote("ana", now) },
		AskedCancel:  func(r Rollout) (Rollout, []Event, error) { return r.Cancel("ana", "why", now) },
	}
	for _, s := range States() {
		for h, press := range controls {
			t.Run(fmt.Sprintf("%s %s", h, s), func(t *testing.T) {
				w := newWorld()
				w.source.replicas = []replica{{life: ready}}
				require.Empty(t, w.create(Spec{Strategy: Canary}))
				r := w.record()
				r.State, r.Phase = s, PhaseScaling
				after, events, err := press(r)
				next, ok := Next(s, h)
				if ok {
					require.NoError(t, err)
					assert.Equal(t, next, after.State)
					assert.Len(t, events, 1)
					return
				}
				var refusal *Refusal
				require.True(t, errors.As(err, &refusal))
				assert.Equal(t, s, refusal.State)
				assert.NotEmpty(t, refusal.Hint)
				assert.Contains(t, err.Error(), string(s))
				assert.Equal(t, r, after)
				assert.Empty(t, events)
			})
		}
	}
}

// A control never changes the rollout that it was given.
func TestControlsCopy(t *testing.T) {
	w := worldAt(t, PhaseSoaking, " after 10s", "pause")
	r := w.record()
	before := fmt.Sprintf("%+v", r)
	_, _, err := r.Promote("ana", w.now)
	require.NoError(t, err)
	_, _, err = r.Resume("ana", w.now)
	require.NoError(t, err)
	Decide(r, w.observe(r), w.now)
	assert.Equal(t, before, fmt.Sprintf("%+v", r))
}

// An engine that reads a state or a phase it does not know parks; nothing goes on
// by default.
func TestUnknownParks(t *testing.T) {
	r := worldAt(t, PhaseSoaking, " after 10s", "pause").record()
	r.State, r.Phase = Running, "DREAMING"
	d := Decide(r, Observed{Split: Split{Held: true, Percent: r.Percent}}, epoch.Add(time.Hour))
	assert.Equal(t, SystemPaused, d.Rollout.State)
	assert.Equal(t, Internal, d.Rollout.Condition.Category)
	assert.Empty(t, d.Effects)

	r.State, r.Phase = "ABORTING", PhaseSoaking
	d = Decide(r, Observed{Split: Split{Held: true, Percent: r.Percent}}, epoch.Add(time.Hour))
	assert.Equal(t, SystemPaused, d.Rollout.State)
	assert.Equal(t, Internal, d.Rollout.Condition.Category)
	assert.Empty(t, d.Effects)
}

// Only these are tried again without a person.
func TestRecoverable(t *testing.T) {
	got := map[Category]bool{}
	for _, c := range []Category{MetricRegression, MetricsUnavailable, TargetNotReady, SourceNotDrained, HealthRegression, CapacityExhausted, RoutingError, DependencyOutage, AbortedByOperator, Internal, PolicyInfeasible, UnderServed, EntitlementLapsed, "NEW_ONE"} {
		got[c] = c.Recoverable()
	}
	assert.Equal(t, map[Category]bool{
		MetricRegression: false, MetricsUnavailable: true, TargetNotReady: true, SourceNotDrained: false,
		HealthRegression: false, CapacityExhausted: true, RoutingError: true, DependencyOutage: true,
		AbortedByOperator: false, Internal: false, PolicyInfeasible: false, UnderServed: true,
		EntitlementLapsed: true, "NEW_ONE": false,
	}, got)
}
