package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var _ datasource.DataSourceWithConfigure = (*rolloutsDataSource)(nil)

func newRolloutsDataSource() datasource.DataSource { return &rolloutsDataSource{} }

type rolloutsDataSource struct{ reader }

type rolloutsModel struct {
	rolloutFilters
	Rollouts []rolloutLine `tfsdk:"rollouts"`
}

type rolloutLine struct {
	EndpointID            types.String `tfsdk:"endpoint_id"`
	ID                    types.String `tfsdk:"id"`
	SourceDeploymentID    types.String `tfsdk:"source_deployment_id"`
	TargetDeploymentID    types.String `tfsdk:"target_deployment_id"`
	Strategy              types.String `tfsdk:"strategy"`
	State                 types.String `tfsdk:"state"`
	Category              types.String `tfsdk:"category"`
	CurrentStep           types.Int64  `tfsdk:"current_step"`
	CurrentTrafficPercent types.Int64  `tfsdk:"current_traffic_percent"`
	CreatedAt             types.String `tfsdk:"created_at"`
	CompletedAt           types.String `tfsdk:"completed_at"`
}

// Metadata names the data source.
func (d *rolloutsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollouts"
}

// Schema describes the rollouts of one endpoint, or of all.
func (d *rolloutsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The rollouts of an endpoint, or of all endpoints of the project, that pass all filters given. " +
			"Calls to the engine: one for each 50 rollouts of an endpoint, at least one an endpoint; without `endpoint_id` also one for each 500 endpoints.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id": schema.StringAttribute{Optional: true, MarkdownDescription: filterEndpointText},
			"states": schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: filterStatesText,
				Validators: []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(stringvalidator.OneOf(stateNames()...))}},
			"active":               schema.BoolAttribute{Optional: true, MarkdownDescription: filterActiveText},
			"target_deployment_id": schema.StringAttribute{Optional: true, MarkdownDescription: filterTargetText},
			"rollouts": givenList("The rollouts, newest first in each endpoint; empty when none passes.", map[string]schema.Attribute{
				"endpoint_id":             given("Endpoint."),
				"id":                      given("Rollout id, `rol_…`."),
				"source_deployment_id":    given("Where traffic comes from."),
				"target_deployment_id":    given("Where it goes."),
				"strategy":                given("`CANARY`, `BLUE_GREEN` or `ROLLING`."),
				"state":                   given("Its state."),
				"category":                given("Why the engine parked it; null when it did not."),
				"current_step":            givenInt("Step under way or reached last, from 1; null before the start."),
				"current_traffic_percent": givenInt("Percent of the pair on the target; null before the start."),
				"created_at":              given("When it was made, RFC 3339."),
				"completed_at":            given("When it was over, RFC 3339; null when it is not."),
			}),
		},
	}
}

// Read looks once.
func (d *rolloutsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m rolloutsModel
	if !d.ready(ctx, req, &m, &resp.Diagnostics) {
		return
	}
	m.Rollouts = []rolloutLine{}
	for r, err := range d.engine.rollouts(ctx, m.rolloutFilters) {
		if err != nil {
			addRefusal(&resp.Diagnostics, "list the rollouts", err)
			return
		}
		m.Rollouts = append(m.Rollouts, lineOf(r))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func lineOf(r api.Rollout) rolloutLine {
	l := rolloutLine{
		EndpointID: types.StringValue(r.EndpointID), ID: types.StringValue(r.ID), SourceDeploymentID: types.StringValue(r.SourceDeploymentID),
		TargetDeploymentID: types.StringValue(r.TargetDeploymentID), Strategy: types.StringValue(shortEnum(api.PrefixStrategy, r.Strategy)),
		State: types.StringValue(engineclient.Short(r.State)), CurrentTrafficPercent: optionalInt(r.CurrentTrafficPercent),
		CreatedAt: instant(&r.CreatedAt), CompletedAt: instant(r.CompletedAt),
	}
	if r.CurrentStep != nil {
		l.CurrentStep = types.Int64Value(int64(*r.CurrentStep) + 1)
	}
	if c := r.Status.Condition; c != nil {
		l.Category = optionalString(shortEnum(api.PrefixCategory, c.Category))
	}
	return l
}
