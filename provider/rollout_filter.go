package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// rolloutFilters narrow the rollouts of one endpoint or of all. They are applied
// here and not by the engine: a hosted one leaves paused rollouts out of its own
// filter of active ones.
type rolloutFilters struct {
	EndpointID         types.String `tfsdk:"endpoint_id"`
	States             types.List   `tfsdk:"states"`
	Active             types.Bool   `tfsdk:"active"`
	TargetDeploymentID types.String `tfsdk:"target_deployment_id"`
}

const (
	filterEndpointText = "Only rollouts of this endpoint; all endpoints of the project when left out."
	filterStatesText   = "Only rollouts in one of these states, for example `[\"PAUSED\", \"SYSTEM_PAUSED\"]`."
	filterActiveText   = "`true`: only rollouts that are not over; `false`: only those that are."
	filterTargetText   = "Only rollouts to this deployment."
)

// stateNames are the states of a rollout in the words of HCL.
func stateNames() []string {
	names := make([]string, 0, len(rollout.States()))
	for _, s := range rollout.States() {
		names = append(names, string(s))
	}
	return names
}

// keeps reports whether a rollout passes.
func (f rolloutFilters) keeps(r api.Rollout) bool {
	if !f.Active.IsNull() && f.Active.ValueBool() == engineclient.Terminal(r.State) {
		return false
	}
	if !f.TargetDeploymentID.IsNull() && f.TargetDeploymentID.ValueString() != r.TargetDeploymentID {
		return false
	}
	state := types.StringValue(engineclient.Short(r.State))
	return f.States.IsNull() || slices.ContainsFunc(f.States.Elements(), state.Equal)
}

// rollouts walks the rollouts that pass, endpoint by endpoint, newest first in each.
func (e *engine) rollouts(ctx context.Context, f rolloutFilters) func(yield func(api.Rollout, error) bool) {
	return func(yield func(api.Rollout, error) bool) {
		for endpoint, err := range e.endpointsIn(ctx, f.EndpointID) {
			if err != nil {
				yield(api.Rollout{}, err)
				return
			}
			for r, err := range e.client.Rollouts(ctx, endpoint, "") {
				if err != nil {
					yield(api.Rollout{}, err)
					return
				}
				if r.EndpointID = orElse(r.EndpointID, endpoint); f.keeps(r) && !yield(r, nil) {
					return
				}
			}
		}
	}
}
