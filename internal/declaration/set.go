package declaration

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Kind is a resource type.
type Kind string

// The kinds of blocks that are declared.
const (
	EndpointKind   Kind = "sluice_endpoint"
	DeploymentKind Kind = "sluice_deployment"
	RolloutKind    Kind = "sluice_rollout"
)

// Address names one declared thing, for example sluice_rollout.qwen35. Instance is
// empty without count and for_each, else [0] or ["eu"].
type Address struct {
	Kind     Kind
	Name     string
	Instance string
}

// String is the address as Terraform writes it.
func (a Address) String() string { return string(a.Kind) + "." + a.Name + a.Instance }

// Ref is a value that an engine gives to something declared: its id, mostly.
type Ref struct {
	Address   Address
	Attribute string
}

// String is the reference as HCL has it.
func (r Ref) String() string { return r.Address.String() + "." + r.Attribute }

// Field is a value with its place. Range is the value's own where it is written in
// the block, the block's header where it is left out. Unknown is true when it follows
// from something that only an engine gives; Value is then zero.
type Field[T any] struct {
	Value   T
	Given   bool // written and not null; a default is not given
	Unknown bool
	Range   hcl.Range
}

// Link is a field that holds an id: a known one, or a symbolic reference to
// something in the same set. All are zero when it is left out; Unknown is true when
// it follows from something that is not read here, such as a data source.
type Link struct {
	ID      string
	To      *Ref
	Unknown bool
	Range   hcl.Range
}

// Given reports whether the link is written.
func (l Link) Given() bool { return l.ID != "" || l.To != nil || l.Unknown }

// String is the id, or the reference as a template: "${sluice_deployment.a.id}".
func (l Link) String() string {
	if l.To != nil {
		return "${" + l.To.String() + "}"
	}
	return l.ID
}

// Same reports whether two links surely name one thing.
func (l Link) Same(o Link) bool { return l.String() != "" && l.String() == o.String() }

// Block is what all declared things have.
type Block struct {
	Address        Address
	Range          hcl.Range // of the header
	DependsOn      []Address // direct, in the set's order
	PreventDestroy bool
	Provider       string // the provider's alias as written, such as sluice.eu; empty for the default
	// Attributes has all attributes of the kind, as written or as their defaults are. What
	// only an engine gives is unknown, what is sensitive is marked (see Secret).
	Attributes cty.Value
}

// Endpoint is a sluice_endpoint.
type Endpoint struct {
	Block
	Name       Field[string]
	Visibility Field[string] // PRIVATE or INTERNAL
}

// Deployment is a sluice_deployment.
type Deployment struct {
	Block
	Endpoint             Link
	Name                 Field[string]
	Model                Field[string] // empty when the config serves one only
	Config               Field[string] // cr_…, empty when the model has one only
	MinReplicas          Field[int]
	MaxReplicas          Field[int]
	InitialTrafficWeight Field[float64] // of one ready replica; write-once
	WaitReady            Field[bool]
	Timeouts             Timeouts
}

// Timeouts are waits; zero when left out.
type Timeouts struct{ Create, Update, Delete Field[time.Duration] }

// Rollout is a sluice_rollout.
type Rollout struct {
	Block
	Endpoint        Link
	Source          Link // not given: the one that serves
	Target          Link
	Spec            rollout.Spec // Source and Target are Link.String: symbolic until Resolve
	Unknown         []string     // fields of Spec that only an engine's values decide, in the words of the wire
	OnParked        Field[string]
	DestroyBehavior Field[string]
	OnTimeout       Field[string]
	DesiredState    Field[string]
	Reason          Field[string]
	ResumeToken     Field[string]
	Wait            Field[bool]
	Timeouts        Timeouts

	places places
}

// RangeOf is the place of a field in the words of the wire, such as
// "canary.steps[1].traffic"; that of what encloses it where it is not written.
func (r Rollout) RangeOf(field string) hcl.Range { return r.places.of(field) }

// Resolve is the spec with its references replaced by ids. The error names the
// reference that ids lacks, or the first unknown field.
func (r Rollout) Resolve(ids map[Ref]string) (rollout.Spec, error) {
	if len(r.Unknown) > 0 {
		at := r.RangeOf(r.Unknown[0])
		return rollout.Spec{}, fmt.Errorf("%s at %s:%d: %s is not known yet; what follows from a data source, or from what only an engine gives, is not read here: take it from a variable", r.Address, at.Filename, at.Start.Line, snake(r.Unknown[0]))
	}
	s := r.Spec
	for _, side := range []struct {
		link Link
		to   *string
	}{{r.Source, &s.Source}, {r.Target, &s.Target}} {
		if side.link.To == nil {
			continue
		}
		id, ok := ids[*side.link.To]
		if !ok {
			return rollout.Spec{}, fmt.Errorf("%s: %s is not known yet", r.Address, side.link.To)
		}
		*side.to = id
	}
	return s, nil
}

// Output is an output block. JSON is its value, empty while it is not known or
// when it is sensitive.
type Output struct {
	Name        string
	Description string
	JSON        string
	Known       bool
	Value       cty.Value // without marks; unknown where it is not known
	Sensitive   bool
	Range       hcl.Range
}

// Move is a moved block: what stood at From stands at To.
type Move struct {
	From, To string
	Range    hcl.Range
}

// Set is a folder's declarations. Order holds every address after all that it
// depends on; the slices keep that order.
type Set struct {
	Endpoints   []Endpoint
	Deployments []Deployment
	Rollouts    []Rollout
	Outputs     []Output
	Moves       []Move
	Checks      []Check
	Variables   []Variable // by name
	Written     []Written  // the resource blocks as they stand in the text
	Order       []Address
}

// Rollout finds a rollout by its address as text.
func (s Set) Rollout(address string) (Rollout, bool) {
	for _, r := range s.Rollouts {
		if r.Address.String() == address {
			return r, true
		}
	}
	return Rollout{}, false
}
