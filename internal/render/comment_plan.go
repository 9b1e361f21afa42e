package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// instant is a time in a sentence, as at every door.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// moment is one in a table or a list that says its time zone and whose year is known.
func moment(t time.Time) mark { return mark(t.UTC().Format("01-02 15:04:05")) }

// rollout writes one rollout: as it will be, or as it runs.
func (c *comment) rollout(r RolloutSheet) {
	if r.Run != nil {
		c.run(r)
		return
	}
	title := name(r.Endpoint)
	if r.Address != "" {
		title = says("% by %", title, name(r.Address))
	}
	c.para(says("**%**: %", title, prose(r.Journey.Summary())))
	c.live(r)
	if c.shows(noLadder, len(r.Journey.Steps)) {
		c.ladder(r)
	}
	c.stops(r.Journey)
	c.cautions(r)
	if c.shows(noNotes, len(r.Journey.Gates)+len(r.Journey.Findings)) {
		c.fold(says("Gates, notes and ways to park of %", inSummary(r.Endpoint)), func() { c.notes(r) })
	}
}

// stops say on what it parks, what is at stake then, and the counts at the peak and after.
func (c *comment) stops(j planning.Journey) {
	texts := stopTexts(j)
	var codes []mark
	for _, p := range parksOf(j) {
		codes = append(codes, name(p.Path))
	}
	c.para(says("**What can stop it:** %. %.", join(codes, ", "), capital(texts[0])))
	var counts []mark
	for _, t := range texts[1:] {
		counts = append(counts, capital(t))
	}
	c.para(says("%.", join(counts, ". ")))
}

// capital begins a sentence with one of our own texts.
func capital(s string) mark { return prose(strings.ToUpper(s[:1]) + s[1:]) }

// live is whether there is room, where the headline does not say it, what the overlap
// takes, and what the engine remarks.
func (c *comment) live(r RolloutSheet) {
	var parts []string
	if fit := fitText(r.Live); fit != "" && (len(c.s.endpoints()) > 1 || c.s.denials() > 0) {
		parts = append(parts, fit)
	}
	if o := planning.OverlapOf(r.Live.Loads); o.GPUHours > 0 {
		text := fmt.Sprintf("both sides together take %s GPU-hours more at most", number(roundTo(o.GPUHours, 1)))
		if r.Live.Cost != nil {
			text += fmt.Sprintf(", %.2f USD", *r.Live.Cost/100)
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		c.para(says("%.", capital(strings.Join(parts, "; "))))
	}
	for _, w := range r.Live.Warnings {
		c.para(says("⚠ % %", name(w.Code), inline(w.Message)))
	}
}

// fitText says whether a rollout has room, in a few words; empty when it is not known.
func fitText(l Live) string {
	text := ""
	if o := planning.OverlapOf(l.Loads); o.PeakGPUs > 0 {
		text = fmt.Sprintf("needs %s at peak", planning.Count(o.PeakGPUs, "GPU"))
		if o.ExtraGPUs > 0 {
			text += fmt.Sprintf(", %d more than now", o.ExtraGPUs)
		}
	}
	if l.FreeGPUs != nil {
		text += fmt.Sprintf(", %d free", *l.FreeGPUs)
	}
	text = strings.TrimPrefix(text, ", ")
	switch l.Fit {
	case Fits:
		return strings.TrimSuffix("feasible: "+text, ": ")
	case Short:
		return "not feasible now: " + Inert(l.Shortfall)
	case FitUnknown:
	}
	return text
}

func (c *comment) ladder(r RolloutSheet) {
	rows := ladderRows(r.Journey, r.Live.Loads)
	cells := make([][]mark, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, inlines(row))
	}
	c.table(cells[0], cells[1:])
	c.para(prose(waitText(r.Journey)))
}

// inlines are the cells of a table.
func inlines(texts []string) []mark {
	out := make([]mark, 0, len(texts))
	for _, t := range texts {
		out = append(out, inline(t))
	}
	return out
}

// cautions are the findings that a reader must see; the others are folded.
func (c *comment) cautions(r RolloutSheet) {
	c.items(findingMarks(r.Journey, planning.Caution))
}

