package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// ModifyPlan makes the plan the product's face: the journey and findings of a new
// rollout, a resume for one that is not over, a refusal to replace one that is
// under way. It runs twice, at plan and again at apply, and must then say the same:
// nothing that it writes follows a live fact.
func (r *rolloutResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.engine == nil {
		return
	}
	p := &rolloutPlanner{engine: r.engine, resp: resp}
	if !req.State.Raw.IsNull() {
		p.state = &rolloutModel{}
		resp.Diagnostics.Append(req.State.Get(ctx, p.state)...)
	}
	if req.Plan.Raw.IsNull() {
		if !resp.Diagnostics.HasError() && p.state != nil {
			p.destroy()
		}
		return
	}
	var config rolloutModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &p.plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	p.asked = p.plan.specModel
	p.asked.SourceDeploymentID = config.SourceDeploymentID // not the inferred one
	p.named = config.DesiredState
	if p.run(ctx); !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &p.plan)...)
	}
}

// rolloutPlanner carries one plan while it is made. state is nil for a create.
type rolloutPlanner struct {
	engine *engine
	resp   *resource.ModifyPlanResponse
	state  *rolloutModel
	plan   rolloutModel
	asked  specModel
	named  types.String // desired_state as written; null when left out
	said   map[planning.Code]bool
	lead   string // the journey in one line, until a warning has begun with it
}

func (p *rolloutPlanner) run(ctx context.Context) {
	if p.state != nil && sameSpec(p.state.specModel, p.asked) {
		p.keep(ctx)
		return
	}
	p.startsNew()
	if p.state != nil {
		p.replace()
	}
	p.forget()
	if p.engine.client == nil { // the waits are not known without the engine
		return
	}
	t, err := p.engine.timings(ctx)
	if err != nil {
		// A plan without the engine's timings would differ from the one at apply.
		addRefusal(&p.resp.Diagnostics, "plan a rollout", err)
		return
	}
	spec, d, diags := p.asked.check(t)
	p.resp.Diagnostics.Append(diags...)
	if p.resp.Diagnostics.HasError() || !d.shapeKnown() {
		return
	}
	if p.resp.Diagnostics.Append(p.engine.takes(ctx, d.spec)...); p.resp.Diagnostics.HasError() {
		return
	}
	j := planning.NewJourney(spec, planning.Known{Timeout: p.timeout(ctx)}, t)
	p.plan.plan(j)
	if !d.digestKnown() {
		p.plan.SpecDigest = types.StringUnknown()
	}
	p.warn(j)
	if d.digestKnown() && !p.plan.EndpointID.IsUnknown() {
		p.live(ctx, d.spec, j.Digest)
	}
}

// sameSpec reports whether a configuration asks for the rollout in the state,
// however it is spelled. A source that is left out is the one that was inferred.
func sameSpec(state, asked specModel) bool {
	if asked.SourceDeploymentID.IsNull() {
		asked.SourceDeploymentID = state.SourceDeploymentID
	}
	d := asked.decode()
	return asked.EndpointID.Equal(state.EndpointID) && d.digestKnown() &&
		planning.DigestOf(d.spec) == planning.DigestOf(state.decode().spec)
}

