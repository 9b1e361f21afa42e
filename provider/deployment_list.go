package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

var _ list.ListResourceWithConfigure = (*deploymentList)(nil)

func newDeploymentList() list.ListResource { return &deploymentList{} }

// deploymentList finds deployments for terraform query.
type deploymentList struct{ deploymentResource }

type deploymentFilters struct {
	EndpointID types.String `tfsdk:"endpoint_id"`
	Model      types.String `tfsdk:"model"`
	Status     types.String `tfsdk:"status"`
}

// ListResourceConfigSchema describes the filters.
func (l *deploymentList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Finds deployments, for `terraform query`. Two calls to the engine for each endpoint that is looked at, and one for the list of endpoints when none is named.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id": schema.StringAttribute{Optional: true, MarkdownDescription: "Only deployments of this endpoint; all endpoints of the project when left out."},
			"model":       schema.StringAttribute{Optional: true, MarkdownDescription: "Only deployments that serve this model, for example `demo/qwen2.5-7b`."},
			"status":      schema.StringAttribute{Optional: true, MarkdownDescription: "Only deployments in this state, for example `READY`."},
		},
	}
}

// List walks the deployments, endpoint by endpoint.
func (l *deploymentList) List(ctx context.Context, req list.ListRequest, to *list.ListResultsStream) {
	var f deploymentFilters
	if !listing(ctx, l.engine, req, &f, to) {
		return
	}
	to.Results = stream(ctx, l.engine, req, "list the deployments", func(yield func(found, error) bool) {
		for endpoint, err := range l.engine.endpointsIn(ctx, f.EndpointID) {
			if err != nil {
				yield(found{}, err)
				return
			}
			if !l.of(ctx, endpoint, req, f, yield) {
				return
			}
		}
	})
}

// of yields one endpoint's deployments; it reports whether to go on.
func (l *deploymentList) of(ctx context.Context, endpoint string, req list.ListRequest, f deploymentFilters, yield func(found, error) bool) bool {
	e, err := l.engine.client.GetEndpoint(ctx, endpoint)
	if err != nil {
		return yield(found{}, err) && false
	}
	for d, err := range l.engine.client.Deployments(ctx, endpoint, engineclient.ListOptions{PageSize: api.MaxPageSize}) {
		if err != nil {
			return yield(found{}, err) && false
		}
		var m deploymentModel
		blank(ctx, req, &m)
		m.EndpointID, m.WaitReady = types.StringValue(endpoint), types.BoolValue(true)
		m.apply(d)
		m.InitialTrafficWeight = types.Float64Value(planning.WeightIn(e.TrafficSplit, d.ID))
		if !f.Model.IsNull() && !f.Model.Equal(m.Model) || !f.Status.IsNull() && !f.Status.Equal(m.Status) {
			continue
		}
		if !yield(found{name: d.Name, ids: m.ids(), model: &m}, nil) {
			return false
		}
	}
	return true
}
