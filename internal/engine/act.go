package engine

import (
	"context"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// act does one effect. Each is a level: the record is written first, then the
// world is told, so that a crash in between is mended from the record.
func (e *Engine) act(ctx context.Context, r rollout.Rollout, effect rollout.Effect) error {
	switch effect.Kind {
	case rollout.SetBounds:
		return e.setBounds(ctx, effect)
	case rollout.SetSplit:
		return e.setSplit(ctx, r, effect.Percent)
	case rollout.ReleaseSplit:
		return e.releaseSplit(ctx, r, effect.Percent)
	}
	return fmt.Errorf("unknown effect %q", effect.Kind)
}

func (e *Engine) setBounds(ctx context.Context, effect rollout.Effect) error {
	var d rollout.Deployment
	err := e.update(ctx, func() (rollout.Change, error) {
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
		return rollout.Change{Deployments: []rollout.Deployment{d}, Events: e.scaledEvents(old, d, Caller{Name: "rollout"})}, nil
	})
	if err != nil {
		return fmt.Errorf("set bounds of %s: %w", effect.Deployment, err)
	}
	return e.ensure(ctx, d)
}

func (e *Engine) setSplit(ctx context.Context, r rollout.Rollout, percent int) error {
	err := e.update(ctx, func() (rollout.Change, error) {
		ep, err := e.Store.Endpoint(ctx, r.EndpointID)
		if err != nil {
			return rollout.Change{}, err
		}
		p := rollout.Pair{RolloutID: r.ID, Source: r.Spec.Source, Target: r.Spec.Target, Percent: percent}
		if ep.Pair != nil {
			if *ep.Pair == (rollout.Pair{RolloutID: p.RolloutID, Source: p.Source, Target: p.Target, Percent: percent, Share: ep.Pair.Share}) {
				return rollout.Change{}, nil
			}
			p.Share = ep.Pair.Share
		} else {
			p.Share = e.pairShare(ctx, ep, r)
		}
		ep.Pair, ep.Generation, ep.UpdatedAt = &p, e.routes.next(), e.Now()
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}}, nil
	})
	if err != nil {
		return fmt.Errorf("set the split: %w", err)
	}
	return e.routes.apply(ctx, r.EndpointID)
}

// pairShare is the part of the endpoint's traffic that the pair has as the rollout
// takes hold of it; from then on it is kept, and the other members keep theirs.
func (e *Engine) pairShare(ctx context.Context, ep rollout.Endpoint, r rollout.Rollout) float64 {
	var pair, all float64
	for _, w := range ep.Split {
		status, err := e.Fleet.Observe(ctx, w.Deployment)
		if err != nil {
			e.Logger.Warn("observe for the pair's share", "deployment", w.Deployment, "error", err)
			continue
		}
		mass := w.Weight * float64(status.Ready)
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
	err := e.update(ctx, func() (rollout.Change, error) {
		ep, err := e.Store.Endpoint(ctx, r.EndpointID)
		if err != nil {
			return rollout.Change{}, err
		}
		if ep.Pair == nil {
			return rollout.Change{}, nil
		}
		if ep.Split, err = e.standing(ctx, ep, *ep.Pair, percent); err != nil {
			return rollout.Change{}, err
		}
		ep.Pair, ep.Generation, ep.UpdatedAt = nil, e.routes.next(), e.Now()
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}}, nil
	})
	if err != nil {
		return fmt.Errorf("release the split: %w", err)
	}
	return e.routes.apply(ctx, r.EndpointID)
}

func (e *Engine) standing(ctx context.Context, ep rollout.Endpoint, p rollout.Pair, percent int) ([]rollout.Weight, error) {
	ready := func(id string) (float64, error) {
		s, err := e.Fleet.Observe(ctx, id)
		return float64(max(1, s.Ready)), err
	}
	var others float64
	var out []rollout.Weight
	for _, w := range ep.Split {
		if w.Deployment == p.Source || w.Deployment == p.Target {
			continue
		}
		out = append(out, w)
		n, err := ready(w.Deployment)
		if err != nil {
			return nil, err
		}
		others += w.Weight * n
	}
	sources, err := ready(p.Source)
	if err != nil {
		return nil, err
	}
	targets, err := ready(p.Target)
	if err != nil {
		return nil, err
	}
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
	return out, nil
}
