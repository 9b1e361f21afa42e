package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// observe looks at everything that a decision about a rollout at an instant needs.
func (e *Engine) observe(ctx context.Context, r rollout.Rollout, now time.Time) (rollout.Observed, error) {
	var o rollout.Observed
	source, err := e.Store.Deployment(ctx, r.Spec.Source)
	if err != nil {
		return o, fmt.Errorf("observe the source: %w", err)
	}
	target, err := e.Store.Deployment(ctx, r.Spec.Target)
	if err != nil {
		return o, fmt.Errorf("observe the target: %w", err)
	}
	if o.Source, err = e.observeSide(ctx, source); err != nil {
		return o, fmt.Errorf("observe the source: %w", err)
	}
	if o.Target, err = e.observeSide(ctx, target); err != nil {
		return o, fmt.Errorf("observe the target: %w", err)
	}
	if o.Capacity, _, err = e.capacity(ctx, source, target); err != nil {
		return o, err
	}
	o.Split = e.observeSplit(ctx, r)
	for _, q := range rollout.Wants(r, now) {
		reading, err := e.Meter.Read(ctx, q)
		if err != nil {
			e.Logger.Warn("read the meter", "deployment", q.Deployment, "metric", q.Metric, "error", err)
			reading = rollout.Reading{} // a gap: not complete
		}
		o.Readings = append(o.Readings, reading)
	}
	return o, nil
}

func (e *Engine) observeSide(ctx context.Context, d rollout.Deployment) (rollout.Side, error) {
	s, err := e.Fleet.Observe(ctx, d.ID)
	if err != nil {
		return rollout.Side{}, err
	}
	return rollout.Side{
		Bounds: d.Bounds, Desired: s.Desired, Scheduled: s.Scheduled, Ready: s.Ready, Draining: s.Draining,
		Unplaced: s.Unplaced, Message: s.Message, ColdStart: e.serving[d.Config].ColdStart,
	}, nil
}

// observeSplit tells what the data plane serves, not what was asked of it. A pair
// counts as held while either the record or the served route has it.
func (e *Engine) observeSplit(ctx context.Context, r rollout.Rollout) rollout.Split {
	s := rollout.Split{Failing: e.routes.failure(r.EndpointID)}
	if route, ok := e.Router.Serving(r.EndpointID); ok && route.Pair != nil && route.Pair.RolloutID == r.ID {
		s.Held, s.Percent, s.Generation = true, route.Pair.Percent, route.Generation
	}
	if ep, err := e.Store.Endpoint(ctx, r.EndpointID); err == nil {
		if ep.Pair != nil && ep.Pair.RolloutID == r.ID {
			s.Held, s.Generation = true, ep.Generation
		}
	}
	return s
}
