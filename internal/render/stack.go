package render

import (
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// StackOf is a sheet of a plan: its changes, a rollout for each of its journeys, and
// what is theirs apart from what is yours. Who made a drift, when, and what becomes of
// it is not in a plan; nor is what a preview knows.
func StackOf(name string, cs planning.Changes) StackSheet {
	st := StackSheet{Name: name}
	for _, c := range cs.List {
		ch := Change{Address: c.Address.String(), Action: c.Action, ID: c.ID, Held: c.Blocked, Notes: slices.Clone(c.Notes)}
		if c.Previous != nil {
			ch.From = c.Previous.String()
		}
		for _, f := range c.Fields {
			if f.Whose == planning.Theirs {
				st.Drift = append(st.Drift, Drift{Address: ch.Address, Field: f.Path, Yours: after(f), Theirs: before(f)})
				continue
			}
			ch.Fields = append(ch.Fields, Field{Path: f.Path, Before: before(f), After: after(f)})
		}
		st.Changes = append(st.Changes, ch)
		if c.Journey == nil || !c.Pending() && !c.Waits {
			continue
		}
		j := *c.Journey
		j.Findings = append(slices.Clone(j.Findings), c.Findings...)
		st.Rollouts = append(st.Rollouts, RolloutSheet{Address: ch.Address, Endpoint: c.Endpoint, Journey: j})
	}
	return st
}

func before(f planning.FieldChange) string { return shown(string(f.Before), f) }

func after(f planning.FieldChange) string {
	if f.Unknown {
		return "known after apply"
	}
	return shown(string(f.After), f)
}

func shown(json string, f planning.FieldChange) string {
	switch strings.TrimSpace(json) {
	case "", "null":
		return ""
	}
	if f.Sensitive {
		return "sensitive"
	}
	return json
}
