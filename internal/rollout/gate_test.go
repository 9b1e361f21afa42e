package rollout_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// latency makes a rule on a percentile of the latency.
func latency(percentile int, check any) Rule {
	r := Rule{Metric: RouterLatency, Stat: StatPercentile, Percentile: percentile}
	switch c := check.(type) {
	case Regression:
		r.Regression = &c
	case Threshold:
		r.Threshold = &c
	}
	return r
}

// D13: the matrix of no, broken, zero and non-zero readings on both sides, for both
// directions and for a threshold. testdata/verdicts.txt is reviewed by a person.
func TestD13VerdictsOfOneRule(t *testing.T) {
	readings := []struct {
		name string
		r    Reading
	}{
		{"none", Reading{Complete: true}},
		{"gap", Reading{Value: 100, Samples: 500}},
		{"few", Reading{Value: 100, Samples: 19, Complete: true}},
		{"NaN", Reading{Value: math.NaN(), Samples: 500, Complete: true}},
		{"+Inf", Reading{Value: math.Inf(1), Samples: 500, Complete: true}},
		{"0", Reading{Value: 0, Samples: 500, Complete: true}},
		{"100", Reading{Value: 100, Samples: 500, Complete: true}},
		{"110", Reading{Value: 110, Samples: 500, Complete: true}},
		{"111", Reading{Value: 111, Samples: 500, Complete: true}},
		{"89", Reading{Value: 89, Samples: 500, Complete: true}},
	}
	rules := []struct {
		name string
		rule Rule
	}{
		{"p95 at most 10 % higher", latency(95, Regression{HigherIsWorse, 10})},
		{"p95 at most 0 % higher", latency(95, Regression{HigherIsWorse, 0})},
		{"p95 at most 10 % lower", latency(95, Regression{LowerIsWorse, 10})},
		{"p95 under 111", latency(95, Threshold{LT, 111})},
	}
	var b strings.Builder
	b.WriteString("The verdict of one rule for what was read of the source and of the target. \"none\"\nis no traffic, \"few\" is 19 samples where 20 are needed, \"gap\" is a meter that did not\nwatch the whole window. Where neither side has traffic the gate as a whole is skipped.\n")
	for _, rule := range rules {
		fmt.Fprintf(&b, "\n%s\n", rule.name)
		for _, source := range readings {
			for _, target := range readings {
				row := Judge(rule.rule, source.r, target.r)
				note := row.Note
				if row.Reason != "" {
					note = row.Reason
				}
				fmt.Fprintf(&b, "  source %-5s target %-5s %-12s %s\n", source.name, target.name, row.Verdict, note)
			}
		}
	}
	golden(t, "testdata/verdicts.txt", strings.ReplaceAll(b.String(), " \n", "\n"))
}

// outcome is what one rule of a gate comes to in one look.
type outcome struct {
	name           string
	source, target Reading
}

func outcomes() []outcome {
	at := func(v float64) Reading { return Reading{Value: v, Samples: 500, Complete: true} }
	return []outcome{
		{"pass", at(100), at(100)},
		{"fail", at(100), at(200)},
		{"err", at(100), Reading{}},
		{"nodata", Reading{Complete: true}, Reading{Complete: true}},
	}
}

// gateStep is a rollout that stands at the end of its first soak, with n rules.
func gateStep(t *testing.T, rules int) (*world, Rollout) {
	t.Helper()
	w := newWorld()
	w.source.replicas = []replica{{life: ready}}
	spec := Spec{Strategy: Canary, Steps: []StepSpec{{Percent: 10}, {Percent: 100}}}
	for range rules {
		spec.Rules = append(spec.Rules, latency(95, Regression{HigherIsWorse, 25}))
	}
	require.Empty(t, w.create(spec))
	require.NoError(t, w.control(func(r Rollout) (Rollout, []Event, error) { return r.Start(w.now) }))
	r := w.record()
	w.target.replicas = []replica{{life: ready}}
	w.target.bounds = Bounds{Min: 1, Max: 1}
	r.Percent, r.State, r.Phase, r.Lifted = 10, Stabilizing, PhaseGating, true
	r.SteadySince = epoch
	r.PhaseSince = r.SoakEnds()
	return w, r
}

// look lets the core decide on readings at an instant, with capacity as it should be.
func look(w *world, r Rollout, at time.Time, o []outcome) Decision {
	seen := Observed{Source: w.source.observed(), Target: w.target.observed(), Split: Split{Held: true, Percent: 10}}
	if len(Wants(r, at)) > 0 {
		for _, one := range o {
			seen.Readings = append(seen.Readings, one.source, one.target)
		}
	}
	return Decide(r, seen, at)
}

