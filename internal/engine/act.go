package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// act does one effect. Each is a level: the record is written first, then the
// world is told, so that a crash in between is mended from the record.
func (e *Engine) act(ctx context.Context, r rollout.Rollout, effect rollout.Effect) error {
	switch effect.Kind {
	case rollout.SetBounds:
		return e.setBounds(ctx, r, effect)
	case rollout.SetSplit:
		return e.setSplit(ctx, r, effect)
	case rollout.ReleaseSplit:
		return e.releaseSplit(ctx, r, effect.Percent)
	}
	return fmt.Errorf("unknown effect %q", effect.Kind)
}

// errSuperseded is an effect whose decision does not stand any more: a control came
// between. A cancel that was accepted must never lose to a shift that was on its way.
var errSuperseded = errors.New("a control came between the decision and its effect")

// bring writes an effect into the records, as long as the rollout and the bounds of
// both sides are still those that were decided upon.
func (e *Engine) bring(ctx context.Context, r rollout.Rollout, seen *rollout.Seen, change func() (rollout.Change, error)) error {
	return e.update(ctx, func() (rollout.Change, error) {
		now, err := e.Store.Rollout(ctx, r.ID)
		if err != nil {
			return rollout.Change{}, err
		}
		if now.Version != r.Version {
			return rollout.Change{}, errSuperseded
		}
		c, err := change()
		if err != nil || c.Empty() {
			return c, err
		}
		c.Require = []rollout.Ref{{Kind: rollout.KindRollout, ID: r.ID, Version: r.Version}}
		if seen != nil {
			sides, err := e.unedited(ctx, r, *seen)
			if err != nil {
				return rollout.Change{}, err
			}
			c.Require = append(c.Require, sides...)
		}
		return c, nil
	})
}

// unedited requires both sides as they are, unless somebody has edited their bounds
// since the decision: an operator's edit wins, and the rollout is decided again with it.
func (e *Engine) unedited(ctx context.Context, r rollout.Rollout, seen rollout.Seen) ([]rollout.Ref, error) {
	source, err := e.Store.Deployment(ctx, r.Spec.Source)
	if err != nil {
		return nil, err
	}
	target, err := e.Store.Deployment(ctx, r.Spec.Target)
	if err != nil {
		return nil, err
	}
	if source.Bounds != seen.Source || target.Bounds != seen.Target {
		return nil, errSuperseded
	}
	return []rollout.Ref{
		{Kind: rollout.KindDeployment, ID: source.ID, Version: source.Version},
		{Kind: rollout.KindDeployment, ID: target.ID, Version: target.Version},
	}, nil
}

func (e *Engine) setBounds(ctx context.Context, r rollout.Rollout, effect rollout.Effect) error {
	var d rollout.Deployment
	err := e.bring(ctx, r, effect.Seen, func() (rollout.Change, error) {
		var err error
		if d, err = e.Store.Deployment(ctx, effect.Deployment); err != nil {
			return rollout.Change{}, err
		}
		old := d.Bounds
		if effect.Min != nil {
			d.Bounds.Min = *effect.Min
		}
		if effect.Max != nil {
			d.Bounds.Max = *effect.Max
		}
		if d.Bounds == old {
			return rollout.Change{}, nil
		}
		d.UpdatedAt = e.Now()
		c := rollout.Change{Deployments: []rollout.Deployment{d}, Events: e.scaledEvents(old, d, Caller{Name: rollout.ItselfActor})}
		if effect.Lifts {
			r.Lifted = true
			c.Rollouts = []rollout.Rollout{r}
		}
		return c, nil
	})
	if err == nil {
		err = e.ensureLatest(ctx, d)
	}
	if err != nil && !errors.Is(err, errSuperseded) {
		// The record may say it while the fleet was not told, and the next decision will
		// find nothing left to do: the fleet is told of the record until it hears.
		e.routes.ensureLater(effect.Deployment)
	}
	if err != nil {
		return fmt.Errorf("set bounds of %s: %w", effect.Deployment, err)
	}
	return nil
}

func (e *Engine) setSplit(ctx context.Context, r rollout.Rollout, effect rollout.Effect) error {
	percent, wrote := effect.Percent, uint64(0)
	err := e.bring(ctx, r, effect.Seen, func() (rollout.Change, error) {
		ep, err := e.Store.Endpoint(ctx, r.EndpointID)
		if err != nil {
			return rollout.Change{}, err
		}
		p := rollout.Pair{RolloutID: r.ID, Source: r.Spec.Source, Target: r.Spec.Target, Percent: percent}
		if ep.Pair != nil {
			wrote = ep.Generation
			if *ep.Pair == (rollout.Pair{RolloutID: p.RolloutID, Source: p.Source, Target: p.Target, Percent: percent, Share: ep.Pair.Share}) {
				return rollout.Change{}, nil
			}
			p.Share = ep.Pair.Share
		} else {
			p.Share = e.pairShare(ctx, ep, r)
		}
		ep.Pair, ep.Generation, ep.UpdatedAt = &p, e.routes.next(), e.Now()
		wrote = ep.Generation
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}}, nil
	})
	if err != nil {
		return fmt.Errorf("set the split: %w", err)
	}
	err = e.routes.apply(ctx, r.EndpointID)
	var refused *routeError
	if errors.As(err, &refused) {
		// The routers keep the old split, and so must the record: otherwise the next
		// route that they take, for whatever reason, would move the traffic of a
		// rollout that is parked by then.
		if back := e.followServed(ctx, r, wrote); back != nil {
			err = errors.Join(err, back)
		}
	}
	return err
}

