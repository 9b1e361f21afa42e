package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var (
	_ datasource.DataSourceWithConfigure      = (*previewDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*previewDataSource)(nil)
)

func newPreviewDataSource() datasource.DataSource { return &previewDataSource{} }

type previewDataSource struct{ engine *engine }

type previewModel struct {
	specModel
	Feasible         types.Bool    `tfsdk:"feasible"`
	Shortfall        types.String  `tfsdk:"shortfall"`
	SourceReplicas   types.Int64   `tfsdk:"source_replicas"`
	TargetReplicas   types.Int64   `tfsdk:"target_replicas"`
	LandingMin       types.Int64   `tfsdk:"landing_min_replicas"`
	LandingMax       types.Int64   `tfsdk:"landing_max_replicas"`
	PeakReplicas     types.Int64   `tfsdk:"peak_replicas"`
	FrozenPair       types.Bool    `tfsdk:"frozen_pair"`
	SeedPercent      types.Int64   `tfsdk:"seed_percent"`
	Journey          types.List    `tfsdk:"journey"`
	Facts            types.Object  `tfsdk:"facts"`
	Findings         types.List    `tfsdk:"findings"`
	Warnings         types.List    `tfsdk:"warnings"`
	Hardware         types.Object  `tfsdk:"hardware"`
	SourceHardware   types.Object  `tfsdk:"source_hardware"`
	PeakGPUs         types.Int64   `tfsdk:"peak_gpus"`
	OverlapGPUs      types.Int64   `tfsdk:"overlap_gpus"`
	OverlapGPUHours  types.Float64 `tfsdk:"overlap_gpu_hours"`
	OverlapCostCents types.Float64 `tfsdk:"overlap_cost_cents"`
	ColdStart        types.Float64 `tfsdk:"cold_start_seconds"`
	RequestRate      types.Float64 `tfsdk:"requests_per_second"`
	Gates            []gateLine    `tfsdk:"gates"`
	Limits           []limitsLine  `tfsdk:"limits"`
	Drift            types.Object  `tfsdk:"drift"`
	Summary          types.String  `tfsdk:"summary"`
	TrafficSplit     types.List    `tfsdk:"traffic_split"`
	LockHolder       types.Object  `tfsdk:"lock_holder"`
	SpecDigest       types.String  `tfsdk:"spec_digest"`
	PlanDigest       types.String  `tfsdk:"plan_digest"`
}

var (
	warningType  = types.ObjectType{AttrTypes: map[string]attr.Type{"code": types.StringType, "message": types.StringType}}
	hardwareType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"id": types.StringType, "gpu_type": types.StringType, "gpu_count": types.Int64Type,
		"price_cents_per_hour": types.Int64Type, "headroom": types.Int64Type, "headroom_is_exact": types.BoolType,
	}}
	previewStepType = types.ObjectType{AttrTypes: withAttributes(journeyType.AttrTypes, map[string]attr.Type{
		"peak_replicas": types.Int64Type, "peak_gpus": types.Int64Type, "overlap_gpus": types.Int64Type, "expected_seconds": types.Float64Type,
	})}
	shareType  = types.ObjectType{AttrTypes: withAttributes(weightType.AttrTypes, map[string]attr.Type{"share": types.Float64Type})}
	holderType = types.ObjectType{AttrTypes: map[string]attr.Type{"rollout_id": types.StringType, "state": types.StringType, "traffic_percent": types.Int64Type}}
)

// Metadata names the data source.
func (d *previewDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollout_preview"
}

// Schema describes a preview.
func (d *previewDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a rollout would find now: replicas, peak, feasibility, price, the live split and who holds the endpoint. " +
			"Read once at plan and kept in the plan file, so a policy judges what a person saw. Infeasible is a fact here, not an error; what an engine does not tell is null.",
		Attributes: previewAttributes(),
	}
}

// Configure takes the client.
func (d *previewDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	d.engine = e
}

// ValidateConfig refuses what can never be right, as the resource does.
func (d *previewDataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var m previewModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	offline := rollout.DefaultTimings()
	offline.MinimumWindow = 0
	_, _, diags := m.check(offline)
	resp.Diagnostics.Append(diags...)
}

