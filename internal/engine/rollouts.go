package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Rollout reads one rollout of an endpoint.
func (e *Engine) Rollout(ctx context.Context, endpoint, id string) (rollout.Rollout, error) {
	r, err := e.Store.Rollout(ctx, id)
	if errors.Is(err, rollout.ErrNotFound) || (err == nil && r.EndpointID != endpoint) {
		return rollout.Rollout{}, missing("rollout", id)
	}
	return r, err
}

// pair is the two sides of a spec with what stands.
type pair struct {
	endpoint       rollout.Endpoint
	source, target DeploymentView
	basis          rollout.Basis
}

// pairOf finds both sides of a spec and the basis that they stand on.
func (e *Engine) pairOf(ctx context.Context, endpoint string, s rollout.Spec) (pair, error) {
	ep, err := e.Endpoint(ctx, endpoint)
	if err != nil {
		return pair{}, err
	}
	p := pair{endpoint: ep}
	if p.source, err = e.side(ctx, endpoint, "sourceDeploymentId", s.Source); err != nil {
		return pair{}, err
	}
	if p.target, err = e.side(ctx, endpoint, "targetDeploymentId", s.Target); err != nil {
		return pair{}, err
	}
	p.basis = rollout.Basis{
		SourceReplicas: max(p.source.Status.Ready, p.source.Status.Desired),
		TargetReplicas: p.target.Status.Ready,
		SourceBounds:   p.source.Bounds,
		TargetBounds:   p.target.Bounds,
	}
	source := ep.WeightOf(s.Source) * float64(p.source.Status.Ready)
	target := ep.WeightOf(s.Target) * float64(p.target.Status.Ready)
	if source+target > 0 {
		p.basis.Seed = int(math.Round(target / (source + target) * 100))
	}
	return p, nil
}

func (e *Engine) side(ctx context.Context, endpoint, field, id string) (DeploymentView, error) {
	if id == "" {
		return DeploymentView{}, invalid(field, "%s is required", field)
	}
	d, err := e.Deployment(ctx, endpoint, id)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) && refused.Kind == NotFound {
			return DeploymentView{}, invalid(field, "deployment %s is not one of endpoint %s", id, endpoint)
		}
		return DeploymentView{}, err
	}
	return e.View(ctx, d)
}

// eligible says why a rollout of the pair could not start now; nil when it could.
func (p pair) eligible(s rollout.Spec, j rollout.Journey) *Error {
	switch {
	case p.source.State != Ready && p.source.Status.Ready == 0:
		return refuse(Precondition, "source deployment %s is %s; a rollout starts from a source that serves", s.Source, p.source.State)
	case p.target.State != Ready && p.target.State != Stopped && p.target.Status.Ready == 0:
		return refuse(Precondition, "target deployment %s is %s (%s); it must be READY or STOPPED", s.Target, p.target.State, p.target.Message)
	case p.basis.Seed >= 100:
		return refuse(Precondition, "target deployment %s already carries all of the pair's traffic; there is nothing to move", s.Target)
	case len(j.Rungs) > 0 && j.Rungs[0].Percent <= p.basis.Seed:
		return refuse(Precondition, "the first step asks for %d %%, which the target carries already; start above %d", j.Rungs[0].Percent, p.basis.Seed)
	}
	return nil
}

// valid refuses a spec that can never be right, or whose gate would look further
// back than the meter remembers.
func (e *Engine) valid(s rollout.Spec) error {
	if err := problem(s.Validate(e.Timings)); err != nil {
		return err
	}
	for i, r := range s.Rules {
		if w := e.Timings.WindowOf(r); w > LongestWindow {
			return invalid(fmt.Sprintf("metrics[%d].window", i), "window %s is longer than the %s that the meter remembers", w, LongestWindow)
		}
	}
	if s.Breaker == nil {
		return nil
	}
	for i, r := range s.Breaker.Rules {
		// The look before the newest reaches one spacing further back.
		if w := e.Timings.WindowOf(r) + e.Timings.BreakerEvery(); w > LongestWindow {
			return invalid(fmt.Sprintf("sluice.circuitBreaker.rules[%d].window", i), "window %s and the %s to the look before are longer than the %s that the meter remembers", e.Timings.WindowOf(r), e.Timings.BreakerEvery(), LongestWindow)
		}
	}
	return nil
}

