package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// Rollout writes a live rollout: header, ladder, the anatomy of the current step
// with its clocks, the gate's rows with samples against what they need, the next
// event, and for a parked one the category, what was not touched, and three
// commands with their effects. The error is the writer's.
func Rollout(w io.Writer, r api.Rollout, o Options) error {
	p := o.printer(w)
	v := view{r: r, o: o, p: p, state: strings.TrimPrefix(r.State, api.PrefixRolloutState)}
	v.header()
	v.ladder()
	v.anatomy()
	v.gate()
	v.limits()
	v.next()
	v.park()
	v.over()
	return p.err
}

type view struct {
	r     api.Rollout
	o     Options
	p     *printer
	state string
}

func (v view) header() {
	r := v.r
	glyph, tone := stateGlyph(v.state)
	v.p.line("%s  %s  %s", v.o.paint(bold, Inert(r.ID)), v.o.paint(tone, glyph+" "+Inert(v.state)), strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(Inert(r.Strategy), api.PrefixStrategy), "_", "-")))
	v.p.line("%s → %s", v.o.name(r.SourceDeploymentID), v.o.name(r.TargetDeploymentID))
	v.p.line("%s", v.whereText())
	v.wayBack()
}

// whereText is where a rollout is: step, share as set and as served, since when, and
// who asked for it.
func (v view) whereText() string {
	r := v.r
	var parts []string
	if r.CurrentStep != nil {
		parts = append(parts, fmt.Sprintf("step %d of %d", *r.CurrentStep+1, r.Status.TotalSteps))
	}
	share := fmt.Sprintf("%d%% on the target", percentOf(r))
	if p, ok := limitedTo(r); ok {
		share = fmt.Sprintf("%d%% of the step's %d%% on the target for now", percentOf(r), p)
	}
	if x := r.Sluice; x != nil && x.ActualShare != nil {
		share += fmt.Sprintf(" (served %s%%)", number(roundTo(*x.ActualShare*100, 1)))
	}
	parts = append(parts, share)
	if r.StartedAt != nil {
		parts = append(parts, v.since(r))
	}
	if x := r.Sluice; x != nil && x.Origin != "" {
		parts = append(parts, "from "+Inert(x.Origin))
	}
	return strings.Join(parts, " · ")
}

// limitedTo is the whole share of a step that the room for its target does not suffice
// for yet.
func limitedTo(r api.Rollout) (percent int, ok bool) {
	for _, c := range r.Status.Conditions {
		if c.Type == api.CapacityLimited && c.AtStep >= 0 && c.AtStep < len(r.Status.Steps) {
			return r.Status.Steps[c.AtStep].TargetTrafficPercent, true
		}
	}
	return 0, false
}

// limits says what limits a rollout without parking it.
func (v view) limits() {
	for _, text := range v.limitTexts() {
		v.p.line("")
		for _, line := range wrapped(text, v.p.room(96, 2)) {
			v.p.line("  %s", v.o.paint(yellow, line))
		}
	}
}

func (v view) limitTexts() []string {
	var out []string
	for _, c := range v.r.Status.Conditions {
		out = append(out, Inert(c.Type)+": "+Inert(c.Message))
	}
	return out
}

func (v view) since(r api.Rollout) string {
	switch {
	case r.CompletedAt != nil:
		return "took " + clock(r.CompletedAt.Sub(r.StartedAt.Time))
	case v.o.Now.IsZero():
		return "started " + r.StartedAt.UTC().Format(time.RFC3339)
	}
	return "running for " + clock(v.o.Now.Sub(r.StartedAt.Time))
}

func stateGlyph(state string) (string, tint) {
	switch state {
	case "COMPLETED":
		return "✓", green
	case "SYSTEM_PAUSED":
		return "‖", red
	case "PAUSED", "PAUSING":
		return "‖", yellow
	case "CANCELED", "CANCELLING":
		return "✗", yellow
	case "PENDING":
		return "○", dim
	}
	return "●", green
}

func stepGlyph(state string) (string, tint) {
	switch state {
	case "PASSED":
		return "✓", green
	case "RUNNING":
		return "●", bold
	case "PAUSED":
		return "‖", yellow
	case "CANCELED", "FAILED":
		return "✗", red
	case "SKIPPED":
		return "–", dim
	}
	return "○", dim
}

func (v view) ladder() {
	t := &table{}
	tones := make([]tint, 0, len(v.r.Status.Steps))
	for _, st := range v.r.Status.Steps {
		_, tone := stepGlyph(strings.TrimPrefix(st.State, api.PrefixStepState))
		tones = append(tones, tone)
		t.add(append(v.ladderRow(st), v.stepTime(st)+Inert(st.FailureReason))...)
	}
	v.p.line("")
	t.print(v.p, "  ", func(i int, s string) string { return v.o.paint(tones[i], s) })
}

