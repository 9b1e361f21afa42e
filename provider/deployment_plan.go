package provider

import (
	"context"
	"fmt"
	"math"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// ModifyPlan keeps a write-once weight at what was written, refuses to replace a
// deployment that serves or to stop the only one, and tells the share of one that is
// removed or stopped.
// What it asks the engine only becomes errors and warnings, never a planned value.
func (r *deploymentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state deploymentModel
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if !req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	switch {
	case req.State.Raw.IsNull():
		r.checkEndpoint(ctx, plan, resp)
	case req.Plan.Raw.IsNull():
		r.warnOfRemoval(ctx, state, resp)
	case !plan.sameDeployment(state): // a replacement is a create: its weight is its own
		r.refuseReplacing(ctx, plan, state, resp)
	default:
		keepWeight(ctx, req, resp, plan, state)
		r.judgeStop(ctx, plan, state, resp)
	}
}

// checkEndpoint refuses a new deployment of an endpoint that does not exist now, and
// not at apply, when other objects have been destroyed already.
func (r *deploymentResource) checkEndpoint(ctx context.Context, plan deploymentModel, resp *resource.ModifyPlanResponse) {
	if r.engine == nil || r.engine.client == nil || plan.EndpointID.IsUnknown() {
		return
	}
	id := plan.EndpointID.ValueString()
	_, gone, err := readTwice(ctx, r.engine.client, func() (api.Endpoint, error) { return r.engine.client.GetEndpoint(ctx, id) })
	switch {
	case gone:
		resp.Diagnostics.AddAttributeError(path.Root("endpoint_id"), "There is no endpoint "+id, "The engine does not find it in this project. Check the id, or refer to the sluice_endpoint by its address.")
	case err != nil:
		tflog.Info(ctx, "endpoint "+id+" is not checked: "+err.Error())
	}
}

// refuseReplacing is what keeps a changed model from being an outage: Terraform
// would destroy what serves and then make another, which would get all the traffic
// without a gate. Where the endpoint is another one too, the removal is meant.
func (r *deploymentResource) refuseReplacing(ctx context.Context, plan, state deploymentModel, resp *resource.ModifyPlanResponse) {
	if !plan.EndpointID.Equal(state.EndpointID) {
		r.checkEndpoint(ctx, plan, resp)
		r.warnOfRemoval(ctx, state, resp)
		return
	}
	changed := "name"
	switch {
	case !plan.Model.Equal(state.Model):
		changed = "model"
	case !plan.Config.Equal(state.Config):
		changed = "config"
	}
	share, err := r.shareOf(ctx, state.EndpointID.ValueString(), state.ID.ValueString())
	if err != nil {
		addRefusal(&resp.Diagnostics, "tell whether deployment "+state.ID.ValueString()+", which would be replaced, serves", err)
		return
	}
	if share <= 0 {
		return
	}
	resp.Diagnostics.AddAttributeError(path.Root(changed), fmt.Sprintf("Deployment %s serves %s of its endpoint's traffic and is not replaced", state.ID.ValueString(), percentText(share)),
		fmt.Sprintf("Another %s is another deployment: this one would be destroyed before the new one is made, and requests would fail in between. "+
			"Put %s back, add a second sluice_deployment with the new one, and move the traffic with a sluice_rollout; afterwards this one can be removed.", changed, changed))
}

// warnOfRemoval tells what goes with a deployment that serves.
func (r *deploymentResource) warnOfRemoval(ctx context.Context, state deploymentModel, resp *resource.ModifyPlanResponse) {
	if !r.warnOfLock(ctx, state, resp) {
		r.warnOfShare(ctx, state, resp, "Destroying")
	}
}

// warnOfLock names the open rollout that a deployment to be removed is a side of. It is
// no error: the same apply may end the rollout before.
func (r *deploymentResource) warnOfLock(ctx context.Context, state deploymentModel, resp *resource.ModifyPlanResponse) bool {
	if r.engine == nil || r.engine.client == nil {
		return false
	}
	endpoint, id := state.EndpointID.ValueString(), state.ID.ValueString()
	ep, err := r.engine.seen.endpoint(ctx, r.engine.client, endpoint)
	if err != nil || ep.ActiveRolloutID == "" {
		return false
	}
	live, err := r.engine.seen.rollout(ctx, r.engine.client, endpoint, ep.ActiveRolloutID)
	if err != nil || id != live.SourceDeploymentID && id != live.TargetDeploymentID {
		return false
	}
	resp.Diagnostics.AddWarning(fmt.Sprintf("Deployment %s is locked by rollout %s until it ends", id, live.ID),
		planning.HeldBy(endpoint, live)+" Unless this very apply ends it before, the removal is refused and nothing is touched. Once it is over the removal plans by itself.")
	return true
}

// judgeStop looks at bounds that become 0 and 0. A deployment that nothing stands beside
// is not stopped: configuration from before a rollout, applied on a state that was
// imported after it, would take the endpoint down by an update in place.
func (r *deploymentResource) judgeStop(ctx context.Context, plan, state deploymentModel, resp *resource.ModifyPlanResponse) {
	high := wholeAt(plan.Autoscaling, "max_replicas")
	if high.IsUnknown() || high.orZero() > 0 || plan.Autoscaling.Equal(state.Autoscaling) {
		return
	}
	id := state.ID.ValueString()
	share, err := r.shareOf(ctx, state.EndpointID.ValueString(), id)
	if err != nil {
		addRefusal(&resp.Diagnostics, "tell whether deployment "+id+", which would be stopped, serves", err)
		return
	}
	if share < 1 {
		r.warnOfShare(ctx, state, resp, "Stopping")
		return
	}
	resp.Diagnostics.AddAttributeError(path.Root("autoscaling"), "Deployment "+id+" serves all of its endpoint's traffic and is not stopped",
		fmt.Sprintf("Nothing else serves the endpoint: its clients would get errors. Has a rollout moved the traffic here since? Then write what is live: autoscaling = { min_replicas = %d, max_replicas = %d }. "+
			"Otherwise move the traffic away with a sluice_rollout first, or, to take the endpoint down on purpose, give this deployment the weight 0 in a sluice_traffic_split.",
			state.LiveMinReplicas.ValueInt64(), state.LiveMaxReplicas.ValueInt64()))
}

func (r *deploymentResource) warnOfShare(ctx context.Context, state deploymentModel, resp *resource.ModifyPlanResponse, doing string) {
	id := state.ID.ValueString()
	share, err := r.shareOf(ctx, state.EndpointID.ValueString(), id)
	if err != nil {
		tflog.Info(ctx, "the share of deployment "+id+" is not known: "+err.Error())
	}
	if share <= 0 {
		return
	}
	detail := "The endpoint's other deployments take its share over."
	if share >= 1 {
		detail = "Nothing else serves the endpoint: its clients get errors from then on. To keep it served, move the traffic with a sluice_rollout first."
	}
	resp.Diagnostics.AddWarning(fmt.Sprintf("%s deployment %s, which serves %s of its endpoint's traffic", doing, id, percentText(share)), detail)
}

// shareOf is a deployment's share of its endpoint's traffic now, 0 to 1. One that is
// gone has none.
func (r *deploymentResource) shareOf(ctx context.Context, endpoint, id string) (float64, error) {
	if r.engine == nil || r.engine.client == nil {
		return 0, nil
	}
	all, err := engineclient.Collect(r.engine.client.Deployments(ctx, endpoint, engineclient.ListOptions{}))
	if engineclient.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	e, err := r.engine.client.GetEndpoint(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	return planning.ShareIn(e.TrafficSplit, all, id), nil
}

// percentText is a share for people: "100 %", and never "0 %" for one that serves.
func percentText(share float64) string {
	if share < 0.01 {
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", math.Floor(share*100+1e-9))
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