// CreateRollout makes a rollout in PENDING. From here on it holds the endpoint's
// slot and the lock of its split.
func (e *Engine) CreateRollout(ctx context.Context, by Caller, endpoint string, s rollout.Spec) (rollout.Rollout, error) {
	if err := e.valid(s); err != nil {
		return rollout.Rollout{}, err
	}
	id := e.NewID("rol")
	err := e.update(ctx, func() (rollout.Change, error) {
		earlier, err := e.repeated(ctx, by)
		if err != nil || earlier != "" {
			id = earlier
			return rollout.Change{}, err
		}
		p, err := e.pairOf(ctx, endpoint, s)
		if err != nil {
			return rollout.Change{}, err
		}
		ep := p.endpoint
		if ep.ActiveRollout != "" {
			return rollout.Change{}, e.locked(ctx, ep, "endpoint already has an active rollout: %s (%s); let it end, cancel it, or delete it if it never started")
		}
		if ep.WeightOf(s.Source) <= 0 {
			return rollout.Change{}, invalid("sourceDeploymentId", "source deployment %s has no weight in the traffic split, so there is no traffic to move", s.Source)
		}
		j, ps := rollout.NewJourney(s, p.basis, e.Timings)
		if err := problem(ps); err != nil {
			return rollout.Change{}, err
		}
		if err := e.entitled(ctx, p, j, Invalid); err != nil {
			return rollout.Change{}, err
		}
		now := e.Now()
		r, events := rollout.New(id, ep.ProjectID, ep.ID, s, j, e.Timings, now)
		events[0].Actor = by.Name
		ep.ActiveRollout, ep.UpdatedAt = id, now
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}, Rollouts: []rollout.Rollout{r}, Events: events, Answers: e.answer(by, id)}, nil
	})
	if err != nil {
		return rollout.Rollout{}, err
	}
	return e.Rollout(ctx, endpoint, id)
}

