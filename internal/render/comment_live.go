package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// CommentCommand spells a control as a comment takes it, for one endpoint.
func CommentCommand(v Verb, endpoint string) string {
	text := "/sluice " + string(v) + " " + quoted(endpoint)
	if v == Cancel || v == Reverse {
		text += " because …"
	}
	return text
}

// options are those of a rollout in a comment: no clock, and controls as comments.
func (r RolloutSheet) options() Options {
	return Options{Names: r.Run.Names, Command: func(v Verb, _, _ string) string { return CommentCommand(v, r.Endpoint) }}
}

// run writes a rollout that the engine has: park first, then where it is, then how it
// came there.
func (c *comment) run(r RolloutSheet) {
	ro, o := r.Run.Rollout, r.options()
	v := view{r: ro, o: o, state: r.state()}
	title := says("**%** %: % → %", name(r.Endpoint), link(name(ro.ID), r.Run.URL), prose(o.name(ro.SourceDeploymentID)), prose(o.name(ro.TargetDeploymentID)))
	if r.Reverses != "" {
		title = says("% (takes back %)", title, name(r.Reverses))
	}
	c.para(title)
	if r.condition() == "completed" || r.condition() == "canceled" {
		c.receipt(r)
	}
	c.park(r, v)
	if park := ParkOf(ro, o); park.Category == "" && ro.CompletedAt == nil {
		c.para(capital(v.whereText()))
	}
	if c.shows(noLadder, len(ro.Status.Steps)) {
		c.runLadder(v)
	}
	c.anatomy(v)
	if !ParkOf(ro, o).InGate {
		c.gate(v)
	}
	for _, l := range v.limitTexts() {
		c.para(says("⚠ %", prose(l)))
	}
	for _, l := range v.wayBackTexts() {
		c.para(prose(l))
	}
	if x := ro.Sluice; x != nil && x.NextEvent != "" && ro.CompletedAt == nil {
		c.para(says("Next: %", prose(v.nextText())))
	}
	if c.shows(noEvents, len(r.Run.Events)) {
		c.fold(says("Events of % (UTC)", inSummary(r.Endpoint)), func() { c.events(r) })
	}
}

// park says why a rollout stands, what was not touched, and the ways on.
func (c *comment) park(r RolloutSheet, v view) {
	park := ParkOf(r.Run.Rollout, r.options())
	if park.Category == "" {
		return
	}
	lead := says("**Parked: %**", name(park.Category))
	if park.ByHand() {
		lead = "**Paused by hand**"
	}
	if p := r.Run.Rollout.PauseInfo; p != nil {
		lead = says("% since %", lead, prose(instant(p.PausedAt.Time)))
	}
	c.para(lead)
	if park.InGate { // its rows say the message
		c.gate(v)
		park.Message = ""
	}
	for _, text := range []string{park.Message, park.Why, park.Retry} {
		c.para(prose(text))
	}
	c.para(says("**Not touched:** %.", prose(park.Untouched)))
	c.ways(append(park.Ways, wayBack(r)...))
}

// wayBack is the fourth way on, where there is traffic to take back.
func wayBack(r RolloutSheet) []Way {
	percent := percentOf(r.Run.Rollout)
	if percent == 0 {
		return nil
	}
	return []Way{{CommentCommand(Reverse, r.Endpoint), "cancels, then " + backEffect(percent)}}
}

// ways are comments that a person can write, each with its effect.
func (c *comment) ways(ways []Way) {
	if len(ways) == 0 {
		return
	}
	rows := make([][]mark, 0, len(ways))
	for _, w := range ways {
		rows = append(rows, []mark{code(w.Command), prose(w.Effect)})
	}
	c.table([]mark{"write as a comment", "effect"}, rows)
}

