package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// spec reads a spec from the body. Problems that only the wire can have come
// first, then those of the core.
func (s *Server) spec(c *call) (rollout.Spec, error) {
	in, err := decode[api.RolloutSpec](c)
	if err != nil {
		return rollout.Spec{}, err
	}
	spec, ps := wire.Checked(in, s.Engine.Timings)
	if len(ps) > 0 {
		return spec, badRequest(ps[0].Field, ps[0].String())
	}
	return spec, nil
}

func (s *Server) createRollout(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	spec, err := s.spec(c)
	if err != nil {
		return nil, err
	}
	by, err := c.creator()
	if err != nil {
		return nil, err
	}
	r, err := s.Engine.CreateRollout(ctx, by, ep.ID, spec)
	if err != nil {
		return nil, err
	}
	return s.viewRollout(r), nil
}

func (s *Server) previewRollout(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	spec, err := s.spec(c)
	if err != nil {
		return nil, err
	}
	p, err := s.Engine.PreviewRollout(ctx, ep.ID, spec)
	if err != nil {
		return nil, err
	}
	return s.viewPreview(spec, p), nil
}

// rollout reads the rollout of the path.
func (s *Server) rollout(ctx context.Context, c *call) (rollout.Rollout, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return rollout.Rollout{}, err
	}
	return s.Engine.Rollout(ctx, ep.ID, c.PathValue("rollout"))
}

