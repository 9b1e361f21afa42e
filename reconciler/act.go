package reconciler

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// Done is what one change came to.
type Done struct {
	ID         string
	EndpointID string
	Adopted    bool            // it stood already, from an earlier try or by somebody else
	Again      bool            // it is under way at the engine (replicas that stop, a split that freezes): do the same change again later
	Next       planning.Action // what is due next as an act of its own: the start of a rollout that was made
	Endpoint   *api.Endpoint
	Deployment *api.Deployment
	Rollout    *api.Rollout
}

// Held is the refusal of a change because a rollout holds the endpoint.
type Held struct {
	EndpointID string
	By         api.Rollout
}

func (h *Held) Error() string { return planning.HeldBy(h.EndpointID, h.By) }

// Blocked is the refusal of a change that its plan says cannot be done.
type Blocked struct{ Change planning.Change }

func (b *Blocked) Error() string {
	return fmt.Sprintf("%s is not done: %s", b.Change.Address, b.Change.Blocked)
}

// Taken is the refusal of a create whose name somebody else's thing has.
type Taken struct {
	ID   string
	What string // in a few words: what differs
}

func (t *Taken) Error() string {
	return fmt.Sprintf("the name is taken by %s, which is another thing: %s", t.ID, t.What)
}

// Unlisted is the refusal of a create whose name is taken by something that the engine
// does not list: its readings are behind its writes. Looking again helps.
type Unlisted struct{ Why error }

func (u *Unlisted) Error() string {
	return u.Why.Error() + ", and it is not listed yet; it is looked for again"
}

// NotKnown is a change whose values are not all known yet: plan again once what it
// depends on is made.
type NotKnown struct{ Why error }

func (n *NotKnown) Error() string { return n.Why.Error() }
func (n *NotKnown) Unwrap() error { return n.Why }

// By is who asks for a change, and what they know.
type By struct {
	Origin  string   // a commit, a working copy
	History []string // ids of rollouts that the plan has left out: a create never takes one for its own
}

// Do carries out one change at the engine. It is safe to repeat, after a lost answer, a
// crash or by a second process: what a create would make is looked for first, by name or
// by the digest of the spec, and every write has an idempotency key or an etag. It never
// waits for a rollout: to make one and to start it are two acts, so that who keeps a
// journal can write an intent before each. ids are those of everything that stands, for
// references; by says who asks, and is kept at the engine.
//
// Refusals of the engine are *api.Error as they are. *Held, *Blocked, *Taken and *NotKnown
// are told apart from them.
func Do(ctx context.Context, c *engineclient.Client, change planning.Change, ids planning.Bindings, by By) (Done, error) {
	if change.Blocked != "" {
		return Done{}, &Blocked{change}
	}
	if change.Protected && (change.Action == planning.Delete || change.Action == planning.Replace) {
		change.Blocked = "it has prevent_destroy"
		return Done{}, &Blocked{change}
	}
	a := &act{client: c, change: change, ids: ids, by: by}
	switch change.Kind {
	case declaration.EndpointKind:
		return a.endpoint(ctx)
	case declaration.DeploymentKind:
		return a.deployment(ctx)
	case declaration.RolloutKind:
		return a.rollout(ctx)
	}
	return Done{}, fmt.Errorf("%s: no such kind of thing", change.Address)
}

// act is one change while it is done.
type act struct {
	client *engineclient.Client
	change planning.Change
	ids    planning.Bindings
	by     By
}

// resolve is the id that a link names.
func (a *act) resolve(l declaration.Link, what string) (string, error) {
	if l.ID != "" {
		return l.ID, nil
	}
	if l.To != nil {
		if id := a.ids[l.To.Address]; id != "" {
			return id, nil
		}
		return "", &NotKnown{fmt.Errorf("%s: %s is not made yet", a.change.Address, l.To.Address)}
	}
	return "", &NotKnown{fmt.Errorf("%s: its %s is not known yet", a.change.Address, what)}
}

func (a *act) notKnown(what string) error {
	return &NotKnown{fmt.Errorf("%s: its %s is not known yet", a.change.Address, what)}
}

// done is a change that needs no call.
func (a *act) done() Done {
	return Done{ID: a.change.ID, EndpointID: a.change.EndpointID, Adopted: true}
}

// impossible reports an action that a kind does not have, which would be a fault of the plan.
func (a *act) impossible() error {
	return fmt.Errorf("%s: a %s cannot be done to it", a.change.Address, a.change.Action)
}

func isTaken(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.CodeAlreadyExists
}
