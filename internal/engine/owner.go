package engine

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// maxOwner is how many characters an owner's id may have.
const maxOwner = 200

// OwnerChange claims an endpoint, or releases it: exactly one of both is the id of who
// asks. With Force somebody else's claim is taken away.
type OwnerChange struct {
	Claim   string
	Release string
	Force   *Force
}

// Force is a person's reason to take an endpoint from its owner. Whether the caller may is
// for the door to check: it takes the scope break-glass.
type Force struct{ Reason string }

// check refuses what names nobody, two at once, or a force without a reason.
func (o OwnerChange) check() error {
	id := o.Claim + o.Release
	switch {
	case (o.Claim == "") == (o.Release == ""):
		return invalid("sluice.owner", "give one of sluice.owner.claim and sluice.owner.release, with the id of who asks")
	case utf8.RuneCountInString(id) > maxOwner || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsGraphic(r) }) || !utf8.ValidString(id):
		return invalid("sluice.owner", "an owner's id has at most %d characters, all of them visible", maxOwner)
	case o.Force != nil && strings.TrimSpace(o.Force.Reason) == "":
		return invalid("sluice.owner.force.reason", "say why the endpoint is taken from its owner: sluice.owner.force.reason is empty")
	case o.Force != nil && utf8.RuneCountInString(o.Force.Reason) > maxReason:
		return invalid("sluice.owner.force.reason", "a reason of %d characters is above the limit of %d", utf8.RuneCountInString(o.Force.Reason), maxReason)
	}
	return nil
}

// ChangeOwner claims or releases an endpoint. An owner is who reconciles it: that is how
// two reconcilers see each other. It keeps nobody from writing; keys do that. A claim
// succeeds when nobody has the endpoint or who asks has it, and is refused with the
// owner's id otherwise.
func (e *Engine) ChangeOwner(ctx context.Context, by Caller, id, etag string, set OwnerChange) (rollout.Endpoint, error) {
	if err := set.check(); err != nil {
		return rollout.Endpoint{}, err
	}
	err := e.update(ctx, func() (rollout.Change, error) {
		ep, err := e.Endpoint(ctx, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "endpoint", id, ep.Version); err != nil {
			return rollout.Change{}, err
		}
		return e.owned(by, ep, set)
	})
	if err != nil {
		return rollout.Endpoint{}, err
	}
	return e.Endpoint(ctx, id)
}

// owned is the change that sets an endpoint's owner; empty when it is set so already.
func (e *Engine) owned(by Caller, ep rollout.Endpoint, set OwnerChange) (rollout.Change, error) {
	old, who := "", set.Claim+set.Release
	if ep.Owner != nil {
		old = ep.Owner.ID
	}
	if old == set.Claim {
		return rollout.Change{}, nil
	}
	foreign := old != "" && old != who
	if foreign && set.Force == nil {
		return rollout.Change{}, refuse(Locked, "endpoint %s is owned by %q since %s, not by %q; let the owner release it, or take it over with force and a reason",
			ep.ID, old, ep.Owner.At.UTC().Format(time.RFC3339), who)
	}
	event := e.endpointEvent(ep, by, "endpoint.owner_claimed", nil)
	event.Message = "owner is now " + set.Claim
	if set.Release != "" {
		event.Type, event.Message = "endpoint.owner_released", "owner "+old+" has released it"
	}
	if foreign {
		event.Type, event.Level, event.Reason = "endpoint.owner_taken", rollout.LevelWarn, set.Force.Reason
		event.Message = by.Name + " took it from its owner " + old + ": " + set.Force.Reason
	}
	ep.Owner, ep.UpdatedAt = nil, e.Now()
	if set.Claim != "" {
		ep.Owner = &rollout.Owner{ID: set.Claim, At: e.Now()}
	}
	return rollout.Change{Endpoints: []rollout.Endpoint{ep}, Events: []rollout.Event{event}}, nil
}
