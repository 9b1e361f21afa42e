package render

import "slices"

// Endpoints are those that a sheet has a status for, each once. A stack that changes no
// endpoint, since it cannot be planned, has one under its own name.
func (s Sheet) Endpoints() []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, st := range s.Stacks {
		for _, r := range st.Rollouts {
			add(r.Endpoint)
		}
		for _, e := range st.Endpoints {
			add(e)
		}
		if len(st.Rollouts)+len(st.Endpoints) == 0 {
			add(st.Name)
		}
	}
	return out
}
