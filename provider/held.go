package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
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
	diags.AddError("Cannot "+tried, planning.HeldBy(endpoint, r)+" Nothing was changed. Let it end, or cancel it: "+render.DefaultCommand(render.Cancel, endpoint, r.ID))
}
