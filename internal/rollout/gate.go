package rollout

import (
	"fmt"
	"math"
	"time"
)

// Verdict is a gate's answer. There is always one.
type Verdict string

// The three verdicts, and the absence of one where the gate was skipped.
const (
	VerdictPass        Verdict = "PASS"
	VerdictBreached    Verdict = "BREACHED"
	VerdictUnavailable Verdict = "UNAVAILABLE"
	VerdictNone        Verdict = ""
)

// Row is one rule with what was measured on both sides and the verdict.
type Row struct {
	Rule          Rule     `json:"rule"`
	SourceValue   *float64 `json:"sourceValue,omitempty"`
	TargetValue   *float64 `json:"targetValue,omitempty"`
	SourceSamples int      `json:"sourceSamples"`
	TargetSamples int      `json:"targetSamples"`
	Needed        int      `json:"needed"`               // samples that each side must have
	Regression    *float64 `json:"regression,omitempty"` // percent, regression checks with both values
	Verdict       Verdict  `json:"verdict"`
	Reason        string   `json:"reason,omitempty"` // of a breach or an unavailable reading
	Note          string   `json:"note,omitempty"`   // for example "no source data"
}

// SamplesNeeded returns how many requests a window must hold before the rule's
// statistic means anything: 1/(1−p) for a percentile, so 20 for p95 and 100 for
// p99, and 1 for an average.
func (r Rule) SamplesNeeded() int {
	if r.Stat != StatPercentile {
		return 1
	}
	return (100 + 99 - r.Percentile) / (100 - r.Percentile)
}

// sideReading is one side's part of a judgement.
type sideReading int

const (
	present sideReading = iota // a finite number on enough samples
	absent                     // nothing was served: a fact, not a gap
	broken                     // a gap, too few samples, or not a number
)

func classify(r Reading, needed int) sideReading {
	switch {
	case !r.Complete:
		return broken
	case r.Samples == 0:
		return absent
	case r.Samples < needed || math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		return broken
	}
	return present
}

// Judge gives the verdict of one rule on the readings of both sides. It covers
// the whole table of absent, broken, zero and non-zero on both sides:
//
//   - the target without a trustworthy reading is UNAVAILABLE, whatever the source;
//   - a threshold looks at the target alone;
//   - a regression passes without source data, is UNAVAILABLE on a broken source,
//     and against a source of exactly 0 fails only for a non-zero target where
//     higher is worse;
//   - otherwise it fails when the target is strictly more than MaxPercent worse.
func Judge(r Rule, source, target Reading) Row {
	row := Row{Rule: r, SourceSamples: source.Samples, TargetSamples: target.Samples, Needed: r.SamplesNeeded()}
	if c := classify(target, row.Needed); c != present {
		row.Verdict = VerdictUnavailable
		row.Reason = unavailable(r, "target", target, row.Needed)
		return row
	}
	if r.Threshold != nil {
		row.TargetValue = &target.Value
		return judgeThreshold(row, *r.Threshold, target.Value)
	}
	switch classify(source, row.Needed) {
	case broken:
		row.Verdict = VerdictUnavailable
		row.Reason = unavailable(r, "source", source, row.Needed)
	case absent:
		row.TargetValue = &target.Value
		row.Verdict = VerdictPass
		row.Note = "no source data"
	case present:
		row.SourceValue, row.TargetValue = &source.Value, &target.Value
		row = judgeRegression(row, *r.Regression, source.Value, target.Value)
	}
	return row
}

func judgeThreshold(row Row, t Threshold, value float64) Row {
	var ok bool
	switch t.Operator {
	case LT:
		ok = value < t.Value
	case LTE:
		ok = value <= t.Value
	case GT:
		ok = value > t.Value
	case GTE:
		ok = value >= t.Value
	}
	row.Verdict = VerdictPass
	if !ok {
		row.Verdict = VerdictBreached
		row.Reason = fmt.Sprintf("threshold check %s failed: target=%s does not satisfy %s %s", row.Rule.Metric, measured(value), symbol(t.Operator), number(t.Value))
	}
	return row
}