func (s *Server) getRollout(ctx context.Context, c *call) (any, error) {
	r, err := s.rollout(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.viewRollout(r), nil
}

func (s *Server) listRollouts(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	filter := c.URL.Query().Get("filter")
	if filter != "" && filter != api.FilterActive && filter != api.FilterTerminal {
		return nil, badRequest("filter", fmt.Sprintf("invalid filter expression %q; use %s or %s", filter, api.FilterActive, api.FilterTerminal))
	}
	all, err := s.Engine.Store.Rollouts(ctx, ep.ID)
	if err != nil {
		return nil, err
	}
	var kept []rollout.Rollout
	for _, r := range all {
		// Active means not over: pending and paused ones hold the slot too.
		if filter == "" || (filter == api.FilterTerminal) == r.State.Terminal() {
			kept = append(kept, r)
		}
	}
	items, next, err := paged(c, kept, func(r rollout.Rollout) place { return place{r.CreatedAt, r.ID} }, newestFirst)
	if err != nil {
		return nil, err
	}
	return page(items, next, func(r rollout.Rollout) (api.Rollout, error) { return s.viewRollout(r), nil })
}

func (s *Server) startRollout(ctx context.Context, c *call) (any, error) {
	r, err := s.rollout(ctx, c)
	if err != nil {
		return nil, err
	}
	if r, err = s.Engine.StartRollout(ctx, c.caller(), r.EndpointID, r.ID); err != nil {
		return nil, err
	}
	return s.viewRollout(r), nil
}

func (s *Server) pauseRollout(ctx context.Context, c *call) (any, error) {
	return s.control(ctx, c, func(in api.Control) (engine.Control, error) { return s.Engine.Pause(in.Reason), nil })
}

func (s *Server) resumeRollout(ctx context.Context, c *call) (any, error) {
	return s.control(ctx, c, func(api.Control) (engine.Control, error) { return s.Engine.Resume(), nil })
}

func (s *Server) promoteRollout(ctx context.Context, c *call) (any, error) {
	return s.control(ctx, c, func(api.Control) (engine.Control, error) { return s.Engine.Promote(), nil })
}

func (s *Server) cancelRollout(ctx context.Context, c *call) (any, error) {
	return s.control(ctx, c, func(in api.Control) (engine.Control, error) {
		if strings.TrimSpace(in.Reason) == "" {
			return nil, badRequest("reason", "a cancel needs a reason: it stands in the event feed for those who ask later")
		}
		switch in.Disposition {
		case "", api.PrefixDisposition + "FREEZE":
			return s.Engine.Cancel(in.Reason), nil
		case api.PrefixDisposition + "REVERT":
			return nil, &api.Error{Status: 400, Code: api.CodeFailedPrecondition, Param: "disposition", Message: "a cancel always freezes the split; to go back, run a rollout with source and target swapped"}
		}
		return nil, badRequest("disposition", fmt.Sprintf("disposition %q is unknown; use %sFREEZE", in.Disposition, api.PrefixDisposition))
	})
}

// maxReason bounds a reason: it is shown in feeds and reports.
const maxReason = 1024

func (s *Server) control(ctx context.Context, c *call, which func(api.Control) (engine.Control, error)) (any, error) {
	in, err := decode[api.Control](c)
	if err != nil {
		return nil, err
	}
	if len(in.Reason) > maxReason {
		return nil, badRequest("reason", fmt.Sprintf("a reason has at most %d bytes", maxReason))
	}
	r, err := s.rollout(ctx, c)
	if err != nil {
		return nil, err
	}
	control, err := which(in)
	if err != nil {
		return nil, err
	}
	if r, err = s.Engine.ControlRollout(ctx, c.caller(), r.EndpointID, r.ID, in.ETag, control); err != nil {
		return nil, err
	}
	return s.viewRollout(r), nil
}

func (s *Server) deleteRollout(ctx context.Context, c *call) (any, error) {
	r, err := s.rollout(ctx, c)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Engine.DeleteRollout(ctx, c.caller(), r.EndpointID, r.ID, c.URL.Query().Get("etag"))
}

// viewRollout adds to the record what is measured now.
func (s *Server) viewRollout(r rollout.Rollout) api.Rollout {
	out := wire.RolloutToAPI(r)
	if out.Sluice == nil || r.State.Terminal() || r.State == rollout.Pending {
		return out
	}
	if share, ok := s.actualShare(r); ok {
		out.Sluice.ActualShare = &share
	}
	return out
}

// fewestForShare is how many answers a share is told from at least: of fewer, chance
// alone would make 10 % look like 0 or 25.
const fewestForShare = 20

// actualShare is the target's part of the pair's answers since the split was last
// moved: what was routed before belongs to another split. ok is false before the
// first shift and while there are too few answers.
func (s *Server) actualShare(r rollout.Rollout) (share float64, ok bool) {
	if s.Shares == nil || r.Generation == 0 {
		return 0, false
	}
	source, target := s.Shares.Served(r.Spec.Source, r.Generation), s.Shares.Served(r.Spec.Target, r.Generation)
	all := source + target
	if all < fewestForShare {
		return 0, false
	}
	return float64(target) / float64(all), true
}

// Warning codes of a preview.
const (
	warnStartWillReject  = "START_WILL_REJECT"
	warnFirstStepAtSeed  = "FIRST_STEP_AT_SEED"
	warnBelowSourceMin   = "FINAL_BELOW_SOURCE_MIN"
	warnCapacityShort    = "CAPACITY_SHORT"
	warnSourceHeld       = "SOURCE_HELD"
	warnBreakerKeepsSeed = "BREAKER_KEEPS_SEED"
)

func (s *Server) viewPreview(spec rollout.Spec, p engine.Preview) api.Preview {
	j, plan := p.Journey, planning.NewJourney(spec, planning.Known{Basis: &p.Basis}, s.Engine.Timings)
	out := api.Preview{
		Spec:           wire.FilledToAPI(spec, j, s.Engine.Timings),
		SourceReplicas: p.Basis.SourceReplicas, TargetReplicas: p.Basis.TargetReplicas,
		TargetMinReplicas: p.Basis.TargetBounds.Min, TargetMaxReplicas: p.Basis.TargetBounds.Max,
		LandingMinReplicas: &j.LandingMin, LandingMaxReplicas: &j.LandingMax, FrozenPair: p.Basis.Frozen(),
		Warnings: []api.Warning{},
		Sluice: &api.PreviewExtra{
			Ladder: wire.LadderToAPI(j), Soak: api.Duration(j.Soak), AskedSoak: api.Duration(j.AskedSoak), PeakReplicas: p.PeakBoth,
			Feasible: p.Free < 0 || p.Extra <= p.Free, Timings: wire.TimingsToAPI(s.Engine.Timings),
			SourceRequestsPerSecond: p.SourceRate.PerSecond, TargetRequestsPerSecond: p.TargetRate.PerSecond, ColdStart: api.Duration(p.ColdStart),
			LeastTime: api.Duration(plan.Totals.LeastDuration), TimeWithColdStarts: api.Duration(plan.WithColdStarts(p.ColdStart)),
		},
	}
	if p.Basis.Frozen() {
		out.EstimatedSeedPercent = &p.Basis.Seed
	}
	if len(spec.Steps) == 0 {
		for _, r := range j.Rungs {
			out.EstimatedEffectiveSteps = append(out.EstimatedEffectiveSteps, api.CanaryStep{Traffic: r.Percent, Replicas: &r.Target})
		}
	}
	warn := func(code, format string, args ...any) {
		out.Warnings = append(out.Warnings, api.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if p.FirstSeed {
		warn(warnFirstStepAtSeed, "the first step is at the target's standing share of %d %%; the start may be refused", p.Basis.Seed)
	}
	if p.Refusal != nil {
		warn(warnStartWillReject, "a start would be refused now: %s", p.Refusal.Message)
	}
	if p.Basis.TargetBounds.Stopped() && j.FinalTarget < p.Basis.SourceBounds.Min {
		warn(warnBelowSourceMin, "the target lands at %s, below the source's minimum of %d", planning.Count(j.FinalTarget, "replica"), p.Basis.SourceBounds.Min)
	}
	if spec.HoldsSource() {
		warn(warnSourceHeld, "the source keeps its %s until the last gate has passed: %d of both sides at the peak, %d more than without", planning.Count(j.Source, "replica"), p.PeakBoth, p.PeakBoth-p.PeakPlain)
	}
	if spec.Breaker != nil && p.Basis.Frozen() {
		warn(warnBreakerKeepsSeed, "the target carries %d %% of the pair already: a trip of the circuit breaker goes back to that, and not to 0", p.Basis.Seed)
	}
	if !out.Sluice.Feasible {
		out.Sluice.Shortfall = fmt.Sprintf("the journey's peak needs %s of %s and %d fit", planning.Count(p.Extra, "more replica"), p.Hardware.ID, p.Free)
		warn(warnCapacityShort, "%s; the rollout would park CAPACITY_EXHAUSTED before anything moves", out.Sluice.Shortfall)
	}
	for _, f := range planning.Traffic(spec, plan.Percents(), s.Engine.Timings, p.SourceRate.PerSecond+p.TargetRate.PerSecond) {
		warn(string(f.Code), "%s; %s", f.Message, f.Remedy)
	}
	return out
}
