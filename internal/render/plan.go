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
	tot := j.Totals
	steps := "in batches of one replica"
	if tot.StepCount != nil {
		steps = planning.Count(*tot.StepCount, "step")
	}
	p.line("%s  %s, %s, at least %s", o.paint(bold, Inert(title)), strategyName(j), steps, planning.Span(tot.LeastDuration))
	p.line("plan %s", planning.ShortDigest(j.Digest))
	planLadder(p, j, o)
	planGates(p, j)
	planWayBack(p, j)
	planStops(p, j)
	planFindings(p, j, o)
	return p.err
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
	t.add("step", "traffic", "target", "source after", "wait", "gate", "at least")
	for _, st := range j.Steps {
		gate := "–"
		if st.Gated {
			gate = planning.Count(len(j.Gates), "rule")
		}
		wait := planning.Span(st.Wait)
		if st.AskedWait != st.Wait {
			wait = planning.Span(st.AskedWait) + " → " + wait
		}
		t.add(strconv.Itoa(st.Number), fmt.Sprintf("%d%% (+%d)", st.TrafficPercent, st.DeltaPercent), targetCount(st), count(st.SourceReplicas), wait, gate, planning.Span(st.Least))
	}
	p.line("")
	t.print(p, "  ", func(_ int, s string) string { return s })
	if len(j.Steps) > 0 && j.Steps[0].AskedWait != j.Steps[0].Wait && !found(j, planning.SoakGrown) {
		p.line("  wait: %s", j.Steps[0].WaitReason)
	}
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
		if g.BusiestStep == 0 {
			p.line("      no step is judged by it: at 100 %% the source has no traffic to compare with")
			continue
		}
		p.line("      %s a side in %s; that is %s a second on the pair at step %d", planning.Count(g.SamplesNeeded, "request"), planning.Span(g.Window), number(roundTo(g.RequestsPerSecond, 2)), g.BusiestStep)
	}
}

func planStops(p *printer, j planning.Journey) {
	tot := j.Totals
	p.line("")
	if tot.GateCount > 0 {
		p.line("  blast radius: %d%% before the first gate has judged; a tripped gate holds the split and waits for a person", tot.UngatedPercent)
	} else {
		p.line("  blast radius: %d%%, no metric gate; health gates hold the split and wait for a person", tot.UngatedPercent)
	}
	if tot.PeakReplicas != nil {
		p.line("  peak: %d replicas of both sides together", *tot.PeakReplicas)
	}
	p.line("  after: source %s, target %s", planning.Count(tot.FinalSourceReplicas, "replica"), finalTarget(tot))
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
		p.line("  %s  %s", o.paint(tone, string(f.Code)), Inert(f.Subject))
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