func judgeRegression(row Row, c Regression, source, target float64) Row {
	row.Verdict = VerdictPass
	if source == 0 {
		if c.Direction == HigherIsWorse && target != 0 {
			row.Verdict = VerdictBreached
			row.Reason = fmt.Sprintf("regression check %s failed: target=%s vs source=0.00, any value above zero is worse (direction=REGRESSION_DIRECTION_%s)", row.Rule.Metric, measured(target), c.Direction)
		}
		return row
	}
	percent := (target - source) / source * 100
	if c.Direction == LowerIsWorse {
		percent = -percent
	}
	row.Regression = &percent
	if percent > c.MaxPercent {
		row.Verdict = VerdictBreached
		row.Reason = fmt.Sprintf("regression check %s failed: target=%s vs source=%s, regression=%.2f%% exceeds max=%.2f%% (direction=REGRESSION_DIRECTION_%s)", row.Rule.Metric, measured(target), measured(source), percent, c.MaxPercent, c.Direction)
	}
	return row
}

func unavailable(r Rule, side string, got Reading, needed int) string {
	switch {
	case !got.Complete:
		return fmt.Sprintf("%s: %s has a gap in its readings", r.Metric, side)
	case math.IsNaN(got.Value) || math.IsInf(got.Value, 0):
		return fmt.Sprintf("%s: the %s reading is not a number", r.Metric, side)
	default:
		return fmt.Sprintf("%s: %s has insufficient samples (%d < %d)", r.Metric, side, got.Samples, needed)
	}
}

// measured prints two decimals, as in the pause texts, but keeps a small ratio
// readable.
func measured(v float64) string {
	if v != 0 && math.Abs(v) < 0.1 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func symbol(o Operator) string {
	return map[Operator]string{LT: "<", LTE: "≤", GT: ">", GTE: "≥"}[o]
}

// Judgement is the verdict of a whole gate: every rule must pass.
type Judgement struct {
	Rows []Row
	Idle bool // neither side served anything: the gate is skipped
}

// Verdict is BREACHED if any rule is, else UNAVAILABLE if any is, else PASS; and
// none at all for an idle endpoint.
func (g Judgement) Verdict() Verdict {
	if g.Idle {
		return VerdictNone
	}
	v := VerdictPass
	for _, row := range g.Rows {
		switch row.Verdict {
		case VerdictBreached:
			return VerdictBreached
		case VerdictUnavailable:
			v = VerdictUnavailable
		case VerdictPass, VerdictNone:
		}
	}
	return v
}

// Breached returns the indices of the rules that are breached.
func (g Judgement) Breached() []int {
	var out []int
	for i, row := range g.Rows {
		if row.Verdict == VerdictBreached {
			out = append(out, i)
		}
	}
	return out
}

// judgeAll judges every rule. readings hold source then target for each rule in
// order, as Wants asked for them; a missing reading counts as a gap.
func judgeAll(rules []Rule, readings []Reading) Judgement {
	g := Judgement{Idle: true}
	at := func(i int) Reading {
		if i < len(readings) {
			return readings[i]
		}
		return Reading{}
	}
	for i, r := range rules {
		source, target := at(2*i), at(2*i+1)
		// A side whose every request hangs is anything but idle.
		for _, side := range []Reading{source, target} {
			if side.Samples > 0 || side.Touched || !side.Complete {
				g.Idle = false
			}
		}
		g.Rows = append(g.Rows, Judge(r, source, target))
	}
	if g.Idle {
		for i := range g.Rows {
			g.Rows[i].Verdict, g.Rows[i].Reason = VerdictNone, ""
			g.Rows[i].Note = "endpoint idle: gate skipped"
		}
	}
	return g
}

// queries asks for both sides of every rule over the window that ends the
// ingestion lag before now, and reaches no further back than the step's steady
// state.
func (r Rollout) queries(now time.Time) []Query {
	end := now.Add(-r.Timings.IngestionLag)
	var out []Query
	for _, rule := range r.Spec.Rules {
		from := end.Add(-r.Timings.WindowOf(rule))
		if from.Before(r.SteadySince) {
			from = r.SteadySince
		}
		for _, d := range []string{r.Spec.Source, r.Spec.Target} {
			out = append(out, Query{
				Deployment: d, Metric: rule.Metric, Stat: rule.Stat, Percentile: rule.Percentile,
				From: from, To: end, MinGeneration: r.Generation,
			})
		}
	}
	return out
}