// replace asks for another rollout in the place of the one in the state, which must
// be over, or be allowed to be canceled.
func (p *rolloutPlanner) replace() {
	s := p.state
	for name, pair := range map[string][2]attr.Value{
		"endpoint_id":           {p.plan.EndpointID, s.EndpointID},
		"source_deployment_id":  {p.plan.SourceDeploymentID, s.SourceDeploymentID},
		"target_deployment_id":  {p.plan.TargetDeploymentID, s.TargetDeploymentID},
		"canary":                {p.plan.Canary, s.Canary},
		"blue_green":            {p.plan.BlueGreen, s.BlueGreen},
		"rolling":               {p.plan.Rolling, s.Rolling},
		"metrics":               {p.plan.Metrics, s.Metrics},
		"final_source_replicas": {p.plan.FinalSourceReplicas, s.FinalSourceReplicas},
		"final_target_replicas": {p.plan.FinalTargetReplicas, s.FinalTargetReplicas},

		"hold_source_until_complete": {p.plan.HoldSource, s.HoldSource},
		"circuit_breaker":            {p.plan.CircuitBreaker, s.CircuitBreaker},
	} {
		if !pair[0].Equal(pair[1]) {
			p.resp.RequiresReplace = append(p.resp.RequiresReplace, path.Root(name))
		}
	}
	state := rollout.State(s.State.ValueString())
	if state.Terminal() || state == rollout.Pending {
		return
	}
	id, percent := s.ID.ValueString(), s.CurrentTrafficPercent.ValueInt64()
	if s.DestroyBehavior.ValueString() == destroyCancel {
		p.resp.Diagnostics.AddWarning("The spec changed: rollout "+id+" is canceled first",
			fmt.Sprintf("It is %s with %d%% on the target. Its destroy_behavior is \"cancel\", so the apply freezes the split there and starts another rollout from it.", state, percent))
		return
	}
	p.resp.Diagnostics.AddError("The spec changed, but rollout "+id+" is under way",
		fmt.Sprintf("It is %s with %d%% on the target and holds endpoint %s. A rollout is never edited. Put the spec back to wait for it, or let it end, or cancel it and apply again: %s",
			state, percent, s.EndpointID.ValueString(), render.DefaultCommand(render.Cancel, s.EndpointID.ValueString(), id)))
}

// forget makes everything that a new rollout brings unknown.
func (p *rolloutPlanner) forget() {
	if p.asked.SourceDeploymentID.IsNull() {
		p.plan.SourceDeploymentID = types.StringUnknown()
	}
	p.plan.ID, p.plan.State, p.plan.SpecDigest = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	p.plan.Condition, p.plan.InEffect = types.ObjectUnknown(conditionType.AttrTypes), types.ObjectUnknown(inEffectType.AttrTypes)
	p.plan.CurrentTrafficPercent, p.plan.CurrentStep = types.Int64Unknown(), types.Int64Unknown()
	p.plan.Journey, p.plan.Findings = types.ListUnknown(journeyType), types.ListUnknown(findingType)
	p.plan.Facts, p.plan.Summary = types.ObjectUnknown(factsType.AttrTypes), types.StringUnknown()
	p.plan.Drift = types.ObjectUnknown(driftType.AttrTypes)
}

func (p *rolloutPlanner) timeout(ctx context.Context) time.Duration {
	if p.plan.Timeouts.IsNull() || p.plan.Timeouts.IsUnknown() || !p.plan.Wait.ValueBool() {
		return 0
	}
	d, _ := p.plan.Timeouts.Create(ctx, 0)
	return d
}

// warn repeats the findings that call for caution, one warning a code so that
// Terraform does not fold them.
func (p *rolloutPlanner) warn(j planning.Journey) {
	p.said, p.lead = map[planning.Code]bool{}, j.Summary()
	for _, f := range j.Findings {
		if f.Severity != planning.Caution || p.said[f.Code] {
			continue
		}
		p.said[f.Code] = true
		at := attributePath(f.Subject)
		if f.Subject == "strategy" {
			at = p.asked.pathOf("strategy")
		}
		p.resp.Diagnostics.AddAttributeWarning(topLevel(at), string(f.Code)+": "+f.Message, p.led(sentence(f.Remedy)))
	}
}

// led puts the journey's one line before the first warning of a plan: Terraform shows
// warnings last, where a reviewer begins, and the attribute summary far down.
func (p *rolloutPlanner) led(detail string) string {
	if p.lead == "" {
		return detail
	}
	detail, p.lead = sentence(p.lead)+"\n\n"+detail, ""
	return detail
}

