package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var _ list.ListResourceWithConfigure = (*rolloutList)(nil)

func newRolloutList() list.ListResource { return &rolloutList{} }

// rolloutList finds rollouts for terraform query.
type rolloutList struct{ rolloutResource }

// ListResourceConfigSchema describes the filters.
func (l *rolloutList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Finds rollouts, for `terraform query`: what runs, what is parked, what there was. One call to the engine for each 50 rollouts of an endpoint, and one for the list of endpoints when none is named.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id": schema.StringAttribute{Optional: true, MarkdownDescription: filterEndpointText},
			"states": schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: filterStatesText,
				Validators: []validator.List{listvalidator.ValueStringsAre(stringvalidator.OneOf(stateNames()...))}},
			"active":               schema.BoolAttribute{Optional: true, MarkdownDescription: filterActiveText},
			"target_deployment_id": schema.StringAttribute{Optional: true, MarkdownDescription: filterTargetText},
		},
	}
}

// List walks the rollouts.
func (l *rolloutList) List(ctx context.Context, req list.ListRequest, to *list.ListResultsStream) {
	var f rolloutFilters
	if !listing(ctx, l.engine, req, &f, to) {
		return
	}
	to.Results = stream(ctx, l.engine, req, "list the rollouts", func(yield func(found, error) bool) {
		for r, err := range l.engine.rollouts(ctx, f) {
			if err != nil {
				yield(found{}, err)
				return
			}
			m, err := l.imported(ctx, req, r)
			if !yield(found{name: rolloutName(r), ids: m.ids(), model: &m}, err) {
				return
			}
		}
	})
}

// imported is a rollout as an import would read it.
func (l *rolloutList) imported(ctx context.Context, req list.ListRequest, r api.Rollout) (rolloutModel, error) {
	var m rolloutModel
	blank(ctx, req, &m)
	m.EndpointID, m.ID = types.StringValue(r.EndpointID), types.StringValue(r.ID)
	m.OnParked, m.DestroyBehavior, m.Wait = types.StringValue(parkedWarn), types.StringValue(destroyRefuse), types.BoolValue(true)
	m.OnTimeout, m.DesiredState = types.StringValue(timeoutDetach), types.StringValue(wantCompleted)
	return m, l.engine.takeOver(ctx, &m, r)
}

// rolloutName tells a rollout from the others of its endpoint.
func rolloutName(r api.Rollout) string {
	return r.ID + " " + r.SourceDeploymentID + " → " + r.TargetDeploymentID + " (" + engineclient.Short(r.State) + ")"
}
