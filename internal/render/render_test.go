package render

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func ptr[T any](v T) *T { return &v }

var started = time.Date(2026, 9, 16, 20, 39, 45, 0, time.UTC)

func spec() rollout.Spec {
	return rollout.Spec{
		Source: "dep_a", Target: "dep_b", Strategy: rollout.Canary, Origin: "commit 3f2a91c (#42)",
		Steps: []rollout.StepSpec{{Percent: 10}, {Percent: 50}, {Percent: 100}},
		Rules: []rollout.Rule{
			{Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: 95, Window: 300 * time.Second,
				Regression: &rollout.Regression{Direction: rollout.HigherIsWorse, MaxPercent: 25}},
			{Metric: rollout.RouterErrorRate, Threshold: &rollout.Threshold{Operator: rollout.LT, Value: 0.01}},
		},
	}
}

func demo(t *testing.T) rollout.Rollout {
	t.Helper()
	j, problems := rollout.NewJourney(spec(), rollout.Basis{SourceReplicas: 1, SourceBounds: rollout.Bounds{Min: 1, Max: 1}}, rollout.DefaultTimings())
	require.Empty(t, problems)
	r, _ := rollout.New("rol_1", "proj_1", "ep_1", spec(), j, rollout.DefaultTimings(), started)
	r, _, err := r.Start(started)
	require.NoError(t, err)
	return r
}

func show(t *testing.T, r api.Rollout, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Rollout(&b, r, o))
	return b.Bytes()
}

func TestSoakingStepShowsItsClocks(t *testing.T) {
	r := demo(t)
	r.State, r.Phase, r.Percent = rollout.Stabilizing, rollout.PhaseSoaking, 10
	shifted := started.Add(3*time.Minute + 57*time.Second)
	r.SteadySince = shifted.Add(30 * time.Second)
	r.PhaseSince = r.SteadySince
	out := wire.RolloutToAPI(r)
	out.Sluice.ActualShare = ptr(0.0983)
	golden(t, "soaking", show(t, out, Options{Now: r.SteadySince.Add(250 * time.Second), Names: map[string]string{"dep_a": "qwen25"}}))
}

func TestParkedRegressionSaysWhatWasNotTouchedAndThreeWaysOn(t *testing.T) {
	r := demo(t)
	at := started.Add(11 * time.Minute)
	rows := []rollout.Row{
		rollout.Judge(spec().Rules[0], rollout.Reading{Value: 734.2, Samples: 1710, Complete: true}, rollout.Reading{Value: 1740.38, Samples: 187, Complete: true}),
		rollout.Judge(spec().Rules[1], rollout.Reading{}, rollout.Reading{Value: 0.002, Samples: 187, Complete: true}),
	}
	r.State, r.Phase, r.Percent, r.PhaseSince = rollout.SystemPaused, rollout.PhaseGating, 10, at
	r.Steps[0].State, r.Steps[0].Rows = rollout.StepPaused, rows
	r.Condition = &rollout.Condition{Category: rollout.MetricRegression, Message: rows[0].Reason, At: at, Rows: rows}
	r.Pause = &rollout.PauseInfo{At: at, Reason: "metrics-regression: " + rows[0].Reason}
	golden(t, "parked", show(t, wire.RolloutToAPI(r), Options{Now: at.Add(5 * time.Second)}))
	golden(t, "parked_diagnostic", []byte(ParkOf(wire.RolloutToAPI(r), Options{}).Text()+"\n"))
	coloured := string(show(t, wire.RolloutToAPI(r), Options{Color: ANSI}))
	require.Contains(t, coloured, "\x1b[31m")
}

func TestUnavailableAndIdleRowsAreToldApart(t *testing.T) {
	r := demo(t)
	r.Phase, r.Percent = rollout.PhaseGating, 10
	r.Steps[0].Rows = []rollout.Row{
		rollout.Judge(spec().Rules[0], rollout.Reading{Value: 700, Samples: 90, Complete: true}, rollout.Reading{Value: 700, Samples: 7, Complete: true}),
		{Rule: spec().Rules[1], Note: "endpoint idle: gate skipped"},
	}
	golden(t, "unavailable", show(t, wire.RolloutToAPI(r), Options{}))
}

func TestHostedEngineWithoutExtrasStillReads(t *testing.T) {
	r := wire.RolloutToAPI(demo(t))
	r.Sluice = nil
	golden(t, "hosted", show(t, r, Options{Now: started.Add(time.Minute)}))
}

func TestStepAtAPartOfItsShareShowsBothShares(t *testing.T) {
	r := demo(t)
	r.State, r.Phase, r.Percent, r.Step, r.PhaseSince = rollout.Running, rollout.PhaseScaling, 40, 1, started.Add(time.Hour)
	r.Steps[0].State, r.Steps[1].State = rollout.StepPassed, rollout.StepRunning
	r.Limit = &rollout.Limit{Goal: r.Journey.PartialRung(40, 1), At: r.PhaseSince}
	golden(t, "limited", show(t, wire.RolloutToAPI(r), Options{}))
}