// live adds, for the human reader, what the engine thinks of the spec now. Policies
// find the same in the data source sluice_rollout_preview. What the engine would
// refuse whatever happens is an error at its attribute.
func (p *rolloutPlanner) live(ctx context.Context, spec api.RolloutSpec, digest string) {
	endpoint := p.plan.EndpointID.ValueString()
	ep, ok := p.sides(ctx, endpoint, spec)
	if !ok {
		return
	}
	active, found, err := p.engine.client.ActiveRollout(ctx, endpoint)
	if err != nil {
		tflog.Info(ctx, "no live facts for the plan: "+err.Error())
		return
	}
	if found {
		switch {
		case p.state != nil:
		case planning.SameRollout(active, spec, digest) && p.engine.seen.isKept(active.ID):
			p.resp.Diagnostics.AddError("Rollout "+active.ID+" is under way and is not replaced",
				planning.HeldBy(endpoint, active)+" A resource has it in the state already, so this is its replacement, or a second block of the same spec. Leave -replace out, or the second block; to start over let it end, or cancel it first: "+render.DefaultCommand(render.Cancel, endpoint, active.ID)+". With destroy_behavior = \"cancel\", applied first, a replacement cancels it.")
		case planning.SameRollout(active, spec, digest):
			p.resp.Diagnostics.AddWarning("The apply takes over rollout "+active.ID+", which is under way",
				planning.HeldBy(endpoint, active)+" It is of this very spec, so no second one is started.")
		default:
			p.resp.Diagnostics.AddWarning("The endpoint is held by another rollout", planning.HeldBy(endpoint, active)+" The apply is refused before anything is touched while it lasts.")
		}
		return
	}
	if p.state == nil && p.takesIn(ctx, ep, spec, digest) {
		return
	}
	if planning.ServesAlone(ep, spec.TargetDeploymentID) {
		p.resp.Diagnostics.AddAttributeError(path.Root("target_deployment_id"), "Nothing is left to move: the target serves alone",
			fmt.Sprintf("Deployment %s is the only one with a weight in the split of endpoint %s, so the start would be refused. Swap the two sides to move traffic away from it, or remove this rollout from the configuration.", spec.TargetDeploymentID, endpoint))
		return
	}
	if spec.SourceDeploymentID == "" {
		if spec.SourceDeploymentID, err = planning.SourceIn(ep, spec.TargetDeploymentID); err != nil {
			p.resp.Diagnostics.AddAttributeWarning(path.Root("source_deployment_id"), "The source cannot be inferred now", sentence(err.Error()))
			return
		}
		p.tellSource(ctx, endpoint, spec.SourceDeploymentID)
	}
	preview, err := p.engine.client.PreviewRollout(ctx, endpoint, spec)
	if err != nil {
		p.previewRefused(ctx, err)
		return
	}
	for _, w := range preview.Warnings {
		if p.said[planning.Code(w.Code)] {
			continue // a finding says so already
		}
		p.said[planning.Code(w.Code)] = true
		p.resp.Diagnostics.AddWarning(render.Inert(w.Code), p.led(sentence(render.Inert(w.Message))))
	}
}

// takesIn tells that a create will find its rollout over already. It is true also when
// the engine does not tell: the apply asks again.
func (p *rolloutPlanner) takesIn(ctx context.Context, ep api.Endpoint, spec api.RolloutSpec, digest string) bool {
	ended, ok, err := p.engine.endedAs(ctx, ep, spec, digest)
	if err != nil {
		tflog.Info(ctx, "no history for the plan: "+err.Error())
		return true
	}
	switch {
	case !ok:
		return false
	case ended.State == engineclient.StateCanceled:
		p.resp.Diagnostics.AddWarning("This rollout has been canceled, and is not started again",
			fmt.Sprintf("The newest rollout of endpoint %s, %s, is of this very spec and was canceled. That was a decision about this spec, so the apply takes the record in as CANCELED and moves nothing. Change the spec to go another way; to start the same one again on purpose, delete the record (%s) or apply with -replace once it is taken in.", ep.ID, ended.ID, render.DefaultCommand(render.Delete, ep.ID, ended.ID)))
	default:
		p.resp.Diagnostics.AddWarning("This rollout has been made and is COMPLETED",
			fmt.Sprintf("The newest rollout of endpoint %s, %s, is of this very spec, and its target serves alone. An earlier apply made it and was cut off before the state was written: the apply takes it in and moves nothing.", ep.ID, ended.ID))
	}
	return true
}