// Read asks the engine.
func (d *previewDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m previewModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	t, err := d.engine.timings(ctx)
	if err != nil {
		addRefusal(&resp.Diagnostics, "preview a rollout", err)
		return
	}
	spec, dec, diags := m.check(t)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if resp.Diagnostics.Append(d.engine.takes(ctx, dec.spec)...); resp.Diagnostics.HasError() {
		return
	}
	m.SpecDigest = types.StringValue(planning.Digest(spec))
	d.read(ctx, &m, dec.spec, spec, t, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

func (d *previewDataSource) read(ctx context.Context, m *previewModel, asked api.RolloutSpec, spec rollout.Spec, t rollout.Timings, diags *diag.Diagnostics) {
	endpoint := m.EndpointID.ValueString()
	ep, err := d.engine.client.GetEndpoint(ctx, endpoint)
	if err != nil {
		addRefusal(diags, "read endpoint "+endpoint, err)
		return
	}
	active, found, err := d.engine.client.ActiveRollout(ctx, endpoint)
	if err != nil {
		addRefusal(diags, "read the rollouts of endpoint "+endpoint, err)
		return
	}
	m.TrafficSplit, m.LockHolder, m.Drift = sharesValue(ep), holderValue(active, found), types.ObjectNull(driftType.AttrTypes)
	if asked.SourceDeploymentID == "" {
		source, err := planning.SourceIn(ep, asked.TargetDeploymentID)
		if err != nil { // as after the rollout has completed: a fact, like what the engine refuses
			m.SourceDeploymentID = types.StringNull()
			m.refused(spec, &api.Error{Message: err.Error()}, t)
			m.PlanDigest = types.StringValue(planDigest(planning.Digest(spec), ep, api.Preview{}))
			return
		}
		asked.SourceDeploymentID, spec.Source = source, source
	}
	preview, refusal, err := d.preview(ctx, endpoint, asked)
	if err != nil {
		addRefusal(diags, "preview the rollout", err)
		return
	}
	m.SourceDeploymentID = types.StringValue(asked.SourceDeploymentID)
	if found && active.SourceDeploymentID == asked.SourceDeploymentID && active.TargetDeploymentID == asked.TargetDeploymentID {
		if m.Drift, err = d.engine.driftOf(ctx, active); err != nil {
			tflog.Info(ctx, "drift is not known: "+err.Error())
		}
	}
	if refusal != nil {
		m.refused(spec, refusal, t)
		m.PlanDigest = types.StringValue(planDigest(planning.Digest(spec), ep, preview))
		return
	}
	pair, err := d.sides(ctx, endpoint, asked)
	if err != nil {
		addRefusal(diags, "read both deployments", err)
		return
	}
	m.preview(preview)
	m.live(pair, preview, planning.OnPreview(asked, preview), spec, t)
	m.PlanDigest = types.StringValue(planDigest(planning.Digest(spec), ep, preview))
}

// preview asks the engine. What it refuses of a spec that is right in itself follows
// from what stands (after the rollout has completed its own first step is below the
// standing share): a fact for the reader, not an error that would end every plan.
func (d *previewDataSource) preview(ctx context.Context, endpoint string, spec api.RolloutSpec) (api.Preview, *api.Error, error) {
	p, err := d.engine.client.PreviewRollout(ctx, endpoint, spec)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
		return api.Preview{}, refused, nil
	}
	return p, nil, err
}

// codeRefused is the warning of a preview that the engine refused.
const codeRefused = "CREATE_WILL_REJECT"

// refused fills in what is known without the engine's preview.
func (m *previewModel) refused(spec rollout.Spec, why *api.Error, t rollout.Timings) {
	j := planning.NewJourney(spec, planning.Known{}, t)
	m.Feasible, m.Shortfall, m.FrozenPair = types.BoolNull(), types.StringNull(), types.BoolNull()
	m.SourceReplicas, m.TargetReplicas, m.LandingMin, m.LandingMax = types.Int64Null(), types.Int64Null(), types.Int64Null(), types.Int64Null()
	m.PeakReplicas, m.SeedPercent = types.Int64Null(), types.Int64Null()
	m.nothingLive()
	m.Journey, m.Facts, m.Findings = stepsValue(j, nil), factsValue(j), findingsValue(j)
	m.Summary = types.StringValue("refused as things stand: " + render.Inert(why.Message))
	m.Warnings = types.ListValueMust(warningType, []attr.Value{types.ObjectValueMust(warningType.AttrTypes, map[string]attr.Value{
		"code": types.StringValue(codeRefused), "message": types.StringValue(why.Message),
	})})
}

func holderValue(r api.Rollout, found bool) types.Object {
	if !found {
		return types.ObjectNull(holderType.AttrTypes)
	}
	return types.ObjectValueMust(holderType.AttrTypes, map[string]attr.Value{
		"rollout_id": types.StringValue(r.ID), "state": types.StringValue(engineclient.Short(r.State)), "traffic_percent": types.Int64Value(int64(percentOf(r))),
	})
}

// preview takes over what the engine answered.
func (m *previewModel) preview(p api.Preview) {
	m.SourceReplicas, m.TargetReplicas = types.Int64Value(int64(p.SourceReplicas)), types.Int64Value(int64(p.TargetReplicas))
	m.LandingMin, m.LandingMax = optionalInt(p.LandingMinReplicas), optionalInt(p.LandingMaxReplicas)
	m.FrozenPair = types.BoolValue(p.FrozenPair)
	m.SeedPercent = types.Int64Value(int64(seedOf(p)))
	m.Feasible, m.Shortfall, m.PeakReplicas = types.BoolNull(), types.StringNull(), types.Int64Null()
	if x := p.Sluice; x != nil {
		m.Feasible, m.Shortfall = types.BoolValue(x.Feasible), optionalString(x.Shortfall)
		m.PeakReplicas = types.Int64Value(int64(x.PeakReplicas))
	}
	warnings := make([]attr.Value, 0, len(p.Warnings))
	for _, w := range p.Warnings {
		warnings = append(warnings, types.ObjectValueMust(warningType.AttrTypes, map[string]attr.Value{"code": types.StringValue(w.Code), "message": types.StringValue(w.Message)}))
	}
	m.Warnings = types.ListValueMust(warningType, warnings)
}

func seedOf(p api.Preview) int {
	if p.EstimatedSeedPercent == nil {
		return 0
	}
	return *p.EstimatedSeedPercent
}

// planDigest covers what an approval stands on.
func planDigest(spec string, ep api.Endpoint, p api.Preview) string {
	facts := struct {
		Spec   string
		Split  []api.TrafficWeight
		Source int
		Target [3]int
		Limits any
	}{spec, ep.TrafficSplit, p.SourceReplicas, [3]int{p.TargetReplicas, p.TargetMinReplicas, p.TargetMaxReplicas}, nil}
	if p.Sluice != nil {
		facts.Limits = p.Sluice.Timings
	}
	b, err := json.Marshal(facts)
	if err != nil {
		panic(fmt.Sprintf("plain values always marshal: %v", err))
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
