package render

import (
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// StackOf is a sheet of a plan: its changes, a rollout for each of its journeys, and
// what is theirs apart from what is yours. Who made a drift, when, and what becomes of
// it is not in a plan; nor is what a preview knows.
func StackOf(name string, cs planning.Changes) StackSheet {
	st := StackSheet{Name: name, Changes: ChangesOf(cs)}
	for _, c := range cs.List {
		for _, f := range c.Fields {
			if f.Whose == planning.Theirs {
				shown := fieldOf(f)
				st.Drift = append(st.Drift, Drift{Address: c.Address.String(), Field: f.Path, Yours: shown.After, Theirs: shown.Before})
			}
		}
		if c.Journey == nil || !c.Pending() && !c.Waits {
			continue
		}
		j := *c.Journey
		j.Findings = append(slices.Clone(j.Findings), c.Findings...)
		st.Rollouts = append(st.Rollouts, RolloutSheet{Address: c.Address.String(), Endpoint: c.Endpoint, Journey: j})
	}
	return st
}
