package render

import (
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Way is one thing that a person can do about a parked rollout.
type Way struct {
	Command string
	Effect  string
}

// Park is what a person must know about a parked rollout.
type Park struct {
	Category  string // for example METRIC_REGRESSION; PAUSED for a person's own pause
	Message   string
	Untouched string // what still stands
	Ways      []Way
}

// ParkOf reads a parked rollout. For one that is not parked, Category is empty.
func ParkOf(r api.Rollout, o Options) Park {
	state := strings.TrimPrefix(r.State, api.PrefixRolloutState)
	if state != "PAUSED" && state != "SYSTEM_PAUSED" {
		return Park{}
	}
	p := Park{Category: "PAUSED"}
	if c := r.Status.Condition; c != nil {
		p.Category, p.Message = Inert(strings.TrimPrefix(c.Category, api.PrefixCategory)), Inert(c.Message)
	} else if r.PauseInfo != nil {
		p.Message = Inert(r.PauseInfo.Reason)
	}
	percent := percentOf(r)
	split := fmt.Sprintf("%d/%d", 100-percent, percent)
	p.Untouched = fmt.Sprintf("the split stays at %s (source/target), both sides keep serving, no replica is stopped", split)
	p.Ways = []Way{
		{o.command(Resume, r.EndpointID, r.ID), resumeEffect(p.Category)},
		{o.command(Promote, r.EndpointID, r.ID), "skips to the last step and runs it in full, its wait included"},
		{o.command(Cancel, r.EndpointID, r.ID), fmt.Sprintf("freezes %s at once, scales nothing; a reverse rollout then goes back", split)},
	}
	return p
}

func resumeEffect(category string) string {
	switch category {
	case "METRIC_REGRESSION", "METRICS_UNAVAILABLE":
		return "judges the gate of this step again on fresh data; never skips it"
	case "PAUSED":
		return "goes on at the same step and split"
	}
	return "tries this step again from its first check"
}

func percentOf(r api.Rollout) int {
	if r.CurrentTrafficPercent == nil {
		return 0
	}
	return *r.CurrentTrafficPercent
}

// Text is a park in a few lines without colour, for diagnostics.
func (p Park) Text() string {
	var b strings.Builder
	if p.Message != "" {
		b.WriteString(p.Message + "\n\n")
	}
	b.WriteString("Not touched: " + p.Untouched + ".\n\nThree ways on:\n")
	for _, w := range p.Ways {
		b.WriteString("  " + w.Command + "\n      " + w.Effect + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
