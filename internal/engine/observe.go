package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// observe looks at everything that a decision about a rollout at an instant needs.
// failing is why the routers could not be told just before; empty when they could.
// A pause and a cancel need the split alone: neither waits for a fleet that is down.
func (e *Engine) observe(ctx context.Context, r rollout.Rollout, failing string, now time.Time) (rollout.Observed, error) {
	split, err := e.observeSplit(ctx, r, failing)
	o := rollout.Observed{Split: split, Since: e.returning.began()}
	if err != nil {
		return o, fmt.Errorf("observe the split: %w", err)
	}
	if r.State == rollout.Cancelling || r.State == rollout.Pausing {
		return o, nil
	}
	source, err := e.Store.Deployment(ctx, r.Spec.Source)
	if err != nil {
		return o, fmt.Errorf("observe the source: %w", err)
	}
	target, err := e.Store.Deployment(ctx, r.Spec.Target)
	if err != nil {
		return o, fmt.Errorf("observe the target: %w", err)
	}
	if o.Source, err = e.observeSide(ctx, r, source, now); err != nil {
		return o, fmt.Errorf("observe the source: %w", err)
	}
	if o.Target, err = e.observeSide(ctx, r, target, now); err != nil {
		return o, fmt.Errorf("observe the target: %w", err)
	}
	if o.Capacity, _, err = e.capacity(ctx, source, target); err != nil {
		return o, err
	}
	if o.Lapsed, err = e.lapsed(ctx, target, rollout.WantsEntitlement(r, o)); err != nil {
		return o, err
	}
	o.Readings, o.Breaker = e.read(ctx, rollout.Wants(r, now)), e.read(ctx, rollout.WantsBreaker(r, now))
	return o, nil
}

// read asks the meter; what it does not answer is a gap, which says nothing.
func (e *Engine) read(ctx context.Context, queries []rollout.Query) []rollout.Reading {
	var out []rollout.Reading
	for _, q := range queries {
		reading, err := e.Meter.Read(ctx, q)
		if err != nil {
			e.Logger.Warn("read the meter", "deployment", q.Deployment, "metric", q.Metric, "error", err)
			reading = rollout.Reading{}
		}
		out = append(out, reading)
	}
	return out
}

func (e *Engine) observeSide(ctx context.Context, r rollout.Rollout, d rollout.Deployment, now time.Time) (rollout.Side, error) {
	s, err := e.Fleet.Observe(ctx, d.ID)
	if err != nil {
		return rollout.Side{}, err
	}
	cold := e.serving[d.Config].ColdStart
	return rollout.Side{
		Bounds: d.Bounds, Desired: s.Desired, Scheduled: s.Scheduled, Ready: s.Ready, Draining: s.Draining,
		Unplaced: s.Unplaced, Failures: s.Failures, LastFailure: s.LastFailure, Message: s.Message, ColdStart: cold, Returning: e.returning.awaited(d, s, cold+r.Timings.ReadyDeadline, now),
	}, nil
}

// observeSplit tells what the data plane serves, not what was asked of it. While a
// rollout works, the pair counts as held only once it is served; on the way out, for
// as long as either the record or the served route still has it.
func (e *Engine) observeSplit(ctx context.Context, r rollout.Rollout, failing string) (rollout.Split, error) {
	s := rollout.Split{Percent: r.Percent, Failing: failing}
	s.Behind, s.BehindSince = e.routes.behind(ctx, r.EndpointID) // first: it may change what is served
	if route, ok := e.Router.Serving(r.EndpointID); ok && route.Pair != nil && route.Pair.RolloutID == r.ID {
		s.Held, s.Percent, s.Generation = true, route.Pair.Percent, route.Generation
	}
	ep, err := e.Store.Endpoint(ctx, r.EndpointID)
	if err != nil || ep.Pair == nil || ep.Pair.RolloutID != r.ID {
		return s, err
	}
	if s.Held {
		s.Pending = s.Percent != ep.Pair.Percent
		s.Generation = ep.Generation // as it was set: later routes only follow the fleet
	}
	if r.State == rollout.Cancelling || r.Phase == rollout.PhaseReleasing {
		s.Held = true
	}
	return s, nil
}
