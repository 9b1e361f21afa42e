package planning

import (
	"encoding/json"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// Action is what a change does.
type Action string

// The actions. Start is of a rollout that was made and waits for its start, Steer sends a
// control to one that is under way. Replace of a rollout is another rollout; the record
// of the old one stays.
const (
	NoOp    Action = "no-op"
	Create  Action = "create"
	Start   Action = "start"
	Steer   Action = "steer"
	Update  Action = "update"
	Replace Action = "replace"
	Delete  Action = "delete"
)

// Whose says who made a difference.
type Whose string

// Yours is a change of the declaration since it was applied last, Theirs one of what is
// live. Without what was applied last it cannot be told.
const (
	Yours  Whose = "yours"
	Theirs Whose = "theirs"
	Untold Whose = ""
)

// FieldChange is one attribute that differs.
type FieldChange struct {
	Path      string // in the words of HCL: autoscaling.min_replicas
	Before    json.RawMessage
	After     json.RawMessage // null where it is not known yet
	Unknown   bool
	Replaces  bool // no update can change it
	Whose     Whose
	Sensitive bool
}

// Change is what becomes of one declared thing, or of one that is declared no more.
type Change struct {
	Address  declaration.Address
	Previous *declaration.Address // where it was declared before: a move
	Kind     declaration.Kind
	Action   Action
	ID       string // of what is live; empty when nothing is
	Range    hcl.Range

	Endpoint   string // its name in the project
	EndpointID string // empty while it is not made

	Fields  []FieldChange
	Control Control          // of a Steer
	Spec    *api.RolloutSpec // of a rollout, with the ids that are known; nil where its shape is not
	Digest  string           // of the spec; empty while an id is not known
	Journey *Journey         // of a rollout whose shape is known
	Live    *api.Rollout     // of a rollout that exists
	Ahead   *Ahead           // of a rollout that is made, when the engine was asked (see reconciler.LookAhead); nil when not

	Findings  []Finding // that follow from what is live; those of the declaration are the journey's
	Notes     []string  // what a reader should know: what is taken in, what is left alone
	Blocked   string    // why it cannot be done now; empty when it can
	BlockedBy string    // the rollout that it waits for; empty when a person has to act
	Protected bool      // prevent_destroy
	Waits     bool      // of a rollout that is not over: a door that waits goes on waiting

	Declared  Declared
	DependsOn []declaration.Address

	before, after cty.Value
}

// Declared is the block that a change comes from: one of the three, none of a delete.
type Declared struct {
	Endpoint   *declaration.Endpoint
	Deployment *declaration.Deployment
	Rollout    *declaration.Rollout
}

// Makes reports whether a change brings a rollout under way: it is made, made anew, or
// waits for its start.
func (c Change) Makes() bool {
	return c.Kind == declaration.RolloutKind && (c.Action == Create || c.Action == Replace || c.Action == Start)
}

// Pending reports whether a change has something to do.
func (c Change) Pending() bool { return c.Action != NoOp }

// Changes is a plan of a folder: what becomes of everything that it declares, each after
// what it depends on, and then of what it declares no more, in the reverse order.
type Changes struct {
	List     []Change
	Set      declaration.Set
	Standing Standing
}

// Pending are the changes that do something.
func (cs Changes) Pending() []Change {
	var out []Change
	for _, c := range cs.List {
		if c.Pending() {
			out = append(out, c)
		}
	}
	return out
}

// Find is the change of an address.
func (cs Changes) Find(address string) (Change, bool) {
	for _, c := range cs.List {
		if c.Address.String() == address {
			return c, true
		}
	}
	return Change{}, false
}

// Bindings are the ids of everything that is declared and stands.
func (cs Changes) Bindings() Bindings {
	out := Bindings{}
	for _, c := range cs.List {
		if c.ID != "" && c.Action != Delete && c.Action != Replace {
			out[c.Address] = c.ID
		}
	}
	return out
}

// Known are the attributes that only an engine gives, as far as this plan knows them: all
// of what stands and stays, and the journey of what is made. A folder is evaluated again
// with them.
func (cs Changes) Known() map[declaration.Ref]cty.Value {
	out := map[declaration.Ref]cty.Value{}
	for _, c := range cs.List {
		if c.Action == Delete || c.after == cty.NilVal {
			continue
		}
		after, _ := c.after.UnmarkDeep()
		for _, name := range declaration.EngineGives(c.Kind) {
			if v := after.GetAttr(name); v.IsWhollyKnown() {
				out[declaration.Ref{Address: c.Address, Attribute: name}] = v
			}
		}
	}
	return out
}

func (d Declared) block() declaration.Block {
	switch {
	case d.Endpoint != nil:
		return d.Endpoint.Block
	case d.Deployment != nil:
		return d.Deployment.Block
	case d.Rollout != nil:
		return d.Rollout.Block
	}
	return declaration.Block{}
}
