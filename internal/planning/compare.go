package planning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// Compare says what it takes to bring what stands to what is declared. It is pure.
//
// What is bound by an id is that; everything else is found by its name: an endpoint in
// the project, a deployment on its endpoint, a rollout by its spec among its endpoint's.
// A rollout of the same spec is never made again: one that is under way is taken over, one
// that is CANCELED or COMPLETED is taken in. The standing split is no field of anything:
// what a rollout has left is not undone.
func Compare(set declaration.Set, standing Standing, bound Bindings) (Changes, error) {
	return compare(set, nil, standing, bound)
}

// CompareSince is Compare for a door that remembers what it applied last: a change of the
// declaration and one of somebody else are then told apart, and what turns on a change
// (a promotion, a resume_token, bounds that a rollout has left) can be told at all.
func CompareSince(set, applied declaration.Set, standing Standing, bound Bindings) (Changes, error) {
	return compare(set, &applied, standing, bound)
}

func compare(set declaration.Set, applied *declaration.Set, standing Standing, bound Bindings) (Changes, error) {
	c := &comparison{set: set, standing: standing, bound: Bindings{}, previous: map[declaration.Address]declaration.Address{}, claimed: map[string]declaration.Address{}, starts: map[string]declaration.Address{}, ids: Bindings{}}
	if applied != nil {
		c.applied = index(*applied)
	}
	c.declared = index(set)
	c.bind(bound)
	for _, a := range set.Order {
		b, ok := c.declared[a]
		if !ok {
			return Changes{}, fmt.Errorf("%s is in the order of the set, but nothing declares it", a)
		}
		c.compareOne(b)
	}
	if err := c.deletes(bound); err != nil {
		return Changes{}, err
	}
	return Changes{List: c.out, Set: set, Standing: standing}, nil
}

// comparison carries one Compare.
type comparison struct {
	set      declaration.Set
	declared map[declaration.Address]Declared
	applied  map[declaration.Address]Declared // nil when it is not known
	standing Standing
	bound    Bindings // by today's addresses
	previous map[declaration.Address]declaration.Address
	claimed  map[string]declaration.Address // live ids, by who declares them
	starts   map[string]declaration.Address // endpoints, by the rollout that this plan makes there
	ids      Bindings                       // of everything that is declared and stands
	out      []Change
}

func index(set declaration.Set) map[declaration.Address]Declared {
	out := map[declaration.Address]Declared{}
	for i := range set.Endpoints {
		out[set.Endpoints[i].Address] = Declared{Endpoint: &set.Endpoints[i]}
	}
	for i := range set.Deployments {
		out[set.Deployments[i].Address] = Declared{Deployment: &set.Deployments[i]}
	}
	for i := range set.Rollouts {
		out[set.Rollouts[i].Address] = Declared{Rollout: &set.Rollouts[i]}
	}
	return out
}

// bind carries bindings over to the addresses of today.
func (c *comparison) bind(bound Bindings) {
	for a, id := range bound {
		if _, stays := c.declared[a]; stays {
			c.bound[a] = id
		}
	}
	for a, id := range bound {
		if _, stays := c.declared[a]; stays {
			continue
		}
		to, ok := moved(c.set, a)
		if _, taken := c.bound[to]; ok && !taken {
			c.bound[to], c.previous[to] = id, a
		}
	}
}

// before is the block that was applied last at an address, or at the one that it was
// moved from.
func (c *comparison) before(a declaration.Address) (Declared, bool) {
	if from, ok := c.previous[a]; ok {
		a = from
	}
	d, ok := c.applied[a]
	return d, ok
}

func (c *comparison) compareOne(d Declared) {
	b := d.block()
	change := Change{Address: b.Address, Kind: b.Address.Kind, Range: b.Range, Protected: b.PreventDestroy, Declared: d, DependsOn: b.DependsOn, Action: NoOp}
	if from, ok := c.previous[b.Address]; ok {
		change.Previous = &from
	}
	switch {
	case d.Endpoint != nil:
		c.endpoint(&change, *d.Endpoint)
	case d.Deployment != nil:
		c.deployment(&change, *d.Deployment)
	case d.Rollout != nil:
		c.rollout(&change, *d.Rollout)
	}
	if change.ID != "" {
		if first, twice := c.claimed[change.ID]; twice {
			change.block("%s %s is declared by %s already; one of them must have another name", kindName(change.Kind), change.ID, first)
		} else {
			c.claimed[change.ID] = b.Address
		}
		if change.Action != Replace {
			c.ids[b.Address] = change.ID
		}
	}
	c.out = append(c.out, change)
}

