package planning

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Severity of a finding.
type Severity string

// The severities. None of them stops an apply; what can never be right is an error
// and not a finding.
const (
	Info    Severity = "info"
	Caution Severity = "warning"
)

// Code names a kind of finding. Codes are stable; each has a page in
// docs/findings.
type Code string

// The codes.
const (
	NoGate                Code = "NO_GATE"
	SoakGrown             Code = "SOAK_GROWN"
	FirstStepLarge        Code = "FIRST_STEP_LARGE"
	GateLowSamplesNote    Code = "GATE_LOW_SAMPLES_NOTE"
	BlueGreenFullBlast    Code = "BLUE_GREEN_FULL_BLAST"
	StepReplicasBelow     Code = "STEP_REPLICAS_BELOW_SHARE"
	UngatedWhenIdle       Code = "UNGATED_WHEN_IDLE"
	LastStepUngated       Code = "LAST_STEP_UNGATED"
	TimeoutShort          Code = "TIMEOUT_SHORT"
	SurgeLarge            Code = "SURGE_LARGE"
	SourceHeld            Code = "SOURCE_HELD"
	BreakerKeepsSeed      Code = "BREAKER_KEEPS_SEED"
	largeFirstStepPercent      = 25
)

// Codes lists every code of this package.
func Codes() []Code {
	return []Code{NoGate, SoakGrown, FirstStepLarge, GateLowSamplesNote, BlueGreenFullBlast, StepReplicasBelow, UngatedWhenIdle, LastStepUngated, TimeoutShort, SurgeLarge, SourceHeld, BreakerKeepsSeed}
}

// Finding is one remark of a plan: what, where in the declaration, and how to mend
// it. Subject is a field path in the words of the wire.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy"`
	Subject  string   `json:"subject"`
}

// coldStarts is what DefaultWait leaves for the cold starts of a whole journey: how
// long they take is not known at plan.
const coldStarts = 30 * time.Minute

// DefaultWait is how long a door waits for a rollout whose waits take at least that
// long, when it is not told.
func DefaultWait(least time.Duration) time.Duration {
	return (least*3/2 + coldStarts).Round(time.Second)
}

// ShortTimeout is the finding about a time to wait (0 for the default) that ends before
// the waits of the steps can.
func ShortTimeout(least, timeout time.Duration) (Finding, bool) {
	if timeout <= 0 || timeout >= least {
		return Finding{}, false
	}
	return Finding{Code: TimeoutShort, Severity: Caution, Subject: "timeouts",
		Message: fmt.Sprintf("the waits alone take at least %s, but the wait for this rollout ends after %s; the rollout goes on at the engine and the next apply waits again", Span(least), Span(timeout)),
		Remedy:  fmt.Sprintf("give at least %s plus the target's cold starts, or leave the timeout out", Span(least)),
	}, true
}

// findings looks at a journey in a fixed order.
func findings(s rollout.Spec, k Known, t rollout.Timings, j Journey) []Finding {
	l := &list{}
	switch s.Strategy {
	case rollout.Canary:
		canaryFindings(l, s, t, j)
	case rollout.BlueGreen:
		l.add(BlueGreenFullBlast, Caution, "strategy",
			"all of the pair's traffic moves in one step that no metric gate judges: a bad target is seen by 100 % of it",
			"use canary with a metric if the target may be worse; health gates run either way")
	case rollout.Rolling:
	}
	if f, short := ShortTimeout(j.Totals.LeastDuration, k.Timeout); short {
		l.found = append(l.found, f)
	}
	wayBackFindings(l, s, k, t)
	for _, st := range j.Steps {
		if st.surge != nil && *st.surge > k.Burst {
			l.add(SurgeLarge, Caution, stepField(s, st, "traffic"),
				surgeText(st),
				fmt.Sprintf("put a smaller step before it, so that no step starts more than %d", k.Burst))
		}
	}
	return l.found
}

