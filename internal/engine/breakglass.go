package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// BreakGlass is a person's reason to edit a split that a rollout holds. Whether the
// caller may is for the door to check: it takes the scope break-glass.
type BreakGlass struct {
	Reason string
}

// maxReason is how many characters a reason may have.
const maxReason = 500

// check refuses no reason: without one nobody knows later why the split drifted.
func (b BreakGlass) check() error {
	switch {
	case strings.TrimSpace(b.Reason) == "":
		return invalid("sluice.breakGlass.reason", "say why the lock is broken: sluice.breakGlass.reason is empty")
	case utf8.RuneCountInString(b.Reason) > maxReason:
		return invalid("sluice.breakGlass.reason", "a reason of %d characters is above the limit of %d", utf8.RuneCountInString(b.Reason), maxReason)
	}
	return nil
}

// breakGlass edits the split of an endpoint that a rollout holds: the split, what the
// rollout's record says about it, and the events are one commit. The rollout's new
// version supersedes a shift or a hold that is on its way.
func (e *Engine) breakGlass(ctx context.Context, by Caller, ep rollout.Endpoint, split []rollout.Weight, glass BreakGlass) (rollout.Change, error) {
	if err := glass.check(); err != nil {
		return rollout.Change{}, err
	}
	if err := e.checkWeights(ctx, ep, split); err != nil {
		return rollout.Change{}, err
	}
	r, err := e.Store.Rollout(ctx, ep.ActiveRollout)
	if err != nil {
		return rollout.Change{}, fmt.Errorf("read the rollout that holds the endpoint: %w", err)
	}
	to, share, err := e.pairIn(ctx, ep, r, split)
	if err != nil {
		return rollout.Change{}, err
	}
	if ep.Pair != nil && r.Edit != nil && *r.Edit == (rollout.Edit{By: by.Name, Reason: glass.Reason, At: r.Edit.At, From: r.Edit.From, To: to}) && ep.Pair.Percent == to && slices.Equal(ep.Split, split) {
		return rollout.Change{}, nil // asked again after a lost answer: done once
	}
	from := r.Percent
	if ep.Pair != nil {
		from = ep.Pair.Percent
	}
	next, events, err := r.BreakGlass(by.Name, glass.Reason, from, to, e.Now())
	if err != nil {
		return rollout.Change{}, fromControl(err)
	}
	ep.Split, ep.Generation, ep.UpdatedAt = split, e.routes.next(), e.Now()
	c := rollout.Change{Events: append(events, e.endpointEvent(ep, by, "endpoint.updated", []string{"trafficSplit"}))}
	if r.State == rollout.Pending { // it holds no split yet, and looks at what stands when it starts
		c.Require = []rollout.Ref{{Kind: rollout.KindRollout, ID: r.ID, Version: r.Version}}
	} else {
		ep.Pair = &rollout.Pair{RolloutID: r.ID, Source: r.Spec.Source, Target: r.Spec.Target, Percent: to, Share: share}
		c.Rollouts = []rollout.Rollout{next}
	}
	c.Endpoints = []rollout.Endpoint{ep}
	return c, nil
}

// pairIn is what a split of weights gives the pair of a rollout, by the replicas that
// answer: the target's percent of the pair, rounded, and the pair's share of all. A side
// with a weight and no replica that answers is refused: its part would silently go to
// the other one.
func (e *Engine) pairIn(ctx context.Context, ep rollout.Endpoint, r rollout.Rollout, split []rollout.Weight) (percent int, share float64, err error) {
	var source, target, others float64
	for i, w := range split {
		ready := e.answering(ctx, ep.ID, w.Deployment)
		if ready == 0 && w.Weight > 0 && (w.Deployment == r.Spec.Source || w.Deployment == r.Spec.Target) {
			return 0, 0, nobodyServes(r, split, i)
		}
		mass := w.Weight * ready
		switch w.Deployment {
		case r.Spec.Source:
			source = mass
		case r.Spec.Target:
			target = mass
		default:
			others += mass
		}
	}
	pair := source + target
	if pair <= 0 {
		return 0, 0, invalid("trafficSplit", "this split gives nothing to the pair of rollout %s (%s and %s), counting the replicas that answer; cancel the rollout to take the traffic of both away", r.ID, r.Spec.Source, r.Spec.Target)
	}
	return int(math.Round(target / pair * 100)), pair / (pair + others), nil
}

// nobodyServes refuses a split that gives the i-th deployment, a side without a ready
// replica, a part of the traffic.
func nobodyServes(r rollout.Rollout, split []rollout.Weight, i int) error {
	total := 0.0
	for _, w := range split {
		total += w.Weight
	}
	side := "target"
	if split[i].Deployment == r.Spec.Source {
		side = "source"
	}
	return invalid(fmt.Sprintf("trafficSplit[%d].weight", i), "the %s of rollout %s, %s, has no ready replica, so the %.0f %% meant for it would be served by nobody; give it weight 0, or start replicas of it first",
		side, r.ID, split[i].Deployment, split[i].Weight/total*100)
}

// answering counts the replicas of a deployment that the routers can send to now.
func (e *Engine) answering(ctx context.Context, endpoint, deployment string) float64 {
	if served, ok := e.Router.Serving(endpoint); ok {
		return float64(memberOf(served, deployment).Ready())
	}
	status, err := e.Fleet.Observe(ctx, deployment)
	if err != nil {
		e.Logger.Warn("observe for a share", "deployment", deployment, "error", err)
		return 0
	}
	return float64(status.Ready)
}