// ladderRow is a step as it runs: number, traffic, counts and state.
func (v view) ladderRow(st api.RolloutStep) []string {
	state := strings.TrimPrefix(st.State, api.PrefixStepState)
	glyph, _ := stepGlyph(state)
	target, source := "", ""
	if x := v.r.Sluice; x != nil && st.StepIndex >= 0 && st.StepIndex < len(x.Ladder) {
		target = fmt.Sprintf("target %d", x.Ladder[st.StepIndex].TargetReplicas)
		source = fmt.Sprintf("source %d", x.Ladder[st.StepIndex].SourceReplicas)
	}
	return []string{fmt.Sprintf("%s %d", glyph, st.StepIndex+1), fmt.Sprintf("%3d%%", st.TargetTrafficPercent), target, source, Inert(state)}
}

func (v view) stepTime(st api.RolloutStep) string {
	switch {
	case st.StartedAt == nil:
		return ""
	case st.CompletedAt != nil:
		return clock(st.CompletedAt.Sub(st.StartedAt.Time))
	case !v.o.Now.IsZero():
		return clock(v.o.Now.Sub(st.StartedAt.Time))
	}
	return ""
}

func (v view) anatomy() {
	organs := v.organStates()
	if len(organs) == 0 {
		return
	}
	parts := make([]string, 0, len(organs))
	for _, organ := range organs {
		switch organ.glyph {
		case "●", "‖":
			parts = append(parts, v.o.paint(bold, organ.name+" "+v.progress(organ.phase)))
		case "–":
			parts = append(parts, v.o.paint(dim, organ.name+" –"))
		default:
			parts = append(parts, v.o.paint(green, organ.name+" ✓"))
		}
	}
	v.p.line("")
	v.p.line("  step %d  %s", *v.r.CurrentStep+1, strings.Join(parts, "  "))
}

// organStates are the parts of the current step: those that are done (✓), that run (●)
// or stand (‖), and that are still to come (–). Nil when the phase is not known.
func (v view) organStates() []organ {
	x := v.r.Sluice
	if x == nil || x.Phase == "" || v.r.CurrentStep == nil {
		return nil
	}
	phase := x.Phase
	if phase == "CONFIRMING" {
		phase = "GATING"
	}
	organs := v.organs()
	reached := false
	for i := range organs {
		organ := &organs[i]
		switch {
		case organ.phase == phase && (v.state == "PAUSED" || v.state == "SYSTEM_PAUSED"):
			reached, organ.glyph = true, "‖"
		case organ.phase == phase:
			reached, organ.glyph = true, "●"
		case reached:
			organ.glyph = "–"
		default:
			organ.glyph = "✓"
		}
	}
	return organs
}

// sinceText is the current phase in instants: since when, until when, and how long.
func (v view) sinceText(phase string) string {
	x := v.r.Sluice
	if x.PhaseSince == nil {
		return ""
	}
	text := "since " + x.PhaseSince.UTC().Format(time.TimeOnly)
	switch {
	case phase == "SOAKING" && x.Soak != nil:
		soak := time.Duration(*x.Soak)
		text += fmt.Sprintf(", until %s (%s)", x.PhaseSince.Add(soak).UTC().Format(time.TimeOnly), planning.Span(soak))
	case x.NextAt != nil:
		text += ", until " + x.NextAt.UTC().Format(time.TimeOnly)
	}
	return text + " UTC"
}

// progress is the clock of the current phase, where it has one.
func (v view) progress(phase string) string {
	x := v.r.Sluice
	if v.state == "PAUSED" || v.state == "SYSTEM_PAUSED" {
		return "‖"
	}
	if v.o.Now.IsZero() || x.PhaseSince == nil {
		return "…"
	}
	elapsed := clock(v.o.Now.Sub(x.PhaseSince.Time))
	switch {
	case phase == "SOAKING" && x.Soak != nil:
		return elapsed + "/" + clock(time.Duration(*x.Soak))
	case x.NextAt != nil:
		return elapsed + "/" + clock(x.NextAt.Sub(x.PhaseSince.Time))
	}
	return elapsed
}

// gate shows the rows of the current step, or those of the park.
func (v view) gate() {
	rows := currentRows(v.r)
	if len(rows) == 0 {
		return
	}
	t, tones := &table{}, make([]tint, 0, len(rows))
	for i, cells := range v.gateRows() {
		_, tone := verdictGlyph(rows[i].Verdict)
		tones = append(tones, tone)
		t.add(cells...)
	}
	v.p.line("")
	v.p.line("  gate")
	t.print(v.p, "    ", func(i int, s string) string { return v.o.paint(tones[i], s) })
}

// gateRows are the cells of the current gate: metric with its verdict, what was
// measured, how it is judged, samples, and a note.
func (v view) gateRows() [][]string {
	rows := currentRows(v.r)
	out := make([][]string, 0, len(rows))
	for _, row := range rows {
		glyph, _ := verdictGlyph(row.Verdict)
		out = append(out, []string{glyph + " " + metricName(row), measured(row), judged(row), samples(row), note(row)})
	}
	return out
}