func canaryFindings(l *list, s rollout.Spec, t rollout.Timings, j Journey) {
	if len(s.Rules) == 0 {
		l.add(NoGate, Caution, "metrics",
			"no metric gate: each step passes once its wait is over, however the target does",
			"add a metric, for example router_latency p95 with a regression budget")
	} else {
		gateFindings(l, s, t, j)
	}
	if first := j.Totals.FirstStepPercent; first > largeFirstStepPercent {
		l.add(FirstStepLarge, Caution, "canary.steps[0].traffic",
			fmt.Sprintf("the first step already puts %d %% of the pair's traffic on the target", first),
			"start with a step of 5 or 10")
	}
	for i, st := range s.Steps {
		final := j.Totals.FinalTargetReplicas
		if st.Replicas == nil || final == nil {
			continue
		}
		if need := rollout.TargetFor(*final, st.Percent); *st.Replicas < need {
			l.add(StepReplicasBelow, Caution, fmt.Sprintf("canary.steps[%d].replicas", i),
				fmt.Sprintf("step %d runs %d %% of traffic on %s; its share of %d needs %d", i+1, st.Percent, Count(*st.Replicas, "target replica"), *final, need),
				"leave replicas out for the computed count; the source keeps its own until the total is safe")
		}
	}
}

func gateFindings(l *list, s rollout.Spec, t rollout.Timings, j Journey) {
	if asked, soak := t.Soak(s); soak > asked && !grownForBreaker(s, t) {
		l.add(SoakGrown, Info, "canary.stepInterval",
			fmt.Sprintf("each step waits %s instead of %s: a gate window of %s and %s to read it", Span(soak), Span(asked), Span(soak-t.IngestionLag), Span(t.IngestionLag)),
			fmt.Sprintf("ask for %s, or shorten the window", Span(soak)))
	}
	for i, g := range j.Gates {
		if g.SamplesNeeded <= 1 || g.BusiestStep == 0 {
			continue
		}
		l.add(GateLowSamplesNote, Info, fmt.Sprintf("metrics[%d]", i),
			fmt.Sprintf("%s needs %d requests a side in %s: %s requests a second on the pair at step %d, or it parks", MetricName(g.Rule), g.SamplesNeeded, Span(g.Window), rate(g.RequestsPerSecond), g.BusiestStep),
			"a longer window, a larger first step, or a lower percentile")
	}
	if last := j.Steps[len(j.Steps)-1]; !last.Gated {
		l.add(LastStepUngated, Info, "metrics",
			fmt.Sprintf("no rule judges the last %d %%: at 100 %% the source has no traffic to compare with", last.DeltaPercent),
			"put a step such as 90 before it, or add a threshold_check")
	}
	l.add(UngatedWhenIdle, Info, "metrics",
		"without any traffic the gate is skipped, and steps pass by their wait alone",
		"roll out while there is traffic")
}

// surgeText says "up to" where the target's own replicas are not known.
func surgeText(st Step) string {
	if st.ScaleUp == nil {
		return fmt.Sprintf("step %d starts up to %d target replicas at once", st.Number, *st.surge)
	}
	return fmt.Sprintf("step %d starts %d target replicas at once", st.Number, *st.surge)
}

// MetricName is a rule's metric with its percentile, if it has one.
func MetricName(r rollout.Rule) string {
	if r.Stat == rollout.StatPercentile {
		return fmt.Sprintf("%s p%d", r.Metric, r.Percentile)
	}
	return string(r.Metric)
}

// rate rounds up to two digits, so that the number named is enough.
func rate(v float64) string {
	if v <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return number(math.Round(math.Ceil(v/unit-1e-9)*unit*1e6) / 1e6)
}

func stepField(s rollout.Spec, st Step, field string) string {
	if s.Strategy == rollout.Canary && len(s.Steps) > 0 {
		return fmt.Sprintf("canary.steps[%d].%s", st.Number-1, field)
	}
	return "finalTargetReplicas"
}

type list struct{ found []Finding }

func (l *list) add(c Code, s Severity, subject, message, remedy string) {
	l.found = append(l.found, Finding{Code: c, Severity: s, Subject: subject, Message: message, Remedy: remedy})
}