func TestFinishedRolloutShowsItsTime(t *testing.T) {
	r := demo(t)
	r.State, r.Percent, r.CompletedAt, r.Step = rollout.Completed, 100, started.Add(25*time.Minute), 2
	for i := range r.Steps {
		r.Steps[i] = rollout.StepRecord{State: rollout.StepPassed, StartedAt: started.Add(time.Duration(i) * 8 * time.Minute), CompletedAt: started.Add(time.Duration(i+1) * 8 * time.Minute)}
	}
	golden(t, "completed", show(t, wire.RolloutToAPI(r), Options{Now: started.Add(time.Hour)}))
}

func TestPlanOfTheDemo(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Plan(&b, "prod/chat", planning.NewJourney(spec(), planning.Known{}, rollout.DefaultTimings()), Options{}))
	golden(t, "plan", b.Bytes())
	b.Reset()
	basis := &rollout.Basis{SourceReplicas: 5, SourceBounds: rollout.Bounds{Min: 5, Max: 8}}
	require.NoError(t, Plan(&b, "prod/chat", planning.NewJourney(spec(), planning.Known{Basis: basis}, rollout.DefaultTimings()), Options{}))
	golden(t, "plan_live", b.Bytes())
	b.Reset()
	require.NoError(t, Plan(&b, "prod/chat", planning.NewJourney(rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Rolling}, planning.Known{}, rollout.DefaultTimings()), Options{}))
	golden(t, "plan_rolling", b.Bytes())
}

func TestFeedIsOldestFirstEvenWithinOneInstant(t *testing.T) {
	r := demo(t)
	_, made := rollout.New("rol_1", "proj_1", "ep_1", spec(), r.Journey, r.Timings, started)
	_, begun, err := demoPending(t).Start(started)
	require.NoError(t, err)
	shifted := rollout.Event{At: started.Add(237 * time.Second), Type: rollout.EventTrafficShifted, Level: rollout.LevelInfo, Message: "target traffic: 0% → 10%", OldPercent: ptr(0), NewPercent: ptr(10)}
	cancel := rollout.Event{At: started.Add(11 * time.Minute), Type: rollout.EventCanceled, Level: rollout.LevelWarn, Message: "cancel requested", Reason: "p95\x1b[2Jregression", Actor: "ann"}
	var feed []api.Event
	for _, e := range append(append(made, begun...), shifted, cancel) {
		feed = append([]api.Event{wire.EventToAPI(e)}, feed...)
	}
	var b bytes.Buffer
	require.NoError(t, Events(&b, feed, Options{}))
	golden(t, "events", b.Bytes())
}

func demoPending(t *testing.T) rollout.Rollout {
	t.Helper()
	r := demo(t)
	r.State = rollout.Pending
	return r
}

func TestTextOfOthersCannotMoveTheCursor(t *testing.T) {
	require.Equal(t, `a\x1b[2Jb c\u202ed\a`, Inert("a\x1b[2Jb\nc\u202ed\a"))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		r := api.Rollout{ID: s, State: api.PrefixRolloutState + "SYSTEM_PAUSED", SourceDeploymentID: s, TargetDeploymentID: s, Strategy: s,
			PauseInfo: &api.PauseInfo{Reason: s}, Sluice: &api.RolloutExtra{Origin: s, NextEvent: s, Phase: s}, CurrentStep: ptr(0),
			Status: api.RolloutStatus{Steps: []api.RolloutStep{{State: s, FailureReason: s, Metrics: []api.MetricRow{{Name: s, Operator: s, Threshold: ptr(1.0), Sluice: &api.RowExtra{Note: s}}}}}, Condition: &api.Condition{Category: s, Message: s}, Conditions: []api.Condition{{Type: s, Category: s, Message: s}}}}
		var b bytes.Buffer
		require.NoError(t, Rollout(&b, r, Options{}))
		require.NoError(t, Events(&b, []api.Event{{Type: s, Message: s, Reason: s, Level: s, Sluice: &api.EventExtra{Actor: s}}}, Options{}))
		for _, c := range b.String() {
			require.False(t, c != '\n' && c < 0x20 || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e', "%q", c)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterErrorsAreReturned(t *testing.T) {
	require.EqualError(t, Rollout(full{}, api.Rollout{}, Options{}), "disk full")
	require.EqualError(t, Events(full{}, []api.Event{{}}, Options{}), "disk full")
	require.EqualError(t, Plan(full{}, "x", planning.Journey{}, Options{}), "disk full")
}

func TestClocksReadWell(t *testing.T) {
	for d, want := range map[time.Duration]string{4500 * time.Millisecond: "4.5s", 250 * time.Second: "4:10", 2 * time.Hour: "2:00:00", -time.Second: "0.0s"} {
		require.Equal(t, want, clock(d))
	}
	require.Equal(t, []string{"aa bb", "cc"}, wrapped("aa bb cc", 5))
	require.Empty(t, strings.Join(wrapped("", 5), ""))
}