// sides reads the endpoint and finds both deployments. One that does not exist is an
// error now and not at apply, when other objects have been destroyed already; ok is
// false then, and when the engine does not tell.
func (p *rolloutPlanner) sides(ctx context.Context, endpoint string, spec api.RolloutSpec) (ep api.Endpoint, ok bool) {
	c := p.engine.client
	ep, gone, err := readTwice(ctx, c, func() (api.Endpoint, error) { return c.GetEndpoint(ctx, endpoint) })
	if gone {
		p.resp.Diagnostics.AddAttributeError(path.Root("endpoint_id"), "There is no endpoint "+endpoint, "The engine does not find it in this project. Check the id, or refer to the sluice_endpoint by its address.")
		return ep, false
	}
	if err != nil {
		tflog.Info(ctx, "no live facts for the plan: "+err.Error())
		return ep, false
	}
	ok = true
	for name, id := range map[string]string{"source_deployment_id": spec.SourceDeploymentID, "target_deployment_id": spec.TargetDeploymentID} {
		if id == "" {
			continue
		}
		if _, gone, _ := readTwice(ctx, c, func() (api.Deployment, error) { return c.GetDeployment(ctx, endpoint, id) }); gone {
			p.resp.Diagnostics.AddAttributeError(path.Root(name), "There is no deployment "+id, fmt.Sprintf("%s: %s is not one of endpoint %s. Check the id, or refer to the sluice_deployment by its address.", name, id, endpoint))
			ok = false
		}
	}
	return ep, ok
}

// tellSource names an inferred source. It stays unknown in the plan: somebody may
// move traffic before the apply, which would then be inconsistent with its plan.
func (p *rolloutPlanner) tellSource(ctx context.Context, endpoint, source string) {
	name := source
	if d, err := p.engine.client.GetDeployment(ctx, endpoint, source); err == nil && d.Name != "" {
		name = fmt.Sprintf("%s (%s)", source, d.Name)
	}
	p.resp.Diagnostics.AddAttributeWarning(path.Root("target_deployment_id"), "Inferred source: "+name,
		"It is the one deployment besides the target that serves now, and the apply takes the one that serves then. To fix it give source_deployment_id.")
}

func (p *rolloutPlanner) previewRefused(ctx context.Context, err error) {
	var refused *api.Error
	if errors.As(err, &refused) && refused.Code == api.CodeInvalidArgument {
		addRefusal(&p.resp.Diagnostics, "make this rollout", err)
		return
	}
	tflog.Info(ctx, "no preview for the plan: "+err.Error())
}

// destroy tells what a destroy will do with a rollout that is not over.
func (p *rolloutPlanner) destroy() {
	s := p.state
	state := rollout.State(s.State.ValueString())
	if state.Terminal() || state == rollout.Pending {
		return
	}
	id, percent := s.ID.ValueString(), s.CurrentTrafficPercent.ValueInt64()
	if s.DestroyBehavior.ValueString() == destroyCancel {
		p.resp.Diagnostics.AddWarning("Destroying rollout "+id+" cancels it",
			fmt.Sprintf("It is %s. Its destroy_behavior is \"cancel\": the split freezes at %d/%d (source/target), what serves keeps serving, then the record is deleted.", state, 100-percent, percent))
		return
	}
	p.resp.Diagnostics.AddWarning("Destroying rollout "+id+" will be refused while it is under way",
		fmt.Sprintf("It is %s with %d%% on the target and holds endpoint %s. Let it end, cancel it (%s), or set destroy_behavior = \"cancel\".",
			state, percent, s.EndpointID.ValueString(), render.DefaultCommand(render.Cancel, s.EndpointID.ValueString(), id)))
}
