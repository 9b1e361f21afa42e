package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// parked is the demo's rollout after its gate tripped.
func parked(t *testing.T, category rollout.Category, percent int) rollout.Rollout {
	t.Helper()
	r := demo(t)
	at := started.Add(11 * time.Minute)
	row := rollout.Judge(spec().Rules[0], rollout.Reading{Value: 734.2, Samples: 1710, Complete: true}, rollout.Reading{Value: 1740.38, Samples: 187, Complete: true})
	r.State, r.Phase, r.Percent, r.PhaseSince = rollout.SystemPaused, rollout.PhaseGating, percent, at
	r.Steps[0].State, r.Steps[0].Rows = rollout.StepPaused, []rollout.Row{row}
	r.Condition = &rollout.Condition{Category: category, Message: row.Reason, At: at}
	r.Pause = &rollout.PauseInfo{At: at, Reason: "it says why"}
	return r
}

// A terminal of 60 columns cut words in two and broke every table.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	r := wire.RolloutToAPI(parked(t, rollout.MetricRegression, 10))
	r.ID, r.EndpointID = "rol_2a65b00b8bebada023bd", "ep_1b75412bb0450d3ea7e0"
	feed := []api.Event{
		{Type: "rollout.traffic_shifted", CreatedAt: api.At(started), Message: "target traffic: 0% → 10%", OldTrafficPercent: ptr(0), NewTrafficPercent: ptr(10)},
		{Type: "rollout.system_paused", CreatedAt: api.At(started), Message: "paused automatically at step 1 of 3: the gate is breached (metrics-regression: router_latency p95)"},
	}
	basis := &rollout.Basis{SourceReplicas: 5, SourceBounds: rollout.Bounds{Min: 5, Max: 8}}
	j := planning.NewJourney(spec(), planning.Known{Basis: basis}, rollout.DefaultTimings())
	rows := [][]string{{"DEPLOYMENT", "NAME", "STATE", "SHARE", "REPLICAS", "MODEL"}, {"dep_550ce0dca5e722202ab9", "demo/chat/qwen25", "READY", "100.0 %", "1 ready, limits 1–1", "demo/qwen2.5-7b"}}
	for _, width := range []int{60, 80, 120} {
		for _, color := range []Palette{Plain, ANSI} {
			var b bytes.Buffer
			o := Options{Width: width, Color: color, Now: started.Add(12 * time.Minute)}
			require.NoError(t, Rollout(&b, r, o))
			require.NoError(t, Events(&b, feed, o))
			require.NoError(t, Plan(&b, "prod/chat", j, o))
			require.NoError(t, Table(&b, rows, o))
			for line := range strings.Lines(b.String()) {
				require.LessOrEqual(t, columns(strings.TrimRight(line, "\n")), width, line)
			}
		}
	}
	o := Options{Width: 60, Now: started.Add(12 * time.Minute)}
	var b bytes.Buffer
	require.NoError(t, Rollout(&b, r, o))
	require.NoError(t, Events(&b, feed, o))
	require.NoError(t, Plan(&b, "prod/chat", j, o))
	require.NoError(t, Table(&b, rows, o))
	golden(t, "narrow", b.Bytes())
}

// A command goes on after a backslash, so a shell takes it as it was copied.
func TestANarrowCommandCanBeCopied(t *testing.T) {
	var b bytes.Buffer
	p := Options{Width: 40}.printer(&b)
	p.command("    ", `sluice rollout ep_1b75412bb0450d3ea7e0 --cancel --reason "…"`, func(s string) string { return s })
	require.Equal(t, "    sluice rollout ep_1b75412bb0450d3ea7e0 \\\n        --cancel --reason \"…\"\n", b.String())
}

func TestAWideTerminalChangesNothing(t *testing.T) {
	r := wire.RolloutToAPI(parked(t, rollout.MetricRegression, 10))
	require.Equal(t, string(show(t, r, Options{})), string(show(t, r, Options{Width: 400})))
}

// At 100/0 with no target ready it said that both sides keep serving.
func TestWhatStandsIsSaidForTheSplitThatIsServed(t *testing.T) {
	for percent, says := range map[int]string{
		0:   "the split stays at 100/0 (source/target), the source keeps serving, the target has no traffic,",
		10:  "both sides keep serving",
		100: "the target keeps serving, the source has no traffic",
	} {
		require.Contains(t, ParkOf(wire.RolloutToAPI(parked(t, rollout.TargetNotReady, percent)), Options{}).Untouched, says)
	}
}

func TestAPersonsPauseIsNotCalledAPark(t *testing.T) {
	r := parked(t, rollout.MetricRegression, 10)
	r.State, r.Condition = rollout.Paused, nil
	out := string(show(t, wire.RolloutToAPI(r), Options{}))
	require.Contains(t, out, "paused by hand since")
	require.NotContains(t, out, "parked")
	require.Contains(t, out, "it says why")
}

func TestPromoteSaysThatARegressionGateHasNothingToCompareWith(t *testing.T) {
	r := parked(t, rollout.MetricRegression, 10)
	require.Contains(t, ParkOf(wire.RolloutToAPI(r), Options{}).Ways[1].Effect, "no source traffic")
	r.Spec.Rules, r.Steps[0].Rows = spec().Rules[1:], nil
	require.NotContains(t, ParkOf(wire.RolloutToAPI(r), Options{}).Ways[1].Effect, "no source traffic", "a threshold judges the target alone")
	hosted := wire.RolloutToAPI(parked(t, rollout.MetricRegression, 10))
	hosted.Sluice = nil
	require.Contains(t, ParkOf(hosted, Options{}).Ways[1].Effect, "no source traffic", "told from the rows alone")
}

func TestAParkThatTheEngineRetriesSaysSo(t *testing.T) {
	r := parked(t, rollout.MetricsUnavailable, 10)
	r.RetryAt, r.RetryUntil = started.Add(26*time.Minute), started.Add(191*time.Minute)
	text := ParkOf(wire.RolloutToAPI(r), Options{}).Text()
	require.Contains(t, text, "The engine tries again by itself at 2026-09-16T21:05:45Z, and gives up at 2026-09-16T23:50:45Z.")
	require.Contains(t, text, "as across its restart", "a gap alone told nobody why")
	r.RetryAt = time.Time{}
	require.NotContains(t, ParkOf(wire.RolloutToAPI(r), Options{}).Text(), "by itself")
}

// After a cancel a broken target restarted for ever and nothing said how to stop it.
func TestACanceledRolloutSaysWhatUsuallyComesNext(t *testing.T) {
	r := parked(t, rollout.TargetNotReady, 0)
	r.State, r.CompletedAt, r.Pause = rollout.Canceled, started.Add(time.Hour), nil
	require.Contains(t, string(show(t, wire.RolloutToAPI(r), Options{})), "sluice update dep_b --min-replicas 0 --max-replicas 0")
	r.Percent = 10
	require.Contains(t, string(show(t, wire.RolloutToAPI(r), Options{})), "sluice rollout dep_a --source dep_b --blue-green")
	r.State = rollout.Completed
	require.NotContains(t, string(show(t, wire.RolloutToAPI(r), Options{})), "next")
}