// D3 (argo-rollouts#4479): every combination of what three rules of one gate, and
// of what three looks at one rule, can come to. A step passes only where nothing
// failed and nothing was missing. testdata/gates.txt is reviewed by a person.
func TestD3VerdictsOfAGate(t *testing.T) {
	var b strings.Builder
	b.WriteString("What a gate comes to for every combination of what its three rules read, in one look\nthat the looks during the soak agree with.\n\n")
	for _, x := range outcomes() {
		for _, y := range outcomes() {
			for _, z := range outcomes() {
				w, r := gateStep(t, 3)
				r.Peeks = []Peek{{At: r.SoakEnds().Add(-15 * time.Second), Breached: []int{0, 1, 2}}}
				d := look(w, r, r.SoakEnds().Add(3*time.Second), []outcome{x, y, z})
				fmt.Fprintf(&b, "%-6s %-6s %-6s  %s\n", x.name, y.name, z.name, came(d))
				if x.name != "pass" || y.name != "pass" || z.name != "pass" {
					all := x.name == "nodata" && y.name == "nodata" && z.name == "nodata"
					assert.Equal(t, all || !failing(x, y, z), d.Rollout.Steps[0].State == StepPassed)
				}
			}
		}
	}
	b.WriteString("\nWhat one rule comes to over a breach and three looks at it, 15 s apart and at the end of\nthe 90 s, without looks during the soak. The first pass ends the confirmation.\n\n")
	for _, x := range outcomes() {
		for _, y := range outcomes() {
			for _, z := range outcomes() {
				fmt.Fprintf(&b, "fail, then %-6s %-6s %-6s  %s\n", x.name, y.name, z.name, confirmed(t, x, y, z))
			}
		}
	}
	golden(t, "testdata/gates.txt", b.String())
}

// failing reports whether a combination holds a rule that did not pass. A rule
// without traffic on either side counts, once another rule saw traffic.
func failing(all ...outcome) bool {
	for _, o := range all {
		if o.name != "pass" {
			return true
		}
	}
	return false
}

// confirmed plays a breach and the three looks that follow; the last holds until
// the confirmation is over.
func confirmed(t *testing.T, looks ...outcome) string {
	w, r := gateStep(t, 1)
	at := r.SoakEnds().Add(3 * time.Second)
	d := look(w, r, at, []outcome{outcomes()[1]})
	require.Equal(t, PhaseConfirming, d.Rollout.Phase)
	for i := 0; d.Rollout.Phase == PhaseConfirming && d.Rollout.State == Stabilizing; i++ {
		require.Less(t, i, 20, "the confirmation does not end")
		due := look(w, d.Rollout, at, nil).Due
		require.True(t, due.After(at))
		at = due
		d = look(w, d.Rollout, at, []outcome{looks[min(i, len(looks)-1)]})
	}
	return fmt.Sprintf("%-30s after %v", came(d), at.Sub(r.SoakEnds().Add(3*time.Second)))
}

// came says what a decision did to the step.
func came(d Decision) string {
	r := d.Rollout
	skipped := ""
	for _, e := range d.Events {
		if e.Type == EventGateSkipped {
			skipped = ", gate skipped"
		}
	}
	if r.Steps[0].State == StepPassed {
		return "step passed" + skipped
	}
	if r.Condition != nil {
		return "parked " + string(r.Condition.Category)
	}
	return string(r.Phase)
}

// D5 (argo-rollouts PR#4864): no query before the step has a window of complete
// readings of its own, and none that decides before 390 s of soak.
func TestD5QueriesOfTheDemo(t *testing.T) {
	w := play(t, load(t, "testdata/scenarios/demo.txt"), crashPlan{})
	require.NotEmpty(t, w.meter.queries)
	steady := epoch.Add(3*time.Minute + 57*time.Second + 30*time.Second)
	var decided []asked
	for _, a := range w.meter.queries {
		assert.False(t, a.q.From.Before(steady), "window begins %v before the soak", steady.Sub(a.q.From))
		assert.False(t, a.q.To.After(a.at.Add(-90*time.Second)), "window ends inside the lag")
		if !a.at.Before(steady.Add(390 * time.Second)) {
			decided = append(decided, a)
			assert.Equal(t, 300*time.Second, a.q.To.Sub(a.q.From))
		}
	}
	assert.Len(t, decided, 2, "one look decides, at both sides")
	assert.Equal(t, 393*time.Second, decided[0].at.Sub(steady))
}