// block says why a change cannot be done now. The first reason stays.
func (c *Change) block(format string, args ...any) {
	if c.Blocked == "" {
		c.Blocked = fmt.Sprintf(format, args...)
	}
}

// blockedBy says that a change waits until a rollout ends.
func (c *Change) blockedBy(r api.Rollout, format string, args ...any) {
	if c.Blocked == "" {
		c.BlockedBy = r.ID
	}
	c.block(format, args...)
}

func (c *Change) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// owned blocks what another owner has, or tells whose it is.
func (c *Change) owned(e StandingEndpoint) {
	if e.Keeper != "" && c.Pending() {
		c.note("endpoint %s is reconciled by %s: a merge applies this, sluice apply does not", BareName(e.Name), e.Keeper)
	}
	if e.Owner != "" && c.Pending() {
		c.block("endpoint %s belongs to %s; two owners would undo each other's work", BareName(e.Name), e.Owner)
	}
}

func kindName(k declaration.Kind) string {
	return map[declaration.Kind]string{declaration.EndpointKind: "endpoint", declaration.DeploymentKind: "deployment", declaration.RolloutKind: "rollout"}[k]
}

// resolve is the id that a link names; empty while it is not known.
func (c *comparison) resolve(l declaration.Link) string {
	if l.To == nil {
		return l.ID
	}
	return c.ids[l.To.Address]
}

// located fills in the endpoint of a deployment or rollout. ok is false while it is not
// made; missing is true where an id names nothing.
func (c *comparison) located(change *Change, l declaration.Link) (e StandingEndpoint, ok, missing bool) {
	if l.To != nil {
		if d := c.declared[l.To.Address]; d.Endpoint != nil {
			change.Endpoint = BareName(d.Endpoint.Name.Value)
		}
	}
	change.EndpointID = c.resolve(l)
	e, ok = c.standing.endpoint(change.EndpointID)
	if ok {
		change.Endpoint = BareName(e.Name)
	}
	return e, ok, !ok && change.EndpointID != ""
}

// errOrder would mean that deletes are planned of a kind that does not exist.
var errOrder = errors.New("a bound address is of no known kind")

// deletes plans the end of what is bound and declared no more: rollouts first, then
// deployments, then endpoints. What is gone already, or is declared at another address,
// needs none.
func (c *comparison) deletes(bound Bindings) error {
	rank := map[declaration.Kind]int{declaration.RolloutKind: 1, declaration.DeploymentKind: 2, declaration.EndpointKind: 3}
	var gone []declaration.Address
	for a, id := range bound {
		if _, stays := c.declared[a]; stays {
			continue
		}
		if rank[a.Kind] == 0 {
			return fmt.Errorf("%s: %w", a, errOrder)
		}
		if at, claimed := c.claimed[id]; claimed {
			c.renamed(at, a)
			continue
		}
		gone = append(gone, a)
	}
	slices.SortFunc(gone, func(a, b declaration.Address) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(b.String(), a.String()))
	})
	for _, a := range gone {
		c.deleteOne(a, bound[a])
	}
	return nil
}

// renamed notes the address that a thing had before.
func (c *comparison) renamed(at, from declaration.Address) {
	for i := range c.out {
		if c.out[i].Address == at && c.out[i].Previous == nil {
			c.out[i].Previous = &from
		}
	}
}

func (c *comparison) deleteOne(a declaration.Address, id string) {
	change := Change{Address: a, Kind: a.Kind, Action: Delete, ID: id}
	if d, ok := c.applied[a]; ok {
		b := d.block()
		change.Range, change.Protected, change.DependsOn = b.Range, b.PreventDestroy, b.DependsOn
	}
	found := false
	switch a.Kind {
	case declaration.EndpointKind:
		found = c.deleteEndpoint(&change)
	case declaration.DeploymentKind:
		found = c.deleteDeployment(&change)
	case declaration.RolloutKind:
		found = c.deleteRollout(&change)
	}
	if found {
		c.out = append(c.out, change)
	}
}
