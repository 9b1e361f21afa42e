package render

import (
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// LongestComment is what forges take: 65,536 characters. Bytes are counted, which are
// never fewer.
const LongestComment = 65536

// LeastComment is the least limit that is kept: a headline and what is left out fit.
const LeastComment = 4096

// depth is how much of a sheet a comment shows. Each further one leaves out one thing
// more, the least needed first; verdict, approval and parks are in all of them.
type depth int

const (
	whole depth = iota
	noHistory
	noDiff
	noEvents
	noQuiet  // stacks in which nothing changes
	noFields // of changes
	noNotes  // gates in full, and findings that are no warnings
	noLadder // one line a rollout
	brief    // one line a rollout that says what must be known, and nothing else
)

// leftOut names what each depth leaves out first.
var leftOut = map[depth]mark{
	noHistory: "earlier pushes", noDiff: "the raw diff", noEvents: "events", noQuiet: "stacks without changes",
	noFields: "the fields of changes", noNotes: "notes on gates", noLadder: "ladders", brief: "all but one line a rollout",
}

// Comment is a sheet as the one Markdown comment of its pull request, at most limit
// bytes long (LongestComment when limit is 0; no less than LeastComment). What does not fit is left out in the
// order of depth, and a note says what.
func Comment(s Sheet, limit int) string {
	if limit <= 0 {
		limit = LongestComment
	}
	limit = max(limit, LeastComment)
	for d := whole; d < brief; d++ {
		if text := commentAt(s, d, limit); len(text) <= limit {
			return text
		}
	}
	return briefly(s, limit)
}

// commentAt is a comment at one depth. One that is over the limit need not be whole.
func commentAt(s Sheet, d depth, limit int) string {
	c := comment{s: s, d: d, page: &page{}}
	c.b.WriteString(s.Marker.String() + "\n")
	c.para("### " + prose(s.Headline()))
	c.revision()
	switch s.Stage {
	case Superseded, Closed:
		c.over()
	default:
		c.blockers()
		for i := 0; i < len(s.Stacks) && c.size() <= limit; i++ {
			c.stack(s.Stacks[i])
		}
		c.approval()
		c.last()
	}
	c.omissions()
	return c.b.String()
}

// comment is one that is being written.
type comment struct {
	*page
	s       Sheet
	d       depth
	omitted []depth
}

// shows reports whether a thing is shown at this depth; one that is there and is not
// shown is told at the end.
func (c *comment) shows(from depth, there int) bool {
	if there == 0 || c.d < from {
		return there > 0
	}
	if !slices.Contains(c.omitted, from) {
		c.omitted = append(c.omitted, from)
	}
	return false
}

func (c *comment) omissions() {
	if len(c.omitted) == 0 {
		return
	}
	slices.Sort(c.omitted)
	names := make([]mark, 0, len(c.omitted))
	for _, d := range c.omitted {
		names = append(names, leftOut[d])
	}
	c.para(says("Left out, since a comment has a limit: %. The command `sluice reconcile status` shows it all.", join(names, ", ")))
}

// revision is one line: what was planned, on what, and when.
func (c *comment) revision() {
	r := c.s.Revision
	if r.Commit == "" {
		return
	}
	line := link(name(shortCommit(r.Commit)), r.URL)
	if r.Branch != "" {
		line = says("% of %", line, name(r.Branch))
	}
	if r.Base != "" {
		line = says("%, merged with %", line, name(r.Base))
	}
	if r.BaseCommit != "" {
		line = says("% at %", line, name(shortCommit(r.BaseCommit)))
	}
	if r.Repository != "" {
		line = says("% in %", line, name(r.Repository))
	}
	if !r.At.IsZero() {
		line = says("% · planned %", line, prose(instant(r.At)))
	}
	c.para(line)
}

// shortCommit is a commit for people.
func shortCommit(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// blockers are what stands in the way of a plan or of an apply, before all else.
func (c *comment) blockers() {
	c.notices("These files cannot be merged. Bring the branch up to date, and the plan follows.", c.s.Conflicts)
	if c.s.Unmerged != "" {
		c.para(says("There is no merge result to plan: %", prose(c.s.Unmerged)))
	}
	c.notices("Not read, and so not part of the plan:", c.s.Refused)
	var waits []mark
	for _, w := range c.s.Waiting {
		waits = append(waits, prose(w))
	}
	if len(waits) > 0 {
		c.para("Waits for:")
		c.items(waits)
	}
	for _, r := range c.s.Remarks {
		c.para(prose(r))
	}
}

// mostNotices is how many lines of one kind are shown.
const mostNotices = 50

func (c *comment) notices(lead mark, ns []Notice) {
	if len(ns) == 0 {
		return
	}
	c.para(lead)
	items := make([]mark, 0, len(ns))
	for _, n := range ns[:min(len(ns), mostNotices)] {
		items = append(items, says("%: %", name(n.Path), prose(n.Reason)))
	}
	if more := len(ns) - mostNotices; more > 0 {
		items = append(items, prose("and "+planning.Count(more, "more file")))
	}
	c.items(items)
}

// stack writes one folder of HCL.
func (c *comment) stack(st StackSheet) {
	if st.quiet() {
		if c.shows(noQuiet, 1) && len(c.s.Stacks) > 1 {
			c.para(says("**%**: nothing to change", name(st.Name)))
		}
		return
	}
	if len(c.s.Stacks) > 1 {
		c.para("#### " + name(st.Name))
	}
	if st.Problem != "" {
		c.para(says("No plan: %", prose(st.Problem)))
	}
	c.diagnostics(st)
	c.policy(st)
	rollouts := slices.Clone(st.Rollouts)
	slices.SortStableFunc(rollouts, func(a, b RolloutSheet) int { return rank(a) - rank(b) })
	for _, r := range rollouts {
		c.rollout(r)
	}
	c.changes(st)
	c.drift(st)
}

// quiet reports whether nothing of a stack needs to be read.
func (st StackSheet) quiet() bool {
	return st.Problem == "" && len(st.Diagnostics) == 0 && len(st.Rollouts) == 0 && len(st.Drift) == 0 &&
		len(st.Policy.Remarks) == 0 && !slices.ContainsFunc(st.Changes, Change.moves)
}

// mostDiagnostics is how many diagnostics of one stack are shown with their source.
const mostDiagnostics = 20

// diagnostics with a source line go into one block, as on a terminal.
func (c *comment) diagnostics(st StackSheet) {
	var blocks []string
	var items []mark
	for i, d := range st.Diagnostics {
		if i == mostDiagnostics {
			items = append(items, prose("and "+planning.Count(len(st.Diagnostics)-i, "more remark")+" on the HCL"))
			break
		}
		if d.Text != "" {
			blocks = append(blocks, clip(d.Text, 3*longestText))
			continue
		}
		items = append(items, says("% %: %", name(d.At), inline(d.Severity), inline(d.Summary)))
	}
	if len(blocks) > 0 {
		c.block("", strings.Join(blocks, "\n\n"))
	}
	c.items(items)
}

// policy writes what the rules say, denials first, and who lifted one.
func (c *comment) policy(st StackSheet) {
	if len(st.Policy.Remarks) == 0 {
		return
	}
	items := make([]mark, 0, len(st.Policy.Remarks))
	for _, r := range st.Policy.Remarks {
		lead := mark("warn")
		if r.Severity == policy.Deny {
			lead = "**deny**"
		}
		item := says("% %", lead, prose(remark(r)))
		if o, ok := st.lifted(r); ok {
			item = says("% — lifted by % at %: %", item, name(o.By), prose(instant(o.At)), code(o.Reason))
		}
		items = append(items, item)
	}
	c.para(says("**Policy:** %", prose(policyVerdict(st.remaining()))))
	c.items(items)
	for _, r := range st.remaining().Remarks {
		if r.Severity == policy.Deny && len(r.Override) > 0 && r.Rule != "" {
			c.para("To lift a denial, one of those named writes a comment:")
			c.block("", "/sluice override "+quoted(r.Rule)+" why this is right")
			return
		}
	}
}

// lifted finds who lifted a denial.
func (st StackSheet) lifted(r policy.Remark) (Override, bool) {
	i := slices.IndexFunc(st.Overrides, func(o Override) bool { return o.Rule == r.Rule })
	if r.Severity != policy.Deny || r.Rule == "" || i < 0 {
		return Override{}, false
	}
	return st.Overrides[i], true
}

// remaining is a verdict without the denials that were lifted.
func (st StackSheet) remaining() policy.Verdict {
	return policy.Verdict{Remarks: slices.DeleteFunc(slices.Clone(st.Policy.Remarks), func(r policy.Remark) bool {
		_, ok := st.lifted(r)
		return ok
	})}
}

// quoted writes a name as a comment command takes it.
func quoted(s string) string {
	s = clip(Inert(s), longestName)
	if strings.ContainsAny(s, " \"'") || s == "" {
		return `"` + strings.ReplaceAll(s, `"`, "") + `"`
	}
	return s
}

// glyphs of actions, as in the diffs of plans.
var glyphs = map[planning.Action]mark{
	planning.Create: "`+`", planning.Update: "`~`", planning.Replace: "`-/+`", planning.Delete: "`-`",
	planning.NoOp: "`=`", planning.Start: "`▶`", planning.Steer: "`▶`",
}

// manyFields is from how many fields on the changes are folded.
const manyFields = 12

// changes are shown in full for a plan, and folded once it is applied.
func (c *comment) changes(st StackSheet) {
	var items []mark
	fields := 0
	for _, ch := range st.Changes {
		if ch.moves() {
			items = append(items, c.change(ch))
			fields += len(ch.Fields)
		}
	}
	switch {
	case len(items) == 0:
	case fields > manyFields || c.s.Stage == Following:
		c.fold(mark("Changes ("+planning.Count(len(items), "thing")+")"), func() { c.items(items) })
	default:
		c.para("**Changes**")
		c.items(items)
	}
}

func (c *comment) change(ch Change) mark {
	item := says("% % %", glyphs[ch.Action], inline(string(ch.Action)), name(ch.Address))
	if ch.From != "" {
		item = says("%, moved from %", item, name(ch.From))
	}
	if ch.ID != "" {
		item = says("% (%)", item, name(ch.ID))
	}
	if ch.Held != "" {
		item = says("% — not now: %", item, inline(ch.Held))
	}
	for _, n := range ch.Notes {
		item = says("%; %", item, inline(n))
	}
	if !c.shows(noFields, len(ch.Fields)) {
		return item
	}
	for _, f := range ch.Fields {
		value := name(f.After)
		if f.Before != "" {
			value = says("% → %", name(f.Before), value)
		}
		item = says("%\n  - %: %", item, name(f.Path), value)
	}
	return item
}

// drift sets side by side what Git says and what others did.
func (c *comment) drift(st StackSheet) {
	if len(st.Drift) == 0 {
		return
	}
	rows := make([][]mark, 0, len(st.Drift))
	for _, d := range st.Drift {
		who := name(d.Actor)
		if d.Actor == "" {
			who = "not in the feed"
		}
		when := mark("–")
		if !d.At.IsZero() {
			when = moment(d.At)
		}
		rows = append(rows, []mark{join([]mark{name(d.Address), name(d.Field)}, " "), name(d.Applied), name(d.Yours), name(d.Theirs), who, when, name(d.Event), prose(d.Effect)})
	}
	c.para("**Theirs:** what stands differs from what was applied last, and not by Git.")
	c.table([]mark{"what", "applied", "yours (Git)", "theirs (live)", "who", "when, UTC", "event", "what becomes of it"}, rows)
}

// last are the folds at the end.
func (c *comment) last() {
	if c.shows(noHistory, len(c.s.History)) {
		c.fold(mark("Earlier pushes ("+planning.Count(len(c.s.History), "plan")+", UTC)"), func() { c.history() })
	}
	for _, st := range c.s.Stacks {
		if c.shows(noDiff, len(st.Diff)) {
			c.fold(says("HCL diff of %", inSummary(st.Name)), func() { c.block("diff", st.Diff) })
		}
	}
}

// mostHistory is how many earlier pushes are shown.
const mostHistory = 20

func (c *comment) history() {
	items := make([]mark, 0, len(c.s.History))
	for i, h := range c.s.History {
		if i == mostHistory {
			items = append(items, prose("and "+planning.Count(len(c.s.History)-i, "older one")))
			break
		}
		items = append(items, says("% % %", moment(h.At), name(shortCommit(h.Commit)), prose(h.Verdict)))
	}
	c.items(items)
}
