package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var (
	_ datasource.DataSourceWithConfigure      = (*eventsDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*eventsDataSource)(nil)
)

func newEventsDataSource() datasource.DataSource { return &eventsDataSource{} }

type eventsDataSource struct{ reader }

type eventsModel struct {
	EndpointID    types.String `tfsdk:"endpoint_id"`
	Types         types.List   `tfsdk:"types"`
	SubjectID     types.String `tfsdk:"subject_id"`
	DeploymentIDs types.List   `tfsdk:"deployment_ids"`
	Since         types.String `tfsdk:"since"`
	Until         types.String `tfsdk:"until"`
	MinLevel      types.String `tfsdk:"min_level"`
	Limit         types.Int64  `tfsdk:"limit"`
	Events        []eventEntry `tfsdk:"events"`
}

type eventEntry struct {
	ID                types.String   `tfsdk:"id"`
	CreatedAt         types.String   `tfsdk:"created_at"`
	Type              types.String   `tfsdk:"type"`
	Level             types.String   `tfsdk:"level"`
	SubjectID         types.String   `tfsdk:"subject_id"`
	DeploymentID      types.String   `tfsdk:"deployment_id"`
	Message           types.String   `tfsdk:"message"`
	Actor             types.String   `tfsdk:"actor"`
	Reason            types.String   `tfsdk:"reason"`
	Step              types.Int64    `tfsdk:"step"`
	Paths             []types.String `tfsdk:"paths"`
	OldTrafficPercent types.Int64    `tfsdk:"old_traffic_percent"`
	NewTrafficPercent types.Int64    `tfsdk:"new_traffic_percent"`
	OldReplicas       types.Int64    `tfsdk:"old_replicas"`
	NewReplicas       types.Int64    `tfsdk:"new_replicas"`
}

const defaultEvents = 100

// Metadata names the data source.
func (d *eventsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_events"
}

// Schema describes a piece of an endpoint's feed.
func (d *eventsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	names := []validator.List{listvalidator.SizeBetween(1, 200)}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What happened on an endpoint, newest first: who moved traffic when, and why a rollout was parked. Filters given must all hold. " +
			"Calls to the engine: one, or more where its pages are shorter than `limit`.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id":    schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint whose feed is read."},
			"types":          schema.ListAttribute{Optional: true, ElementType: types.StringType, Validators: names, MarkdownDescription: "Only events of these types, for example `[\"rollout.traffic_shifted\", \"endpoint.updated\"]`."},
			"subject_id":     schema.StringAttribute{Optional: true, MarkdownDescription: "Only events about this rollout."},
			"deployment_ids": schema.ListAttribute{Optional: true, ElementType: types.StringType, Validators: names, MarkdownDescription: "Only events about these deployments."},
			"since":          schema.StringAttribute{Optional: true, MarkdownDescription: "Only events from this instant on, RFC 3339."},
			"until":          schema.StringAttribute{Optional: true, MarkdownDescription: "Only events before this instant, RFC 3339."},
			"min_level": schema.StringAttribute{Optional: true, Validators: []validator.String{stringvalidator.OneOf("DEBUG", "INFO", "WARN", "ERROR")},
				MarkdownDescription: "Only events of this level or above: `DEBUG`, `INFO`, `WARN` or `ERROR`."},
			"limit": schema.Int64Attribute{Optional: true, Validators: []validator.Int64{int64validator.Between(1, api.MaxEventsPage)},
				MarkdownDescription: fmt.Sprintf("Most events to read, 1 to %d; default %d.", api.MaxEventsPage, defaultEvents)},
			"events": givenList("The events, newest first; empty when none passes.", map[string]schema.Attribute{
				"id":                  given("Event."),
				"created_at":          given("When, RFC 3339."),
				"type":                given("What, for example `rollout.traffic_shifted`."),
				"level":               given("`DEBUG`, `INFO`, `WARN` or `ERROR`."),
				"subject_id":          given("The rollout that it is about; null when it is about none."),
				"deployment_id":       given("The deployment that it is about; null when it is about none."),
				"message":             given("In words; null when there are none."),
				"actor":               given("The key that asked, by its name; null when nobody did or the engine does not tell."),
				"reason":              given("The reason that was given; null when none was."),
				"step":                givenInt("Step, from 1; null when it is about none or the engine does not tell."),
				"paths":               schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Fields that an edit changed; null when it was none."},
				"old_traffic_percent": givenInt("Percent before; null when none changed."),
				"new_traffic_percent": givenInt("Percent after; null when none changed."),
				"old_replicas":        givenInt("Replicas before; null when none changed."),
				"new_replicas":        givenInt("Replicas after; null when none changed."),
			}),
		},
	}
}

// ValidateConfig refuses instants that are none.
func (d *eventsDataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var m eventsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	for name, v := range map[string]types.String{"since": m.Since, "until": m.Until} {
		if v.IsNull() || v.IsUnknown() {
			continue
		}
		if _, err := time.Parse(time.RFC3339, v.ValueString()); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root(name), "Not an instant", fmt.Sprintf("%q is not an RFC 3339 time such as 2026-09-16T20:39:45Z.", v.ValueString()))
		}
	}
}

// Read looks once.
func (d *eventsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m eventsModel
	if !d.ready(ctx, req, &m, &resp.Diagnostics) {
		return
	}
	limit := defaultEvents
	if !m.Limit.IsNull() {
		limit = int(m.Limit.ValueInt64())
	}
	q := engineclient.EventQuery{SubjectID: m.SubjectID.ValueString(), PageSize: limit}
	resp.Diagnostics.Append(m.Types.ElementsAs(ctx, &q.Types, false)...)
	resp.Diagnostics.Append(m.DeploymentIDs.ElementsAs(ctx, &q.DeploymentIDs, false)...)
	q.Since, _ = time.Parse(time.RFC3339, m.Since.ValueString())
	q.Until, _ = time.Parse(time.RFC3339, m.Until.ValueString())
	if !m.MinLevel.IsNull() {
		q.MinLevel = api.PrefixLevel + m.MinLevel.ValueString()
	}
	if resp.Diagnostics.HasError() {
		return
	}
	m.Events = []eventEntry{}
	for ev, err := range d.engine.client.Events(ctx, m.EndpointID.ValueString(), q) {
		if err != nil {
			addRefusal(&resp.Diagnostics, "read the events of endpoint "+m.EndpointID.ValueString(), err)
			return
		}
		if m.Events = append(m.Events, eventOf(ev)); len(m.Events) == limit {
			break
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func eventOf(ev api.Event) eventEntry {
	out := eventEntry{
		ID: types.StringValue(ev.ID), CreatedAt: instant(&ev.CreatedAt), Type: types.StringValue(ev.Type), Level: types.StringValue(shortEnum(api.PrefixLevel, ev.Level)),
		SubjectID: optionalString(ev.SubjectID), DeploymentID: optionalString(ev.DeploymentID), Message: optionalString(ev.Message), Reason: optionalString(ev.Reason),
		OldTrafficPercent: optionalInt(ev.OldTrafficPercent), NewTrafficPercent: optionalInt(ev.NewTrafficPercent),
		OldReplicas: optionalInt(ev.OldReplicas), NewReplicas: optionalInt(ev.NewReplicas),
	}
	for _, p := range ev.Paths {
		out.Paths = append(out.Paths, types.StringValue(p))
	}
	if x := ev.Sluice; x != nil {
		out.Actor = optionalString(x.Actor)
		if x.Step != nil {
			out.Step = types.Int64Value(int64(*x.Step) + 1)
		}
	}
	return out
}