func findingMarks(j planning.Journey, of planning.Severity) []mark {
	var items []mark
	for _, f := range j.Findings {
		if f.Severity != of {
			continue
		}
		lead := name(string(f.Code))
		if of == planning.Caution {
			lead = "⚠ " + lead
		}
		items = append(items, says("%: % → %", lead, prose(f.Message), prose(f.Remedy)))
	}
	return items
}

// notes are a rollout's gates in full, what it parks on, and the lesser findings.
func (c *comment) notes(r RolloutSheet) {
	if len(r.Journey.Gates) > 0 {
		c.para("Gates, all must pass:")
		items := make([]mark, 0, len(r.Journey.Gates))
		for _, g := range r.Journey.Gates {
			items = append(items, says("%: %", prose(g.Text), prose(gateNeed(g))))
		}
		c.items(items)
	}
	var back []mark
	for _, line := range wayBackTexts(r.Journey) {
		back = append(back, prose(strings.TrimSpace(line)))
	}
	c.items(back)
	c.para("It parks on:")
	var parks []mark
	for _, p := range parksOf(r.Journey) {
		parks = append(parks, says("%: %", name(p.Path), prose(p.Reason)))
	}
	c.items(parks)
	if notes := findingMarks(r.Journey, planning.Info); len(notes) > 0 {
		c.para("Notes:")
		c.items(notes)
	}
}

// parksOf are the categories on which a journey can park, and when.
func parksOf(j planning.Journey) []Notice {
	var out []Notice
	if j.Totals.GateCount > 0 {
		out = append(out, Notice{"METRIC_REGRESSION", "a gate is breached, twice looked at"}, Notice{"METRICS_UNAVAILABLE", "a gate's window has too few requests, or a gap"})
	}
	return append(out,
		Notice{"CAPACITY_EXHAUSTED", "replicas that a step needs find no room; nothing has moved then"},
		Notice{"TARGET_NOT_READY", "they do not become ready in time"},
		Notice{"HEALTH_REGRESSION", "ready replicas of the target fail"},
		Notice{"UNDER_SERVED", "a side loses replicas that its share needs"},
		Notice{"POLICY_INFEASIBLE", "somebody edits limits so that a step cannot be"})
}

// approval says what lets the plan be applied, and what voids that.
func (c *comment) approval() {
	a := c.s.Approval
	if a.Mode == "" || c.s.blocked() || !c.s.changes() || c.s.Stage == Following && !c.s.unproved() {
		return
	}
	switch {
	case c.s.denials() > 0 && c.s.liftable():
		c.para("**To apply:** mend what is denied, or have it lifted; then what follows.")
	case c.s.denials() > 0:
		c.para("**To apply:** mend what is denied; then what follows.")
	}
	if a.Mode == ByMerge {
		c.para("**To apply:** merge. The merged commit is planned and judged again; this comment says so when that is another plan than this one.")
	} else {
		c.para("**To apply:** somebody allowed approves the digest, and the pull request is merged.")
	}
	for _, p := range a.Plans {
		c.planApproval(p)
	}
	if a.Mode == ByDigest && a.May != "" {
		c.para(says("May approve: %.", prose(a.May)))
	}
	c.para(says("Void as soon as one of these changes: %.", prose(voids)))
}

// voids is what a plan's digest is made of.
const voids = "the spec, the live split, the limits of replicas, the limits of the engine"

func (c *comment) planApproval(p PlanApproval) {
	led := func(text mark) mark { return text }
	if len(c.s.Approval.Plans) > 1 {
		led = func(text mark) mark { return says("%: %", name(p.Stack), text) }
	}
	if p.Void != "" {
		c.para(led(says("An earlier approval is void: %", inline(p.Void))))
	}
	for _, g := range p.Granted {
		c.para(led(says("Approved by % (%) at %", name(g.By), inline(g.How), inline(instant(g.At)))))
	}
	switch {
	case c.s.Approval.Mode == ByMerge:
		c.para(led(says("Plan digest %", name(p.Digest))))
	case len(p.Granted) == 0:
		c.para(led("Not approved yet. To approve, write this as a comment:"))
		c.block("", "/sluice approve "+planning.ShortDigest(p.Digest))
		if c.s.Approval.File != "" {
			c.para(says("Or put this line into % in its folder: %", name(c.s.Approval.File), code(p.Digest)))
		}
	}
}
