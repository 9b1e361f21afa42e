package planning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// digested is what a plan's digest covers. Each field is in a fixed order.
type digested struct {
	Changes   []digestedChange
	Endpoints []digestedEndpoint
	Limits    api.Timings
}

type digestedChange struct {
	Address, Previous string
	Action            Action
	ID                string
	Control           string
	Spec              string          // its digest; empty while an id is not known
	Declared          json.RawMessage // all attributes as declared; what is not known is left out
}

type digestedEndpoint struct {
	ID     string
	Split  []api.TrafficWeight
	Bounds []digestedBounds
	Holder string // the rollout that holds it
}

type digestedBounds struct {
	ID       string
	Min, Max int
}

// Digest names a plan: "sha256:" and 64 hex digits. It is what an approval stands on, and
// covers, and nothing else:
//
//   - each change that does something, in the plan's order: its address and the one before
//     a move, its action, the id of what is live, the control that is sent, the spec's
//     digest, and every attribute as declared;
//   - of each endpoint that such a change touches: the live split, the replica bounds of
//     every deployment, and the rollout that holds it;
//   - the engine's waits.
//
// Replicas that an autoscaler has added, traffic, prices and texts are not in it: they
// move by themselves and would void every approval. A plan with nothing to do has a
// digest too, that of nothing.
func (cs Changes) Digest() string {
	var d digested
	touched := map[string]bool{}
	for _, c := range cs.Pending() {
		one := digestedChange{Address: c.Address.String(), Action: c.Action, ID: c.ID, Control: c.Control.String(), Spec: c.Digest, Declared: c.declaredJSON()}
		if c.Previous != nil {
			one.Previous = c.Previous.String()
		}
		d.Changes = append(d.Changes, one)
		touched[c.EndpointID] = true
	}
	for _, e := range cs.Standing.Endpoints {
		if touched[e.ID] {
			d.Endpoints = append(d.Endpoints, digestedOf(e))
		}
	}
	slices.SortFunc(d.Endpoints, func(a, b digestedEndpoint) int { return strings.Compare(a.ID, b.ID) })
	d.Limits = wire.TimingsToAPI(cs.Standing.Timings)
	b, err := json.Marshal(d)
	if err != nil {
		panic("plain values always marshal: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func digestedOf(e StandingEndpoint) digestedEndpoint {
	out := digestedEndpoint{ID: e.ID, Split: sorted(e.TrafficSplit)}
	for _, dep := range e.All {
		low, high := boundsOf(dep)
		out.Bounds = append(out.Bounds, digestedBounds{dep.ID, low, high})
	}
	slices.SortFunc(out.Bounds, func(a, b digestedBounds) int { return strings.Compare(a.ID, b.ID) })
	if r, held := e.Holder(); held {
		out.Holder = r.ID
	}
	return out
}

// Counts are the changes of a plan by what they do.
type Counts struct {
	Rollouts int // that are made, started or steered
	Created  int // all kinds, rollouts too
	Updated  int
	Replaced int
	Deleted  int
	Moved    int // declared at another address, whatever else changes
	Blocked  int
}

// Counts counts the changes.
func (cs Changes) Counts() Counts {
	var n Counts
	for _, c := range cs.List {
		if c.Previous != nil {
			n.Moved++
		}
		if c.Kind == declaration.RolloutKind && c.Pending() && c.Action != Delete {
			n.Rollouts++
		}
		if c.Blocked != "" {
			n.Blocked++
		}
		switch c.Action {
		case Create:
			n.Created++
		case Update, Start, Steer:
			n.Updated++
		case Replace:
			n.Replaced++
		case Delete:
			n.Deleted++
		case NoOp:
		}
	}
	return n
}

// Summary is a plan in one line: "1 rollout, 4 created, 0 replaced, 0 destroyed".
func (cs Changes) Summary() string { return cs.Counts().Text() }

// Text says counts in one line, replaced and destroyed always: a reader looks for them.
func (n Counts) Text() string {
	if n == (Counts{}) {
		return "no changes"
	}
	parts := []string{Count(n.Rollouts, "rollout"), fmt.Sprintf("%d created", n.Created)}
	if n.Updated > 0 {
		parts = append(parts, fmt.Sprintf("%d updated", n.Updated))
	}
	parts = append(parts, fmt.Sprintf("%d replaced", n.Replaced), fmt.Sprintf("%d destroyed", n.Deleted))
	if n.Moved > 0 {
		parts = append(parts, fmt.Sprintf("%d moved", n.Moved))
	}
	out := strings.Join(parts, ", ")
	if n.Blocked > 0 {
		out += fmt.Sprintf(" · %d blocked", n.Blocked)
	}
	return out
}
