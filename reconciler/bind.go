package reconciler

import (
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// boundThing is something live that a stack has made or taken in.
type boundThing struct {
	Address declaration.Address
	ID      string
}

// bindings are the ids of what the stack has, for a plan.
func (s *stackRecord) bindings() planning.Bindings {
	out := planning.Bindings{}
	for _, b := range s.Bound {
		out[b.Address] = b.ID
	}
	return out
}

// bind records an id. The order stays, so that a record that says the same is the same.
func (s *stackRecord) bind(a declaration.Address, id string) {
	if i := slices.IndexFunc(s.Bound, func(b boundThing) bool { return b.Address == a }); i >= 0 {
		s.Bound[i].ID = id
		return
	}
	s.Bound = append(s.Bound, boundThing{a, id})
}

func (s *stackRecord) unbind(a declaration.Address) {
	s.Bound = slices.DeleteFunc(s.Bound, func(b boundThing) bool { return b.Address == a })
	delete(s.Submitted, a.String())
}

// things counts what is bound, without the records of rollouts.
func (s *stackRecord) things() int {
	n := 0
	for _, b := range s.Bound {
		if b.Address.Kind != declaration.RolloutKind {
			n++
		}
	}
	return n
}

// owner is what an endpoint of a stack is owned by.
func (f *follower) owner(c StackConfig) string { return f.instance + " " + f.key(c.Name).String() }

// orphaned reports whether an owner is a stack of this very reconciler that is not in its
// configuration any more, such as one that was renamed.
func (f *follower) orphaned(owner string) bool {
	stack, ours := strings.CutPrefix(owner, f.instance+" ")
	return ours && f.instance != "" && !slices.Contains(f.stacks(), stack)
}

// mayAgain reports whether a person has allowed a spec once more.
func (s *stackRecord) mayAgain(digest string) bool {
	return slices.ContainsFunc(s.Again, func(a allowedAgain) bool { return a.Spec == digest })
}

// submit records the spec that was submitted last at an address.
func (s *stackRecord) submit(address, digest string) {
	if s.Submitted == nil {
		s.Submitted = map[string]string{}
	}
	s.Submitted[address] = digest
}
