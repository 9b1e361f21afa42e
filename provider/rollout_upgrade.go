package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var _ resource.ResourceWithUpgradeState = (*rolloutResource)(nil)

// rolloutVersion is the version of a rollout's state. It rises when a state as it was
// written before would plan a change, or cannot be read; a new attribute that only the
// engine fills needs none, since what a state lacks is null and then read. Endpoints and
// deployments are at 0 still.
const rolloutVersion = 1

// UpgradeState reads the states of earlier versions. A state of version 0 may be one
// that was written before desired_state and on_timeout: what they have by default was
// what such a rollout did. Attributes that are gone are dropped. An attribute that gets
// another type needs the schema of version 0 kept here by itself.
func (r *rolloutResource) UpgradeState(ctx context.Context) map[int64]resource.StateUpgrader {
	var now resource.SchemaResponse
	r.Schema(ctx, resource.SchemaRequest{}, &now)
	return map[int64]resource.StateUpgrader{0: {PriorSchema: &now.Schema, StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
		var m rolloutModel
		resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
		if resp.Diagnostics.HasError() {
			return
		}
		if m.DesiredState.IsNull() {
			m.DesiredState = types.StringValue(wantCompleted)
		}
		if m.OnTimeout.IsNull() {
			m.OnTimeout = types.StringValue(timeoutDetach)
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}}}
}
