package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// organ is one part of a step with the phase that it belongs to, and how far it is.
type organ struct{ name, phase, glyph string }

// organs are the parts of the current step, in order. A source that is held whole is
// drained after the last gate only.
func (v view) organs() []organ {
	before := []organ{{name: "check", phase: "CHECKING"}, {name: "scale", phase: "SCALING"}, {name: "health", phase: "SCALING"}, {name: "shift", phase: "SHIFTING"}, {name: "propagate", phase: "PROPAGATING"}}
	drain, judge := organ{name: "drain", phase: "DRAINING"}, []organ{{name: "soak", phase: "SOAKING"}, {name: "gate", phase: "GATING"}}
	switch {
	case !holds(v.r):
		return append(append(before, drain), judge...)
	case v.r.CurrentStep != nil && *v.r.CurrentStep == v.r.Status.TotalSteps-1:
		return append(append(before, judge...), drain)
	}
	return append(before, judge...)
}

// holds reports whether a rollout was asked to keep its source whole.
func holds(r api.Rollout) bool {
	if r.Sluice == nil || r.Sluice.Spec == nil || r.Sluice.Spec.Sluice == nil {
		return false
	}
	x := r.Sluice.Spec.Sluice
	return x.HoldSource || x.CircuitBreaker != nil
}

// wayBack shows a split that somebody set by hand, and whether the way back is open.
func (v view) wayBack() {
	drifted := v.r.Sluice != nil && v.r.Sluice.Drift != nil
	for i, text := range v.wayBackTexts() {
		if drifted && i == 0 {
			text = v.o.paint(red, text)
		}
		v.p.line("  %s", text)
	}
}

// wayBackTexts begin with the drift, where there is one.
func (v view) wayBackTexts() []string {
	x := v.r.Sluice
	if x == nil {
		return nil
	}
	var out []string
	if d := x.Drift; d != nil {
		out = append(out,
			fmt.Sprintf("drift: %s set %d%% by hand at %s, the rollout had set %d%%: %s", Inert(d.By), d.ActualPercent, d.At.UTC().Format(time.RFC3339), d.SetPercent, Inert(d.Reason)),
			"nothing of the engine moves the split until it is resumed or canceled")
	}
	if b := breakerOf(v.r); b != nil && x.HeldSource && x.Drift == nil {
		state := "armed"
		if x.Trip != nil {
			state = fmt.Sprintf("tripped, %d%% → %d%%", x.Trip.FromPercent, x.Trip.ToPercent)
		}
		return append(out, fmt.Sprintf("circuit breaker: %s, signed by %s; the source is held at its full size", state, Inert(b.SignedBy)))
	}
	if x.HeldSource {
		out = append(out, "the source is held at its full size until the last gate has passed")
	}
	return out
}

// BrokenGlass says what an edit of a locked split did to the rollout that holds it: that
// it is parked, the split now, and the ways on.
func BrokenGlass(w io.Writer, r api.Rollout, o Options) error {
	v := view{p: o.printer(w), o: o, r: r}
	v.p.line("")
	x := r.Sluice
	if x == nil || x.Drift == nil {
		state, effect := Inert(strings.TrimPrefix(r.State, api.PrefixRolloutState)), "goes on: the split was so already, and nothing was changed"
		if state == "PENDING" {
			effect = "holds no split yet: when it starts it goes from what is served then"
		}
		v.p.line("rollout %s is %s and %s", Inert(r.ID), state, effect)
		return v.p.err
	}
	d := x.Drift
	v.p.line("%s: nothing of the engine moves the split until it is resumed or canceled", o.paint(yellow, "rollout "+Inert(r.ID)+" is parked"))
	v.p.line("split now: %s %d%%, %s %d%% (the rollout had set %d%% on the target)", o.name(r.SourceDeploymentID), 100-d.ActualPercent, o.name(r.TargetDeploymentID), d.ActualPercent, d.SetPercent)
	v.p.line("ways on:")
	v.ways([]Way{
		{o.command(Resume, r.EndpointID, r.ID), fmt.Sprintf("puts the rollout's split back and does its step again from %d%%", d.SetPercent)},
		{o.command(Cancel, r.EndpointID, r.ID), fmt.Sprintf("ends the rollout and keeps %d/%d (source/target)", 100-d.ActualPercent, d.ActualPercent)},
	})
	return v.p.err
}

func breakerOf(r api.Rollout) *api.CircuitBreaker {
	if r.Sluice == nil || r.Sluice.Spec == nil || r.Sluice.Spec.Sluice == nil {
		return nil
	}
	return r.Sluice.Spec.Sluice.CircuitBreaker
}

// planWayBack shows the circuit breaker of a plan, and a source that is held.
func planWayBack(p *printer, j planning.Journey) {
	lines := wayBackTexts(j)
	if len(lines) > 0 {
		p.line("")
	}
	for _, line := range lines {
		p.line("  %s", line)
	}
}

// wayBackTexts say what keeps a way back open, what belongs below a line further in.
func wayBackTexts(j planning.Journey) []string {
	const held = "the source keeps its full size until the last gate has passed"
	switch {
	case !j.Totals.HoldsSource:
		return nil
	case len(j.Breaker) == 0:
		return []string{held}
	}
	lines := []string{fmt.Sprintf("circuit breaker, signed by %s: any one sets the target back and parks", Inert(j.Totals.BreakerSignedBy))}
	for _, r := range j.Breaker {
		lines = append(lines, "  "+Inert(r.Text),
			fmt.Sprintf("    looked at every %s, on %s or more in %s; two looks must agree", planning.Span(r.Every), planning.Count(r.SamplesNeeded, "request"), planning.Span(r.Window)))
	}
	return append(lines, "  "+held)
}
