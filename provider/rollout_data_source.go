package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var _ datasource.DataSourceWithConfigure = (*rolloutDataSource)(nil)

func newRolloutDataSource() datasource.DataSource { return &rolloutDataSource{} }

type rolloutDataSource struct{ reader }

type rolloutDataModel struct {
	EndpointID            types.String  `tfsdk:"endpoint_id"`
	ID                    types.String  `tfsdk:"id"`
	SourceDeploymentID    types.String  `tfsdk:"source_deployment_id"`
	TargetDeploymentID    types.String  `tfsdk:"target_deployment_id"`
	Strategy              types.String  `tfsdk:"strategy"`
	State                 types.String  `tfsdk:"state"`
	CurrentStep           types.Int64   `tfsdk:"current_step"`
	CurrentTrafficPercent types.Int64   `tfsdk:"current_traffic_percent"`
	Steps                 []stepLine    `tfsdk:"steps"`
	Condition             types.Object  `tfsdk:"condition"`
	PausedAt              types.String  `tfsdk:"paused_at"`
	PauseReason           types.String  `tfsdk:"pause_reason"`
	CreatedAt             types.String  `tfsdk:"created_at"`
	StartedAt             types.String  `tfsdk:"started_at"`
	CompletedAt           types.String  `tfsdk:"completed_at"`
	Phase                 types.String  `tfsdk:"phase"`
	NextEvent             types.String  `tfsdk:"next_event"`
	NextAt                types.String  `tfsdk:"next_at"`
	WaitSeconds           types.Float64 `tfsdk:"wait_seconds"`
	ActualShare           types.Float64 `tfsdk:"actual_share"`
	SpecDigest            types.String  `tfsdk:"spec_digest"`
	Origin                types.String  `tfsdk:"origin"`
}

type stepLine struct {
	Step           types.Int64  `tfsdk:"step"`
	TrafficPercent types.Int64  `tfsdk:"traffic_percent"`
	State          types.String `tfsdk:"state"`
	StartedAt      types.String `tfsdk:"started_at"`
	CompletedAt    types.String `tfsdk:"completed_at"`
	FailureReason  types.String `tfsdk:"failure_reason"`
}

// Metadata names the data source.
func (d *rolloutDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollout"
}

// Schema describes a rollout as it is now.
func (d *rolloutDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	const ours = " Null when the engine does not tell."
	resp.Schema = schema.Schema{
		MarkdownDescription: "A rollout as it is now: the one of this `id`, or without an `id` the one that holds the endpoint. When none does, all but `endpoint_id` is null. " +
			"Calls to the engine: one with an `id`; without one, one for each 50 rollouts of the endpoint until an open one is found.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id":             schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint of the rollout."},
			"id":                      schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Rollout id, `rol_…`; the endpoint's open rollout when left out."},
			"source_deployment_id":    given("Where traffic comes from."),
			"target_deployment_id":    given("Where it goes."),
			"strategy":                given("`CANARY`, `BLUE_GREEN` or `ROLLING`."),
			"state":                   given("State of the rollout, for example `STABILIZING`, `SYSTEM_PAUSED` or `COMPLETED`."),
			"current_step":            givenInt("Step under way or reached last, from 1; null before the start."),
			"current_traffic_percent": givenInt("Percent of the pair's traffic on the target; null before the start."),
			"steps": givenList("The ladder as run.", map[string]schema.Attribute{
				"step":            givenInt("Number, from 1."),
				"traffic_percent": givenInt("Percent of the pair on the target."),
				"state":           given("State of the step."),
				"started_at":      given("When it began, RFC 3339; null when it has not."),
				"completed_at":    given("When it was through, RFC 3339; null when it is not."),
				"failure_reason":  given("Why it failed; null when it did not."),
			}),
			"condition":    schema.ObjectAttribute{Computed: true, AttributeTypes: conditionType.AttrTypes, MarkdownDescription: "Why the engine parked it, as in `sluice_rollout`; null when it did not."},
			"paused_at":    given("Since when it is paused, RFC 3339; null when it is not."),
			"pause_reason": given("Why it is paused; null when it is not, or no reason was given."),
			"created_at":   given("When it was made, RFC 3339."),
			"started_at":   given("When it was started, RFC 3339; null when it was not."),
			"completed_at": given("When it was over, RFC 3339; null when it is not."),
			"phase":        given("Where inside the step it is." + ours),
			"next_event":   given("What is due next." + ours),
			"next_at":      given("When that is due, RFC 3339." + ours),
			"wait_seconds": givenFloat("Wait of each step in effect." + ours),
			"actual_share": givenFloat("The target's part of the pair's answers since the last shift, 0 to 1; null below 20 answers." + ours),
			"spec_digest":  given("Digest of the spec as asked." + ours),
			"origin":       given("Which door asked." + ours),
		},
	}
}

// Read looks once.
func (d *rolloutDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m rolloutDataModel
	if !d.ready(ctx, req, &m, &resp.Diagnostics) {
		return
	}
	endpoint, found := m.EndpointID.ValueString(), true
	var r api.Rollout
	var err error
	if m.ID.IsNull() {
		r, found, err = d.engine.client.ActiveRollout(ctx, endpoint)
	} else {
		r, err = d.engine.client.GetRollout(ctx, endpoint, m.ID.ValueString())
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "read rollout "+orElse(m.ID.ValueString(), "of endpoint "+endpoint), err)
		return
	}
	m.Condition = types.ObjectNull(conditionType.AttrTypes)
	if found {
		m.fill(r)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *rolloutDataModel) fill(r api.Rollout) {
	m.ID, m.SourceDeploymentID, m.TargetDeploymentID = types.StringValue(r.ID), types.StringValue(r.SourceDeploymentID), types.StringValue(r.TargetDeploymentID)
	m.Strategy, m.State = types.StringValue(shortEnum(api.PrefixStrategy, r.Strategy)), types.StringValue(engineclient.Short(r.State))
	m.CurrentTrafficPercent, m.Condition = optionalInt(r.CurrentTrafficPercent), conditionValue(r.Status.Condition)
	if r.CurrentStep != nil {
		m.CurrentStep = types.Int64Value(int64(*r.CurrentStep) + 1)
	}
	if p := r.PauseInfo; p != nil {
		m.PausedAt, m.PauseReason = instant(&p.PausedAt), optionalString(p.Reason)
	}
	m.CreatedAt, m.StartedAt, m.CompletedAt = instant(&r.CreatedAt), instant(r.StartedAt), instant(r.CompletedAt)
	m.Steps = make([]stepLine, 0, len(r.Status.Steps))
	for _, st := range r.Status.Steps {
		m.Steps = append(m.Steps, stepLine{Step: types.Int64Value(int64(st.StepIndex) + 1), TrafficPercent: types.Int64Value(int64(st.TargetTrafficPercent)),
			State: types.StringValue(shortEnum(api.PrefixStepState, st.State)), StartedAt: instant(st.StartedAt), CompletedAt: instant(st.CompletedAt), FailureReason: optionalString(st.FailureReason)})
	}
	x := r.Sluice
	if x == nil {
		return
	}
	m.Phase, m.NextEvent, m.NextAt = optionalString(x.Phase), optionalString(x.NextEvent), instant(x.NextAt)
	m.SpecDigest, m.Origin, m.ActualShare = optionalString(x.Digest), optionalString(x.Origin), types.Float64PointerValue(x.ActualShare)
	if x.Soak != nil {
		m.WaitSeconds = seconds(time.Duration(*x.Soak))
	}
}
