package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// keep plans for the rollout that is in the state: its spec as it is spelled there,
// and what the apply does with it while it is not over: steer it, or wait on.
func (p *rolloutPlanner) keep(ctx context.Context) {
	s := p.state
	p.plan.specModel = s.specModel
	p.plan.ID, p.plan.InEffect, p.plan.SpecDigest = s.ID, s.InEffect, s.SpecDigest
	p.plan.Journey, p.plan.Facts, p.plan.Findings, p.plan.Summary = s.Journey, s.Facts, s.Findings, s.Summary
	p.plan.Drift = s.Drift
	p.plan.State, p.plan.Condition = s.State, s.Condition
	p.plan.CurrentTrafficPercent, p.plan.CurrentStep = s.CurrentTrafficPercent, s.CurrentStep
	if s.DestroyBehavior.ValueString() != destroyCancel {
		p.engine.seen.keep(s.ID.ValueString())
	}
	state := rollout.State(s.State.ValueString())
	if p.plan.DesiredState.IsUnknown() || p.plan.ResumeToken.IsUnknown() {
		if !state.Terminal() {
			p.goesOn(ctx)
		}
		return
	}
	what, refused := steer(*s, p.plan)
	if refused != "" {
		p.refuse(state, refused)
		return
	}
	switch {
	case state == rollout.Canceled && p.plan.DesiredState.ValueString() != wantCanceled:
		p.resp.Diagnostics.AddWarning(fmt.Sprintf("Rollout %s was CANCELED and is not started again by itself", s.ID.ValueString()),
			fmt.Sprintf("Somebody decided against this spec; the split is frozen with %d%% on the target: live is ahead of the configuration. To accept that: desired_state = \"canceled\", with a reason. To go another way change the spec. To start the same one again on purpose: terraform apply -replace=ADDRESS", s.CurrentTrafficPercent.ValueInt64()))
	case state == rollout.Completed:
		p.ahead(ctx)
	case what == justWait && p.plan.Wait.ValueBool() && !state.Terminal():
		p.goesOn(ctx)
	case what != justWait && what != nothing:
		p.goesOn(ctx)
		p.resp.Diagnostics.AddWarning(what.tell(*s))
	case isTrue(s.Drift, "detected"):
		p.goesOn(ctx) // so that the plan is not empty and somebody looks
	}
}

// ahead tells when a later rollout has taken back what a completed one did: live is
// ahead of the configuration then, and no plan moves it forward again by itself.
func (p *rolloutPlanner) ahead(ctx context.Context) {
	if p.engine.client == nil {
		return
	}
	endpoint, source, target := p.state.EndpointID.ValueString(), p.state.SourceDeploymentID.ValueString(), p.state.TargetDeploymentID.ValueString()
	ep, err := p.engine.seen.endpoint(ctx, p.engine.client, endpoint)
	if err != nil || planning.WeightIn(ep.TrafficSplit, target) > 0 || planning.WeightIn(ep.TrafficSplit, source) <= 0 {
		return
	}
	for r, err := range p.engine.client.EveryRollout(ctx, endpoint) { // the newest first
		if err != nil || r.ID == p.state.ID.ValueString() {
			return
		}
		if r.State == engineclient.StateCompleted && r.SourceDeploymentID == target && r.TargetDeploymentID == source {
			p.resp.Diagnostics.AddWarning("Live is ahead of the configuration: rollout "+r.ID+" moved the traffic back",
				fmt.Sprintf("%s serves again, and %s has no traffic. This rollout was before it and is not run again by itself. To accept that give its block count = 0, or delete it: only its record goes, the split stays. To move forward again change the spec, or on purpose: terraform apply -replace=ADDRESS", source, target))
			return
		}
	}
}

// refuse reports what the state does not allow. A canceled rollout whose
// desired_state was merely taken out is no mistake: the warning about it is enough.
func (p *rolloutPlanner) refuse(state rollout.State, why string) {
	if state == rollout.Canceled && p.named.IsNull() && p.plan.ResumeToken.Equal(p.state.ResumeToken) {
		p.resp.Diagnostics.AddWarning(fmt.Sprintf("Rollout %s was CANCELED and is not started again by itself", p.state.ID.ValueString()), why)
		return
	}
	p.resp.Diagnostics.AddAttributeError(path.Root("desired_state"), fmt.Sprintf("Rollout %s cannot be steered to that", p.state.ID.ValueString()), why)
}

// startsNew refuses a desired_state that a new rollout cannot have.
func (p *rolloutPlanner) startsNew() {
	if want := p.plan.DesiredState; !want.IsUnknown() && !want.IsNull() && want.ValueString() != wantCompleted {
		p.resp.Diagnostics.AddAttributeError(path.Root("desired_state"), "A new rollout starts with desired_state = \"completed\"",
			fmt.Sprintf("This plan makes a new rollout, and %q steers one that is under way. Take it out; what it did to an earlier rollout stays done.", want.ValueString()))
	}
}

// goesOn plans an apply that waits: what it will find is not known yet, and how long
// it waits is.
func (p *rolloutPlanner) goesOn(ctx context.Context) {
	p.plan.State = types.StringUnknown()
	p.plan.Condition = types.ObjectUnknown(conditionType.AttrTypes)
	p.plan.CurrentTrafficPercent, p.plan.CurrentStep = types.Int64Unknown(), types.Int64Unknown()
	p.plan.Drift = types.ObjectUnknown(driftType.AttrTypes)
	if p.plan.Wait.ValueBool() {
		p.retime(ctx)
	}
}

// retime writes how long an update waits into the facts, and the finding when that is
// too short into the findings, since the state's are those of the create.
func (p *rolloutPlanner) retime(ctx context.Context) {
	if p.plan.Facts.IsNull() || p.plan.Facts.IsUnknown() || p.plan.Timeouts.IsUnknown() {
		return
	}
	facts := p.plan.Facts.Attributes()
	known, ok := facts["least_duration_seconds"].(types.Float64)
	if !ok {
		return
	}
	least := time.Duration(known.ValueFloat64() * float64(time.Second))
	asked, _ := p.plan.Timeouts.Update(ctx, 0)
	limit := asked
	if limit <= 0 {
		limit = planning.DefaultWait(least)
	}
	facts["wait_limit_seconds"] = seconds(limit)
	p.plan.Facts = types.ObjectValueMust(factsType.AttrTypes, facts)
	found := slices.DeleteFunc(p.plan.Findings.Elements(), func(f attr.Value) bool {
		o, ok := f.(types.Object)
		return ok && o.Attributes()["code"].Equal(types.StringValue(string(planning.TimeoutShort)))
	})
	if f, short := planning.ShortTimeout(least, asked); short {
		found = append(found, findingValue(f, f.Subject))
		p.resp.Diagnostics.AddAttributeWarning(path.Root("timeouts"), string(f.Code)+": "+f.Message, sentence(f.Remedy))
	}
	p.plan.Findings = types.ListValueMust(findingType, found)
}