// StartRollout begins a PENDING rollout. On one that runs already it changes
// nothing and returns it, so that a retry after a lost answer is harmless.
func (e *Engine) StartRollout(ctx context.Context, by Caller, endpoint, id string) (rollout.Rollout, error) {
	err := e.update(ctx, func() (rollout.Change, error) {
		r, err := e.Rollout(ctx, endpoint, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if r.State != rollout.Pending && !r.State.Terminal() {
			return rollout.Change{}, nil
		}
		if r.State == rollout.Pending {
			if r, err = e.renewed(ctx, r); err != nil {
				return rollout.Change{}, err
			}
		}
		r, events, err := r.Start(e.Now())
		if err != nil {
			return rollout.Change{}, fromControl(err)
		}
		events[0].Actor = by.Name
		return rollout.Change{Rollouts: []rollout.Rollout{r}, Events: events}, nil
	})
	e.runner.poke(id) // also after an error: the store may have kept it and lost the answer
	if err != nil {
		return rollout.Rollout{}, err
	}
	return e.Rollout(ctx, endpoint, id)
}

// renewed makes a pending rollout's journey anew, since what stands may have changed
// since the create, and refuses one that could not start now.
func (e *Engine) renewed(ctx context.Context, r rollout.Rollout) (rollout.Rollout, error) {
	p, err := e.pairOf(ctx, r.EndpointID, r.Spec)
	if err != nil {
		return r, err
	}
	j, ps := rollout.NewJourney(r.Spec, p.basis, r.Timings)
	if err := problem(ps); err != nil {
		return r, err
	}
	if refusal := p.eligible(r.Spec, j); refusal != nil {
		return r, refusal
	}
	if err := e.entitled(ctx, p, j, Precondition); err != nil {
		return r, err
	}
	out, _ := rollout.New(r.ID, r.ProjectID, r.EndpointID, r.Spec, j, r.Timings, r.CreatedAt)
	out.Version = r.Version
	return out, nil
}

// Control is one of the four controls of a person.
type Control func(r rollout.Rollout, actor string) (rollout.Rollout, []rollout.Event, error)

// Pause holds a rollout where it is. Like the other controls it only sets facts, and
// the runner does what follows.
func (e *Engine) Pause(reason string) Control {
	return func(r rollout.Rollout, actor string) (rollout.Rollout, []rollout.Event, error) {
		return r.PauseBy(actor, reason, e.Now())
	}
}

// Resume goes on at the same step.
func (e *Engine) Resume() Control {
	return func(r rollout.Rollout, actor string) (rollout.Rollout, []rollout.Event, error) {
		return r.Resume(actor, e.Now())
	}
}

// Promote jumps to the last step.
func (e *Engine) Promote() Control {
	return func(r rollout.Rollout, actor string) (rollout.Rollout, []rollout.Event, error) {
		return r.Promote(actor, e.Now())
	}
}

// Cancel freezes the split that is served.
func (e *Engine) Cancel(reason string) Control {
	return func(r rollout.Rollout, actor string) (rollout.Rollout, []rollout.Event, error) {
		return r.Cancel(actor, reason, e.Now())
	}
}

// ControlRollout applies a control and returns the rollout as accepted.
func (e *Engine) ControlRollout(ctx context.Context, by Caller, endpoint, id, etag string, control Control) (rollout.Rollout, error) {
	var accepted rollout.Rollout
	err := e.update(ctx, func() (rollout.Change, error) {
		r, err := e.Rollout(ctx, endpoint, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "rollout", id, r.Version); err != nil {
			return rollout.Change{}, err
		}
		r, events, err := control(r, by.Name)
		if err != nil {
			return rollout.Change{}, fromControl(err)
		}
		accepted = r
		accepted.Version++
		return rollout.Change{Rollouts: []rollout.Rollout{r}, Events: events}, nil
	})
	e.runner.poke(id) // as after a start
	if err != nil {
		return rollout.Rollout{}, err
	}
	return accepted, nil
}

// DeleteRollout removes the record of a rollout that never started or is over.
// The split that it left stays.
func (e *Engine) DeleteRollout(ctx context.Context, by Caller, endpoint, id, etag string) error {
	return e.update(ctx, func() (rollout.Change, error) {
		r, err := e.Rollout(ctx, endpoint, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "rollout", id, r.Version); err != nil {
			return rollout.Change{}, err
		}
		if r.State != rollout.Pending && !r.State.Terminal() {
			return rollout.Change{}, refuse(Precondition, "cannot delete rollout %s: it is %s; cancel it first", id, r.State)
		}
		ep, err := e.Endpoint(ctx, endpoint)
		if err != nil {
			return rollout.Change{}, err
		}
		ev := rollout.Event{At: e.Now(), ProjectID: ep.ProjectID, EndpointID: ep.ID, Subject: id, Type: rollout.EventDeleted, Level: rollout.LevelInfo, Actor: by.Name, Message: "rollout record deleted; the traffic split stays as it is"}
		c := rollout.Change{Delete: []rollout.Ref{{Kind: rollout.KindRollout, ID: id, Version: r.Version}}, Events: []rollout.Event{ev}}
		if ep.ActiveRollout == id {
			ep.ActiveRollout = ""
			c.Endpoints = []rollout.Endpoint{ep}
		}
		return c, nil
	})
}

// Preview is what a create would make of a spec now.
type Preview struct {
	Basis     rollout.Basis
	Journey   rollout.Journey
	Refusal   *Error // why a start would be refused now; nil when it would not
	Extra     int    // replicas beyond those that stand, at the peak
	Free      int    // of the target's hardware; negative for no limit
	Hardware  rollout.Hardware
	Shared    rollout.HardwareShare
	PeakBoth  int
	PeakPlain int  // of both sides without a held source
	FirstSeed bool // the first custom step is at the standing share

	SourceRate, TargetRate Rate          // over the last minute, see Rates
	ColdStart              time.Duration // budget of one start of the target's config
}

// PreviewRollout resolves a spec on what stands, without writing anything.
func (e *Engine) PreviewRollout(ctx context.Context, endpoint string, s rollout.Spec) (Preview, error) {
	if err := e.valid(s); err != nil {
		return Preview{}, err
	}
	p, err := e.pairOf(ctx, endpoint, s)
	if err != nil {
		return Preview{}, err
	}
	j, ps := rollout.NewJourney(s, p.basis, e.Timings)
	if err := problem(ps); err != nil {
		return Preview{}, err
	}
	v := Preview{Basis: p.basis, Journey: j, Refusal: p.eligible(s, j)}
	if v.Refusal == nil && p.endpoint.ActiveRollout != "" {
		v.Refusal = e.locked(ctx, p.endpoint, "endpoint already has an active rollout: %s (%s)")
	}
	if v.Refusal == nil {
		v.Refusal = e.refusal(ctx, p, j)
	}
	v.FirstSeed = len(s.Steps) > 0 && p.basis.Seed > 0 && s.Steps[0].Percent == p.basis.Seed
	capacity, hardware, err := e.capacity(ctx, p.source.Deployment, p.target.Deployment)
	if err != nil {
		return Preview{}, err
	}
	v.Free, v.Hardware, v.Shared = capacity.Free, hardware, capacity.Shared
	v.Extra = j.Extra(v.Shared)
	v.PeakBoth, _ = j.Peak()
	rates := e.Rates(time.Minute, s.Source, s.Target)
	v.SourceRate, v.TargetRate = rates[0], rates[1]
	v.ColdStart = e.serving[p.target.Config].ColdStart
	plain, _ := rollout.NewJourney(s.WithoutWayBack(), p.basis, e.Timings)
	v.PeakPlain, _ = plain.Peak()
	return v, nil
}

// capacity is what the fleet can still place for the target.
func (e *Engine) capacity(ctx context.Context, source, target rollout.Deployment) (rollout.Capacity, rollout.Hardware, error) {
	c := rollout.Capacity{Free: -1, Hardware: target.Hardware}
	if source.Hardware == target.Hardware {
		c.Shared = rollout.SharedHardware
	}
	inventory, err := e.Fleet.Hardware(ctx)
	if err != nil {
		return c, rollout.Hardware{}, fmt.Errorf("read the hardware inventory: %w", err)
	}
	for _, h := range inventory {
		if h.ID == target.Hardware {
			c.Free = h.Free
			return c, h, nil
		}
	}
	return c, rollout.Hardware{ID: target.Hardware}, nil
}
