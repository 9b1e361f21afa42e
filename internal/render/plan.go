package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// Plan writes a journey: its one-line verdict, the ladder with counts and waits,
// the gates with what they need, what can stop it, and the findings.
func Plan(w io.Writer, title string, j planning.Journey, o Options) error {
	p := o.printer(w)
	p.line("%s  %s", o.paint(bold, Inert(title)), outline(j))
	if j.Digest != "" { // an id is not known yet
		p.line("plan %s", planning.ShortDigest(j.Digest))
	}
	planLadder(p, j, o)
	planGates(p, j)
	planWayBack(p, j)
	planStops(p, j)
	planFindings(p, j, o)
	return p.err
}

// outline is a journey in a few words.
func outline(j planning.Journey) string {
	steps := "in batches of one replica"
	if n := j.Totals.StepCount; n != nil {
		steps = planning.Count(*n, "step")
	}
	return fmt.Sprintf("%s, %s, at least %s", strategyName(j), steps, planning.Span(j.Totals.LeastDuration))
}

func strategyName(j planning.Journey) string {
	switch j.Strategy {
	case "CANARY":
		return "canary"
	case "BLUE_GREEN":
		return "blue-green"
	case "ROLLING":
		return "rolling"
	}
	return Inert(string(j.Strategy))
}

func planLadder(p *printer, j planning.Journey, _ Options) {
	t := &table{}
	for _, row := range ladderRows(j, nil) {
		t.add(row...)
	}
	p.line("")
	t.print(p, "  ", func(_ int, s string) string { return s })
	if why := waitText(j); why != "" {
		p.line("  %s", why)
	}
}

// ladderRows is a ladder as a table, its head first. With loads, peak GPUs and the
// longest time of each step stand beside the rest.
func ladderRows(j planning.Journey, loads []planning.Load) [][]string {
	rows := [][]string{{"step", "traffic", "target", "source after", "wait", "gate", "at least"}}
	live := len(loads) == len(j.Steps) && len(loads) > 0
	if live {
		rows[0] = append(rows[0], "peak GPUs", "at most")
	}
	for i, st := range j.Steps {
		gate := "–"
		if st.Gated {
			gate = planning.Count(len(j.Gates), "rule")
		}
		wait := planning.Span(st.Wait)
		if st.AskedWait != st.Wait {
			wait = planning.Span(st.AskedWait) + " → " + wait
		}
		row := []string{strconv.Itoa(st.Number), fmt.Sprintf("%d%% (+%d)", st.TrafficPercent, st.DeltaPercent), targetCount(st), count(st.SourceReplicas), wait, gate, planning.Span(st.Least)}
		if live {
			row = append(row, strconv.Itoa(loads[i].GPUs), planning.Span(loads[i].Time))
		}
		rows = append(rows, row)
	}
	return rows
}

// waitText says why a wait is not the one that was asked, where no finding does.
func waitText(j planning.Journey) string {
	if len(j.Steps) == 0 || j.Steps[0].AskedWait == j.Steps[0].Wait || found(j, planning.SoakGrown) {
		return ""
	}
	return "wait: " + j.Steps[0].WaitReason
}

// found reports whether a journey has a finding of a code.
func found(j planning.Journey, code planning.Code) bool {
	return slices.ContainsFunc(j.Findings, func(f planning.Finding) bool { return f.Code == code })
}

// targetCount shows the rounding: "2.4 → 3".
func targetCount(st planning.Step) string {
	if st.TargetReplicas == nil {
		return "follows the source"
	}
	n := strconv.Itoa(*st.TargetReplicas)
	if st.TargetExact != nil && *st.TargetExact != float64(*st.TargetReplicas) {
		return number(roundTo(*st.TargetExact, 2)) + " → " + n
	}
	return n
}

func count(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

func planGates(p *printer, j planning.Journey) {
	if len(j.Gates) == 0 {
		return
	}
	p.line("")
	p.line("  gates, all must pass:")
	for _, g := range j.Gates {
		p.line("    %s", Inert(g.Text))
		p.line("      %s", gateNeed(g))
	}
}

// gateNeed is the traffic without which a rule has no verdict.
func gateNeed(g planning.Gate) string {
	if g.BusiestStep == 0 {
		return "no step is judged by it: at 100 % the source has no traffic to compare with"
	}
	return fmt.Sprintf("%s a side in %s; that is %s a second on the pair at step %d", planning.Count(g.SamplesNeeded, "request"), planning.Span(g.Window), number(roundTo(g.RequestsPerSecond, 2)), g.BusiestStep)
}

func planStops(p *printer, j planning.Journey) {
	p.line("")
	for _, line := range stopTexts(j) {
		p.line("  %s", line)
	}
}

// stopTexts say how much is at stake before a gate has judged, what is needed at most
// and what stands at the end.
func stopTexts(j planning.Journey) []string {
	tot := j.Totals
	lines := []string{fmt.Sprintf("blast radius: %d%%, no metric gate; health gates hold the split and wait for a person", tot.UngatedPercent)}
	if tot.GateCount > 0 {
		lines[0] = fmt.Sprintf("blast radius: %d%% before the first gate has judged; a tripped gate holds the split and waits for a person", tot.UngatedPercent)
	}
	if tot.PeakReplicas != nil {
		lines = append(lines, fmt.Sprintf("peak: %d replicas of both sides together", *tot.PeakReplicas))
	}
	return append(lines, fmt.Sprintf("after: source %s, target %s", planning.Count(tot.FinalSourceReplicas, "replica"), finalTarget(tot)))
}

func finalTarget(t planning.Totals) string {
	if t.FinalTargetReplicas == nil {
		return "the source's count"
	}
	return strconv.Itoa(*t.FinalTargetReplicas)
}

func planFindings(p *printer, j planning.Journey, o Options) {
	if len(j.Findings) == 0 {
		return
	}
	p.line("")
	for _, f := range j.Findings {
		tone := dim
		if f.Severity == planning.Caution {
			tone = yellow
		}
		p.line("  %s  %s", o.paint(tone, Inert(string(f.Code))), Inert(f.Subject))
		for _, line := range wrapped(Inert(f.Message), p.room(92, 4)) {
			p.line("    %s", line)
		}
		for _, line := range wrapped("→ "+Inert(f.Remedy), p.room(92, 4)) {
			p.line("    %s", line)
		}
	}
}

// Waited tells how long something took, for progress lines.
func Waited(d time.Duration) string { return clock(d) }
