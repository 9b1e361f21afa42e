package render

import (
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// briefly is a comment of one line a rollout, for sheets with more of them than a
// comment has room for: verdict, approvals, then the rollouts, those that need a person
// first. It is cut at whole lines, and says how many were.
func briefly(s Sheet, limit int) string {
	head := &page{}
	head.b.WriteString(s.Marker.String() + "\n")
	head.para("### " + prose(clip(s.Headline(), longestHeadline)))
	lines := s.briefLines()
	note := func(left int) string {
		p := &page{}
		text := says("Left out, since a comment has a limit: %.", leftOut[brief])
		if left > 0 {
			text = says("% % do not fit either.", text, prose(planning.Count(left, "more line")))
		}
		p.para(says("% The command `sluice reconcile status` shows it all.", text))
		return p.b.String()
	}
	room := limit - head.size() - len(note(len(lines))) - 1
	var body strings.Builder
	for i, l := range lines {
		item := "- " + string(l) + "\n"
		if body.Len()+len(item) > room {
			return head.b.String() + listed(body.String()) + note(len(lines)-i)
		}
		body.WriteString(item)
	}
	return head.b.String() + listed(body.String()) + note(0)
}

// longestHeadline is how much of a headline stays, so that it fits into any comment.
const longestHeadline = 300

func listed(items string) string {
	if items == "" {
		return ""
	}
	return "\n" + items
}

// briefLines are what stands in the way, the parks, the approvals, and the rest.
func (s Sheet) briefLines() []mark {
	var lines []mark
	if s.Unmerged != "" {
		lines = append(lines, prose(s.Unmerged))
	}
	for _, n := range append(slices.Clone(s.Conflicts), s.Refused...) {
		lines = append(lines, says("%: %", name(n.Path), prose(n.Reason)))
	}
	for _, st := range s.Stacks {
		lines = append(lines, st.briefLines()...)
	}
	var rollouts []RolloutSheet
	for _, st := range s.Stacks {
		rollouts = append(rollouts, st.Rollouts...)
	}
	slices.SortStableFunc(rollouts, func(a, b RolloutSheet) int { return rank(a) - rank(b) })
	var rest []mark
	for _, r := range rollouts {
		if r.Run != nil && ParkOf(r.Run.Rollout, Options{}).Category != "" {
			lines = append(lines, briefPark(r))
		} else {
			rest = append(rest, briefRollout(r))
		}
	}
	if s.Approval.Mode == ByDigest && !s.blocked() {
		for _, p := range s.Approval.Plans {
			lines = append(lines, briefApproval(p))
		}
	}
	for _, w := range s.Waiting {
		rest = append(rest, says("waits for %", prose(w)))
	}
	return append(lines, rest...)
}

// briefLines of a stack are what is wrong with it.
func (st StackSheet) briefLines() []mark {
	var lines []mark
	if st.Problem != "" {
		lines = append(lines, says("%: no plan: %", name(st.Name), prose(st.Problem)))
	}
	for _, d := range st.Diagnostics {
		if d.Severity == "error" {
			lines = append(lines, says("%: %", name(d.At), prose(d.Summary)))
		}
	}
	for _, r := range st.remaining().Remarks {
		if r.Severity == "deny" {
			lines = append(lines, says("%: **deny** %", name(st.Name), prose(remark(r))))
		}
	}
	return lines
}

func briefPark(r RolloutSheet) mark {
	park := ParkOf(r.Run.Rollout, r.options())
	ways := make([]mark, 0, 4)
	for _, w := range append(park.Ways, wayBack(r)...) {
		ways = append(ways, code(w.Command))
	}
	return says("%; not touched: %; write %", prose(runHeadline(r)), prose(park.Untouched), join(ways, ", "))
}

func briefRollout(r RolloutSheet) mark {
	if r.Run != nil {
		return prose(runHeadline(r))
	}
	return says("%: %", name(r.Endpoint), prose(r.Journey.Summary()))
}

func briefApproval(p PlanApproval) mark {
	if len(p.Granted) > 0 {
		return says("%: approved by %", name(p.Stack), name(p.Granted[0].By))
	}
	return says("%: %", name(p.Stack), code("/sluice approve "+planning.ShortDigest(p.Digest)))
}
