package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ModifyPlan keeps a write-once weight at what was written.
func (r *deploymentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.State.Raw.IsNull() {
		return
	}
	var plan, state deploymentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !plan.sameDeployment(state) {
		return // a replacement is a create: its weight is its own
	}
	keepWeight(ctx, req, resp, plan, state)
}

// keepWeight plans the weight that the state has, whatever the configuration says
// by now. That is allowed for a value which is given and, since the attribute is
// computed too, for one which is not; a state without one takes what is planned.
func keepWeight(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan, state deploymentModel) {
	var asked types.Float64
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("initial_traffic_weight"), &asked)...)
	written := state.InitialTrafficWeight
	if written.IsNull() || plan.InitialTrafficWeight.Equal(written) || resp.Diagnostics.HasError() {
		return
	}
	if !asked.IsNull() && !asked.IsUnknown() {
		resp.Diagnostics.AddAttributeWarning(path.Root("initial_traffic_weight"), "Written once",
			"The weight was set when the deployment was made and is not changed afterwards. Move traffic with a sluice_rollout.")
	}
	plan.InitialTrafficWeight = written
	if plan.wanted(state) {
		plan.Status, plan.LiveMinReplicas, plan.LiveMaxReplicas, plan.ReadyReplicas = state.Status, state.LiveMinReplicas, state.LiveMaxReplicas, state.ReadyReplicas
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// sameDeployment reports whether a plan is for the deployment in the state.
func (m deploymentModel) sameDeployment(state deploymentModel) bool {
	return m.EndpointID.Equal(state.EndpointID) && m.Name.Equal(state.Name) && m.Model.Equal(state.Model) && m.Config.Equal(state.Config)
}

// wanted reports whether a plan asks for nothing that the state does not have.
func (m deploymentModel) wanted(state deploymentModel) bool {
	return m.Autoscaling.Equal(state.Autoscaling) && m.WaitReady.Equal(state.WaitReady) && m.Timeouts.Equal(state.Timeouts)
}