func currentRows(r api.Rollout) []api.MetricRow {
	if c := r.Status.Condition; c != nil && len(c.Metrics) > 0 {
		return c.Metrics
	}
	if r.CurrentStep != nil && *r.CurrentStep >= 0 && *r.CurrentStep < len(r.Status.Steps) {
		return r.Status.Steps[*r.CurrentStep].Metrics
	}
	return nil
}

func verdictGlyph(verdict string) (string, tint) {
	switch strings.TrimPrefix(verdict, api.PrefixVerdict) {
	case "PASS":
		return "✓", green
	case "BREACHED":
		return "✗", red
	case "UNAVAILABLE":
		return "?", yellow
	}
	return "–", dim
}

func metricName(row api.MetricRow) string {
	name := Inert(row.Name)
	if row.Percentile != nil {
		return fmt.Sprintf("%s p%d", name, *row.Percentile)
	}
	return name
}

// measured is "1740 ms vs 734 ms": target, then source where one was read.
func measured(row api.MetricRow) string {
	if row.TargetValue == nil {
		return "no reading"
	}
	unit := ""
	if row.Name == "router_latency" {
		unit = " ms"
	}
	out := value(*row.TargetValue) + unit
	if row.SourceValue != nil {
		out += " vs " + value(*row.SourceValue) + unit
	}
	return out
}

// judged is "+137 % (budget 25 %)" or "(must be < 0.01)".
func judged(row api.MetricRow) string {
	if row.Threshold != nil {
		return fmt.Sprintf("(must be %s %s)", symbol(row.Operator), number(*row.Threshold))
	}
	budget := ""
	if row.MaxRegressionPercent != nil {
		budget = fmt.Sprintf("(budget %s %%)", number(*row.MaxRegressionPercent))
	}
	if x := row.Sluice; x != nil && x.RegressionPercent != nil {
		sign := "+"
		if *x.RegressionPercent < 0 {
			sign = ""
		}
		return fmt.Sprintf("%s%s %% worse %s", sign, number(roundTo(*x.RegressionPercent, 0)), budget)
	}
	return budget
}

func symbol(operator string) string {
	switch strings.TrimPrefix(operator, api.PrefixOperator) {
	case "LT":
		return "<"
	case "LTE":
		return "≤"
	case "GT":
		return ">"
	case "GTE":
		return "≥"
	}
	return Inert(operator)
}

// samples is "n=412 ≥ 20", of the side with fewer; a source without traffic does
// not count.
func samples(row api.MetricRow) string {
	x := row.Sluice
	if x == nil || row.Verdict == "" {
		return ""
	}
	n := x.TargetSamples
	if row.MaxRegressionPercent != nil && x.SourceSamples > 0 {
		n = min(n, x.SourceSamples)
	}
	sign := "≥"
	if n < x.SamplesNeeded {
		sign = "<"
	}
	return fmt.Sprintf("n=%d %s %d", n, sign, x.SamplesNeeded)
}

func note(row api.MetricRow) string {
	if row.Sluice == nil {
		return ""
	}
	return Inert(row.Sluice.Note)
}

func (v view) next() {
	x := v.r.Sluice
	if x == nil || x.NextEvent == "" {
		return
	}
	v.p.line("")
	v.p.line("  next: %s", v.nextText())
}

// nextText is what is due next, and when: in so long by a clock, else at an instant.
func (v view) nextText() string {
	x := v.r.Sluice
	text := Inert(x.NextEvent)
	switch {
	case x.NextAt == nil:
		return text
	case v.o.Now.IsZero():
		return text + " at " + x.NextAt.UTC().Format(time.RFC3339)
	}
	return text + " in " + clock(x.NextAt.Sub(v.o.Now))
}

func (v view) park() {
	park := ParkOf(v.r, v.o)
	if park.Category == "" {
		return
	}
	since := ""
	if v.r.PauseInfo != nil {
		since = " since " + v.r.PauseInfo.PausedAt.UTC().Format(time.RFC3339)
	}
	v.p.line("")
	if park.ByHand() {
		v.p.line("  %s%s", v.o.paint(yellow, "paused by hand"), since)
	} else {
		v.p.line("  %s%s", v.o.paint(red, "parked: "+park.Category), since)
	}
	if park.InGate { // it stands above
		park.Message = ""
	}
	for _, text := range []string{park.Message, park.Why, park.Retry} {
		for _, line := range wrapped(text, v.p.room(96, 4)) {
			v.p.line("    %s", line)
		}
	}
	v.p.line("  not touched: %s", park.Untouched)
	v.p.line("  ways on:")
	v.ways(park.Ways)
}

// over says what a person may want to do after a cancel.
func (v view) over() {
	ways := AfterCancel(v.r)
	if len(ways) == 0 {
		return
	}
	v.p.line("")
	v.p.line("  next, if nothing was changed since:")
	v.ways(ways)
}

func (v view) ways(ways []Way) {
	for _, way := range ways {
		v.p.command("    ", way.Command, func(s string) string { return v.o.paint(bold, s) })
		v.p.line("        %s", way.Effect)
	}
}

func roundTo(v float64, digits int) float64 {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	return float64(int64(v*scale+sign(v)*0.5)) / scale
}

func sign(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}