func (c *comment) runLadder(v view) {
	var rows [][]mark
	for _, st := range v.r.Status.Steps {
		row := v.ladderRow(st)
		times := mark("–")
		if st.StartedAt != nil {
			times = moment(st.StartedAt.Time)
			if st.CompletedAt != nil {
				times = says("% (%)", times, prose(planning.Span(st.CompletedAt.Sub(st.StartedAt.Time).Round(time.Second))))
			}
		}
		rows = append(rows, append(inlines(row[:4]), prose(strings.ToLower(row[4])), times, prose(Inert(st.FailureReason))))
	}
	head := []mark{"step", "traffic", "target", "source", "state", "began, UTC (took)", ""}
	if !slices.ContainsFunc(v.r.Status.Steps, func(st api.RolloutStep) bool { return st.FailureReason != "" }) {
		head = head[:6]
		for i := range rows {
			rows[i] = rows[i][:6]
		}
	}
	c.table(head, rows)
}

// anatomy is the current step, organ by organ, with instants in place of clocks.
func (c *comment) anatomy(v view) {
	parts := v.organStates()
	if len(parts) == 0 || v.r.CompletedAt != nil {
		return
	}
	texts := make([]mark, 0, len(parts))
	for i, p := range parts {
		text := prose(p.name + " " + p.glyph)
		if p.glyph == "●" || p.glyph == "‖" {
			text = says("**%**", text)
		}
		if last := i == len(parts)-1 || parts[i+1].phase != p.phase; last && p.glyph == "●" {
			text = says("% %", text, inline(v.sinceText(p.phase)))
		}
		texts = append(texts, text)
	}
	c.para(says("Step %: %", prose(fmt.Sprint(*v.r.CurrentStep+1)), join(texts, " · ")))
}

func (c *comment) gate(v view) {
	rows := v.gateRows()
	cells := make([][]mark, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, inlines(row))
	}
	c.table([]mark{"gate", "target vs source", "judged", "samples", ""}, cells)
}

// mostEvents is how many events of one rollout are shown, the newest of them.
const mostEvents = 30

func (c *comment) events(r RolloutSheet) {
	rows := oldestFirst(r.Run.Events)
	more := max(0, len(rows)-mostEvents)
	items := make([]mark, 0, mostEvents+1)
	if more > 0 {
		items = append(items, prose(planning.Count(more, "earlier event")+" not shown"))
	}
	for _, e := range rows[more:] {
		cells := eventCells(e)
		items = append(items, join([]mark{moment(e.CreatedAt.Time), name(cells[1]), inline(cells[2]), inline(cells[3])}, " "))
	}
	c.items(items)
}

// receipt is what stays of a rollout that is over.
func (c *comment) receipt(r RolloutSheet) {
	ro := r.Run.Rollout
	percent := percentOf(ro)
	items := []mark{prose(fmt.Sprintf("outcome: %s at %d/%d (source/target)%s", r.condition(), 100-percent, percent, took(ro)))}
	if text := answered(*r.Run); text != "" {
		items = append(items, prose(strings.TrimPrefix(text, ", ")))
	}
	for _, g := range r.Run.Approved {
		items = append(items, says("approved by % (%) at %", name(g.By), prose(g.How), prose(instant(g.At))))
	}
	for _, s := range r.Run.Steered {
		item := says("% by % at %", name(s.Verb), name(s.By), prose(instant(s.At)))
		if s.Reason != "" {
			item = says("%: %", item, code(s.Reason))
		}
		items = append(items, item)
	}
	c.para("**Receipt**")
	c.items(items)
	if r.condition() == "canceled" && percent > 0 && !c.takenBack(ro.ID) {
		c.ways([]Way{{CommentCommand(Reverse, r.Endpoint), backEffect(percent)}})
	}
}

// takenBack reports whether a rollout goes back on another one.
func (c *comment) takenBack(id string) bool {
	return slices.ContainsFunc(c.s.runs(), func(r RolloutSheet) bool { return r.Reverses == id })
}

// over is the short form of a pull request that is not followed any more.
func (c *comment) over() {
	o := c.s.Over
	at := mark("")
	if !o.At.IsZero() {
		at = says(" at %", inline(instant(o.At)))
	}
	switch {
	case c.s.Stage == Superseded && o.By != "":
		c.para(says("% took over%. What this one started is shown there.", link(name(shortCommit(o.By)), o.URL), at))
	case c.s.Stage == Closed && o.By != "":
		c.para(says("Closed by %%.", name(o.By), at))
	}
	c.para(prose(o.Note))
}
