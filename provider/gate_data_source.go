package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var _ datasource.DataSourceWithConfigure = (*gateDataSource)(nil)

func newGateDataSource() datasource.DataSource { return &gateDataSource{} }

type gateDataSource struct{ engine *engine }

type gateModel struct {
	EndpointID     types.String `tfsdk:"endpoint_id"`
	RolloutID      types.String `tfsdk:"rollout_id"`
	Want           types.List   `tfsdk:"want"`
	State          types.String `tfsdk:"state"`
	TrafficPercent types.Int64  `tfsdk:"traffic_percent"`
	Category       types.String `tfsdk:"category"`
}

// Metadata names the data source.
func (d *gateDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollout_gate"
}

// Schema describes a gate.
func (d *gateDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	names := make([]string, 0, len(rollout.States()))
	for _, s := range rollout.States() {
		names = append(names, string(s))
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Fails the run when a rollout did not reach a wanted state, without tainting anything. Give it `depends_on` the rollout, so that it is read after the apply has waited.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id": schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint of the rollout."},
			"rollout_id":  schema.StringAttribute{Required: true, MarkdownDescription: "Rollout to look at."},
			"want": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(stringvalidator.OneOf(names...))},
				MarkdownDescription: "States that let the run go on; default `[\"COMPLETED\"]`.",
			},
			"state":           schema.StringAttribute{Computed: true, MarkdownDescription: "State found."},
			"traffic_percent": schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the pair on the target."},
			"category":        schema.StringAttribute{Computed: true, MarkdownDescription: "Why it is parked, if the engine parked it."},
		},
	}
}

// Configure takes the client.
func (d *gateDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	d.engine = e
}

// Read looks once and does not wait: waiting is the resource's.
func (d *gateDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m gateModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	wanted := []string{string(rollout.Completed)}
	if !m.Want.IsNull() {
		resp.Diagnostics.Append(m.Want.ElementsAs(ctx, &wanted, false)...)
	}
	r, err := d.engine.client.GetRollout(ctx, m.EndpointID.ValueString(), m.RolloutID.ValueString())
	if err != nil {
		addRefusal(&resp.Diagnostics, "read rollout "+m.RolloutID.ValueString(), err)
		return
	}
	state := engineclient.Short(r.State)
	if !slices.Contains(wanted, state) {
		detail := fmt.Sprintf("Wanted %s, found %s with %d%% on the target.", strings.Join(wanted, " or "), state, percentOf(r))
		if park := render.ParkOf(r, render.Options{}); park.Category != "" {
			detail += "\n\n" + park.Text()
		}
		resp.Diagnostics.AddError(fmt.Sprintf("Rollout %s is %s", r.ID, state), detail)
		return
	}
	m.State, m.TrafficPercent, m.Category = types.StringValue(state), types.Int64Value(int64(percentOf(r))), types.StringNull()
	if c := r.Status.Condition; c != nil {
		m.Category = optionalString(shortEnum(api.PrefixCategory, c.Category))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