// followServed makes the recorded pair of a rollout the one that is served. Routers
// that serve nothing, after a restart, shall take up the split that was recorded last. A
// split that somebody else has written since the given generation is theirs.
func (e *Engine) followServed(ctx context.Context, r rollout.Rollout, wrote uint64) error {
	served, ok := e.Router.Serving(r.EndpointID)
	err := e.update(ctx, func() (rollout.Change, error) {
		ep, err := e.Store.Endpoint(ctx, r.EndpointID)
		if err != nil || ep.Pair == nil || ep.Pair.RolloutID != r.ID || ep.Generation != wrote {
			return rollout.Change{}, err
		}
		pair := served.Pair
		if !ok {
			last := *ep.Pair
			last.Percent = r.Percent
			pair = &last
		}
		ep.Pair, ep.Generation, ep.UpdatedAt = pair, e.routes.next(), e.Now()
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}}, nil
	})
	if err != nil {
		return fmt.Errorf("keep the split that is served: %w", err)
	}
	return nil
}

// carrying counts the replicas by which a deployment's weight counts: those that
// the routers send to; for one that has none just now, what its autoscaler wants,
// since a moment's death is not a smaller share. A stopped one has none.
func (e *Engine) carrying(ctx context.Context, endpoint, deployment string) float64 {
	served, ok := e.Router.Serving(endpoint)
	if n := memberOf(served, deployment).Ready(); ok && n > 0 {
		return float64(n)
	}
	status, err := e.Fleet.Observe(ctx, deployment)
	if err != nil {
		e.Logger.Warn("observe for a share", "deployment", deployment, "error", err)
		return 1
	}
	if status.Ready > 0 {
		return float64(status.Ready)
	}
	return float64(status.Desired)
}

// pairShare is the part of the endpoint's traffic that the pair has as the rollout
// takes hold of it; from then on it is kept, and the other members keep theirs.
func (e *Engine) pairShare(ctx context.Context, ep rollout.Endpoint, r rollout.Rollout) float64 {
	var pair, all float64
	for _, w := range ep.Split {
		mass := w.Weight * e.carrying(ctx, ep.ID, w.Deployment)
		all += mass
		if w.Deployment == r.Spec.Source || w.Deployment == r.Spec.Target {
			pair += mass
		}
	}
	if all == 0 {
		return 1
	}
	return pair / all
}

// releaseSplit turns the pair's exact share into standing weights that keep it:
// the weight of one ready replica is its deployment's share divided by the ready
// replicas. The other members' weights are not touched.
func (e *Engine) releaseSplit(ctx context.Context, r rollout.Rollout, percent int) error {
	err := e.bring(ctx, r, nil, func() (rollout.Change, error) {
		ep, err := e.Store.Endpoint(ctx, r.EndpointID)
		if err != nil {
			return rollout.Change{}, err
		}
		if ep.Pair == nil {
			return rollout.Change{}, nil
		}
		ep.Split = e.standing(ctx, ep, *ep.Pair, percent)
		ep.Pair, ep.Generation, ep.UpdatedAt = nil, e.routes.next(), e.Now()
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}}, nil
	})
	if err != nil {
		return fmt.Errorf("release the split: %w", err)
	}
	return e.routes.apply(ctx, r.EndpointID)
}

// standing is a split in which the pair has its share by weights.
func (e *Engine) standing(ctx context.Context, ep rollout.Endpoint, p rollout.Pair, percent int) []rollout.Weight {
	var others float64
	var out []rollout.Weight
	for _, w := range ep.Split {
		if w.Deployment == p.Source || w.Deployment == p.Target {
			continue
		}
		out = append(out, w)
		others += w.Weight * e.carrying(ctx, ep.ID, w.Deployment)
	}
	sources := max(1, e.carrying(ctx, ep.ID, p.Source))
	targets := max(1, e.carrying(ctx, ep.ID, p.Target))
	// With other members the pair's mass is what keeps its share beside theirs;
	// alone, percents read best, and a target that has it all takes weight 1 a
	// replica as any sole deployment would.
	mass := 100.0
	switch {
	case others > 0 && p.Share < 1:
		mass = others * p.Share / (1 - p.Share)
	case percent == 100:
		mass = targets
	case percent == 0:
		mass = sources
	}
	if w := mass * float64(100-percent) / 100 / sources; w > 0 {
		out = append(out, rollout.Weight{Deployment: p.Source, Weight: w})
	}
	if w := mass * float64(percent) / 100 / targets; w > 0 {
		out = append(out, rollout.Weight{Deployment: p.Target, Weight: w})
	}
	return out
}
