package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var (
	_ resource.ResourceWithConfigure      = (*rolloutResource)(nil)
	_ resource.ResourceWithImportState    = (*rolloutResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*rolloutResource)(nil)
	_ resource.ResourceWithValidateConfig = (*rolloutResource)(nil)
)

func newRolloutResource() resource.Resource { return &rolloutResource{} }

type rolloutResource struct{ engine *engine }

// Metadata names the resource.
func (r *rolloutResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollout"
}

// Configure takes the client.
func (r *rolloutResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	r.engine = e
}

// ValidateConfig refuses what can never be right, at its attribute, without the
// engine. The engine's shortest window is checked with the plan.
func (r *rolloutResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m rolloutModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.DesiredState.ValueString() == wantCanceled && m.Reason.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("reason"), "A cancel needs a reason", "It stands in the event feed for those who ask later. Give reason beside desired_state = \"canceled\".")
	}
	offline := rollout.DefaultTimings()
	offline.MinimumWindow = 0
	_, _, diags := m.check(offline)
	resp.Diagnostics.Append(diags...)
}

// ImportState takes a rollout over by "endpoint_id/rollout_id", by its id alone, or
// by its identity. The next read fills in its spec as it was asked.
func (r *rolloutResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	in := importInto{engine: r.engine, req: req, resp: resp}
	if !in.pair(ctx, "rollout", r.engine.endpointOfRollout) {
		return
	}
	for name, value := range map[string]any{
		"on_parked": parkedWarn, "on_timeout": timeoutDetach, "destroy_behavior": destroyRefuse, "desired_state": wantCompleted, "wait": true,
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// Read refreshes the state; a rollout whose record is gone for sure leaves it.
func (r *rolloutResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m rolloutModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() || r.engine.client == nil {
		return
	}
	live, gone, err := readTwice(ctx, r.engine.client, func() (api.Rollout, error) {
		return r.engine.seen.rollout(ctx, r.engine.client, m.EndpointID.ValueString(), m.ID.ValueString())
	})
	if gone {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "read rollout "+m.ID.ValueString(), err)
		return
	}
	if err := r.engine.takeOver(ctx, &m, live); err != nil {
		addRefusal(&resp.Diagnostics, "read the engine's timings", err)
		return
	}
	r.engine.lookForDrift(ctx, &m, live, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// takeOver brings a state up to what the engine tells. One that has no spec yet, of
// an import or a list, gets it from there, with the journey that follows.
func (e *engine) takeOver(ctx context.Context, m *rolloutModel, live api.Rollout) error {
	if m.TargetDeploymentID.IsNull() {
		m.fill(specOf(live))
		if live.Sluice != nil && live.Sluice.Digest != "" {
			m.SpecDigest = types.StringValue(live.Sluice.Digest)
		}
	}
	m.apply(live)
	if m.Journey.IsNull() {
		t, err := e.timings(ctx)
		if err != nil {
			return err
		}
		spec, _, _ := m.check(t)
		m.plan(planning.NewJourney(spec, planning.Known{}, t))
	}
	return nil
}

// specOf is a rollout's spec as it was asked. An engine that does not echo it
// leaves the ladder, which its steps tell.
func specOf(r api.Rollout) api.RolloutSpec {
	if r.Sluice != nil && r.Sluice.Spec != nil {
		return *r.Sluice.Spec
	}
	out := api.RolloutSpec{SourceDeploymentID: r.SourceDeploymentID, TargetDeploymentID: r.TargetDeploymentID}
	switch rollout.Strategy(shortEnum(api.PrefixStrategy, r.Strategy)) {
	case rollout.Canary:
		out.Canary = &api.Canary{}
		for _, st := range r.Status.Steps {
			out.Canary.Steps = append(out.Canary.Steps, api.CanaryStep{Traffic: st.TargetTrafficPercent})
		}
	case rollout.BlueGreen:
		out.BlueGreen = &api.BlueGreen{}
	case rollout.Rolling:
		out.Rolling = &api.Rolling{}
	}
	return out
}

// plan writes what follows from the spec alone.
func (m *rolloutModel) plan(j planning.Journey) {
	m.Journey, m.Facts, m.Findings = journeyValue(j), factsValue(j), findingsValue(j)
	m.Summary = types.StringValue(j.Summary())
	if m.SpecDigest.IsNull() || m.SpecDigest.IsUnknown() {
		m.SpecDigest = types.StringValue(j.Digest)
	}
}

// apply takes over what the engine tells. Everything it sets is known afterwards.
func (m *rolloutModel) apply(r api.Rollout) {
	m.ID, m.EndpointID = types.StringValue(r.ID), types.StringValue(orElse(r.EndpointID, m.EndpointID.ValueString()))
	if m.SourceDeploymentID.IsNull() || m.SourceDeploymentID.IsUnknown() {
		m.SourceDeploymentID = types.StringValue(r.SourceDeploymentID)
	}
	m.State = types.StringValue(shortEnum(api.PrefixRolloutState, r.State))
	m.Condition = conditionValue(r.Status.Condition)
	m.CurrentTrafficPercent = types.Int64Value(0)
	if r.CurrentTrafficPercent != nil {
		m.CurrentTrafficPercent = types.Int64Value(int64(*r.CurrentTrafficPercent))
	}
	m.CurrentStep = types.Int64Null()
	if r.CurrentStep != nil {
		m.CurrentStep = types.Int64Value(int64(*r.CurrentStep) + 1)
	}
	m.InEffect = inEffectValue(r)
	m.Drift = toldDrift(r, m.Drift)
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func conditionValue(c *api.Condition) types.Object {
	if c == nil {
		return types.ObjectNull(conditionType.AttrTypes)
	}
	return objectFrom(conditionType, planning.ConditionOf(c))
}

func inEffectValue(r api.Rollout) types.Object {
	told := planning.InEffectOf(r)
	if told == nil {
		return types.ObjectNull(inEffectType.AttrTypes)
	}
	return objectFrom(inEffectType, told)
}
