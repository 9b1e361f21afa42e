package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Events writes a feed, oldest first whatever the order given: time, type, numbers
// and message.
func Events(w io.Writer, events []api.Event, o Options) error {
	p := o.printer(w)
	rows := oldestFirst(events)
	t, tones := &table{}, make([]tint, 0, len(rows))
	for _, e := range rows {
		tone := tint("0")
		switch strings.TrimPrefix(e.Level, api.PrefixLevel) {
		case "WARN":
			tone = yellow
		case "ERROR":
			tone = red
		case "DEBUG":
			tone = dim
		}
		tones = append(tones, tone)
		t.add(eventCells(e)...)
	}
	t.print(p, "", func(i int, s string) string {
		if tones[i] == "0" {
			return s
		}
		return o.paint(tones[i], s)
	})
	return p.err
}

// eventCells are a row of the feed: time, type, numbers and message.
func eventCells(e api.Event) []string {
	return []string{e.CreatedAt.UTC().Format(time.TimeOnly), Inert(e.Type), numbers(e), text(e)}
}

// oldestFirst sorts a feed; what happened at one instant keeps its true order.
func oldestFirst(events []api.Event) []api.Event {
	rows := slices.Clone(events)
	if len(rows) > 1 && newestFirst(events) {
		slices.Reverse(rows)
		return rows
	}
	slices.SortStableFunc(rows, func(a, b api.Event) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	return rows
}

// newestFirst reports whether a feed is in the API's order; rows of one instant
// then keep their true order when it is turned round.
func newestFirst(events []api.Event) bool {
	return !slices.IsSortedFunc(events, func(a, b api.Event) int { return a.CreatedAt.Compare(b.CreatedAt.Time) }) ||
		events[0].CreatedAt.Equal(events[len(events)-1].CreatedAt.Time)
}

func numbers(e api.Event) string {
	switch {
	case e.OldTrafficPercent != nil && e.NewTrafficPercent != nil:
		return fmt.Sprintf("%d%% → %d%%", *e.OldTrafficPercent, *e.NewTrafficPercent)
	case e.OldReplicas != nil && e.NewReplicas != nil:
		return fmt.Sprintf("%d → %d", *e.OldReplicas, *e.NewReplicas)
	}
	return ""
}

// text is a row's message, with whose it is and what was set where only fields tell it.
func text(e api.Event) string {
	s := Inert(e.Message)
	if e.DeploymentID != "" && e.Name != "" && !strings.Contains(e.Message, e.Name) {
		s = Inert(e.Name) + ": " + s
	}
	if len(e.Paths) > 0 && !strings.Contains(s, "→") {
		s += ": " + Inert(strings.Join(e.Paths, ", "))
	}
	if e.Reason != "" && !strings.Contains(e.Message, e.Reason) {
		s += " (" + Inert(e.Reason) + ")"
	}
	if e.Sluice != nil && e.Sluice.Actor != "" && !strings.HasPrefix(e.Message, e.Sluice.Actor+" ") {
		s += " by " + Inert(e.Sluice.Actor)
	}
	return s
}