// D7 (argo-rollouts#1360): a step waits for the longest window of its rules and the
// lag, is never made shorter than asked, and has no such wait without steps.
func TestD7SoakGrowth(t *testing.T) {
	ts := DefaultTimings()
	window := func(ds ...time.Duration) []Rule {
		var out []Rule
		for _, d := range ds {
			r := latency(95, Threshold{LT, 1000})
			r.Window = d
			out = append(out, r)
		}
		return out
	}
	for _, c := range []struct {
		name      string
		spec      Spec
		asked, is time.Duration
	}{
		{"nothing asked, no rules", Spec{Strategy: Canary}, 180 * time.Second, 180 * time.Second},
		{"default window", Spec{Strategy: Canary, Rules: window(0)}, 180 * time.Second, 390 * time.Second},
		{"300 s window", Spec{Strategy: Canary, Rules: window(300 * time.Second)}, 180 * time.Second, 390 * time.Second},
		{"60 s window fits the default", Spec{Strategy: Canary, Rules: window(time.Minute)}, 180 * time.Second, 180 * time.Second},
		{"91 s window does not", Spec{Strategy: Canary, Rules: window(91 * time.Second)}, 180 * time.Second, 181 * time.Second},
		{"the longest counts", Spec{Strategy: Canary, Rules: window(time.Minute, 20*time.Minute, 5*time.Minute)}, 180 * time.Second, 1290 * time.Second},
		{"a long interval stays", Spec{Strategy: Canary, StepInterval: 600 * time.Second, Rules: window(0)}, 600 * time.Second, 600 * time.Second},
		{"a short one grows", Spec{Strategy: Canary, StepInterval: time.Second, Rules: window(0)}, time.Second, 390 * time.Second},
		{"a short one without rules stays", Spec{Strategy: Canary, StepInterval: time.Second}, time.Second, time.Second},
		{"blue-green", Spec{Strategy: BlueGreen, StepInterval: time.Hour}, 30 * time.Second, 30 * time.Second},
		{"rolling", Spec{Strategy: Rolling}, 30 * time.Second, 30 * time.Second},
	} {
		asked, is := ts.Soak(c.spec)
		assert.Equal(t, []time.Duration{c.asked, c.is}, []time.Duration{asked, is}, c.name)
	}
}

func TestSamplesNeeded(t *testing.T) {
	want := map[int]int{1: 2, 50: 2, 66: 3, 67: 4, 75: 4, 90: 10, 95: 20, 98: 50, 99: 100}
	for p, n := range want {
		assert.Equal(t, n, latency(p, Threshold{LT, 1}).SamplesNeeded(), "p%d", p)
	}
	assert.Equal(t, 1, Rule{Metric: RouterErrorRate}.SamplesNeeded())
	assert.Equal(t, 1, Rule{Metric: RouterLatency, Stat: StatAvg}.SamplesNeeded())
}

// The pause text of the demo, to the letter but for the last digit of what the
// platform rounds before it divides.
func TestPauseTextOfTheDemo(t *testing.T) {
	at := func(v float64) Reading { return Reading{Value: v, Samples: 1000, Complete: true} }
	row := Judge(latency(95, Regression{HigherIsWorse, 25}), at(734.20), at(1740.38))
	assert.Equal(t, "regression check router_latency failed: target=1740.38 vs source=734.20, regression=137.04% exceeds max=25.00% (direction=REGRESSION_DIRECTION_HIGHER_IS_WORSE)", row.Reason)
}

// There is always one of three verdicts, whatever is read; a broken or missing
// target never passes; and a worse target never does better.
func TestVerdictsNever(t *testing.T) {
	reading := rapid.Custom(func(t *rapid.T) Reading {
		return Reading{
			Value:    rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, 100, math.NaN(), math.Inf(1), math.Inf(-1)})).Draw(t, "value"),
			Samples:  rapid.IntRange(0, 200).Draw(t, "samples"),
			Complete: rapid.Bool().Draw(t, "complete"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		rule := latency(rapid.IntRange(1, 99).Draw(t, "percentile"), Regression{rapid.SampledFrom([]Direction{HigherIsWorse, LowerIsWorse}).Draw(t, "direction"), rapid.Float64Range(0, 99).Draw(t, "budget")})
		source, target := reading.Draw(t, "source"), reading.Draw(t, "target")
		row := Judge(rule, source, target)
		sound := target.Complete && target.Samples >= row.Needed && !math.IsNaN(target.Value) && !math.IsInf(target.Value, 0)
		switch row.Verdict {
		case VerdictPass:
			if !sound {
				t.Fatalf("passed on %+v", target)
			}
		case VerdictBreached, VerdictUnavailable:
			if row.Reason == "" {
				t.Fatalf("%s without a reason", row.Verdict)
			}
		case VerdictNone:
			t.Fatalf("no verdict")
		}
		if !sound && row.Verdict != VerdictUnavailable {
			t.Fatalf("%s on %+v", row.Verdict, target)
		}
		if sound && source.Value > 0 && target.Value >= 0 && rule.Regression.Direction == HigherIsWorse && row.Verdict == VerdictBreached {
			target.Value += 1
			if Judge(rule, source, target).Verdict != VerdictBreached {
				t.Fatalf("a worse target passed")
			}
		}
	})
}
