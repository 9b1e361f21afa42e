package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// addHeld reports that an endpoint is held by a rollout, naming it.
func addHeld(ctx context.Context, e *engine, diags *diag.Diagnostics, tried, endpoint string) {
	r, found, err := e.client.ActiveRollout(ctx, endpoint)
	if err != nil {
		addRefusal(diags, tried, err)
		return
	}
	if !found {
		diags.AddError("Cannot "+tried, "A rollout held the endpoint a moment ago and is over now. Try again.")
		return
	}
	diags.AddError("Cannot "+tried, heldBy(endpoint, r)+" Nothing was changed. Let it end, or cancel it: "+render.DefaultCommand(render.Cancel, endpoint, r.ID))
}

// heldBy names the rollout that holds an endpoint's slot and the lock of its split.
func heldBy(endpoint string, r api.Rollout) string {
	percent := 0
	if r.CurrentTrafficPercent != nil {
		percent = *r.CurrentTrafficPercent
	}
	return fmt.Sprintf("Endpoint %s is held by rollout %s (%s, %s → %s, %d%% on the target).",
		endpoint, r.ID, engineclient.Short(r.State), r.SourceDeploymentID, r.TargetDeploymentID, percent)
}
