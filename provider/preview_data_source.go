package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
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
	OverlapCostCents types.Float64 `tfsdk:"overlap_cost_cents"`
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
			"Read once at plan and kept in the plan file, so a policy judges what a person saw. Infeasible is a fact here, not an error.",
		Attributes: previewAttributes(),
	}
}

func previewAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"endpoint_id":          schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint whose traffic would move."},
		"source_deployment_id": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "As in `sluice_rollout`; inferred when left out."},
		"target_deployment_id": schema.StringAttribute{Required: true, MarkdownDescription: "Deployment that traffic would move to."},
		"canary": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`.", Attributes: map[string]schema.Attribute{
			"steps": schema.ListNestedAttribute{Optional: true, MarkdownDescription: "The ladder.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"traffic":  schema.NumberAttribute{CustomType: wholeNumber, Required: true, MarkdownDescription: "Percent of the pair on the target."},
				"replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "Target replicas of the step."},
			}}},
			"step_interval": schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "Wait of each step."},
		}},
		"blue_green": schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{}, MarkdownDescription: "As in `sluice_rollout`."},
		"rolling":    schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{}, MarkdownDescription: "As in `sluice_rollout`."},
		"metrics": schema.ListNestedAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name":       schema.StringAttribute{Required: true, MarkdownDescription: "Metric."},
			"stat":       schema.StringAttribute{Optional: true, CustomType: statType, MarkdownDescription: "`PERCENTILE` or `AVG`."},
			"percentile": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "1 to 99."},
			"window":     schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "How far back the gate looks."},
			"regression_check": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "Budget against the source.", Attributes: map[string]schema.Attribute{
				"direction":              schema.StringAttribute{Required: true, CustomType: directions, MarkdownDescription: "`HIGHER_IS_WORSE` or `LOWER_IS_WORSE`."},
				"max_regression_percent": schema.Float64Attribute{Optional: true, MarkdownDescription: "Budget in percent."},
			}},
			"threshold_check": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "Condition on the target.", Attributes: map[string]schema.Attribute{
				"operator": schema.StringAttribute{Required: true, CustomType: operators, MarkdownDescription: "`LT`, `LTE`, `GT` or `GTE`."},
				"value":    schema.Float64Attribute{Optional: true, MarkdownDescription: "In the metric's unit."},
			}},
		}}},
		"final_source_replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "As in `sluice_rollout`."},
		"final_target_replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "As in `sluice_rollout`."},

		"hold_source_until_complete": schema.BoolAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`."},
		"circuit_breaker": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`.", Attributes: map[string]schema.Attribute{
			"signed_by": schema.StringAttribute{Required: true, MarkdownDescription: "Who answers for it."},
			"rules": schema.ListNestedAttribute{Required: true, MarkdownDescription: "Thresholds on the target.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":       schema.StringAttribute{Required: true, MarkdownDescription: "Metric."},
				"stat":       schema.StringAttribute{Optional: true, CustomType: statType, MarkdownDescription: "`PERCENTILE` or `AVG`."},
				"percentile": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "1 to 99."},
				"window":     schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "How far back a look goes."},
				"threshold_check": schema.SingleNestedAttribute{Required: true, MarkdownDescription: "Condition on the target.", Attributes: map[string]schema.Attribute{
					"operator": schema.StringAttribute{Required: true, CustomType: operators, MarkdownDescription: "`LT`, `LTE`, `GT` or `GTE`."},
					"value":    schema.Float64Attribute{Optional: true, MarkdownDescription: "In the metric's unit."},
				}},
			}}},
		}},

		"feasible":             schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the peak fits now; null when the engine does not tell, or would refuse the rollout as things stand (see `warnings`)."},
		"shortfall":            schema.StringAttribute{Computed: true, MarkdownDescription: "What is missing when it does not."},
		"source_replicas":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Source replicas now."},
		"target_replicas":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas now."},
		"landing_min_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Floor of the target at the end."},
		"landing_max_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Ceiling that the target is lifted to."},
		"peak_replicas":        schema.Int64Attribute{Computed: true, MarkdownDescription: "Most replicas of both sides at once."},
		"frozen_pair":          schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether both sides serve already, as after a cancel."},
		"seed_percent":         schema.Int64Attribute{Computed: true, MarkdownDescription: "The target's share of the pair now."},
		"journey": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "As in `sluice_rollout`, with the replica counts on what stands now.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"step":               schema.Int64Attribute{Computed: true, MarkdownDescription: "Number, from 1."},
			"traffic_percent":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the pair on the target."},
			"delta_percent":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent that moves."},
			"target_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas before traffic moves."},
			"source_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Source replicas after the drain."},
			"scale_up":           schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas that the step adds to what stands."},
			"wait_asked_seconds": schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait as asked."},
			"wait_seconds":       schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait in effect."},
			"wait_reason":        schema.StringAttribute{Computed: true, MarkdownDescription: "Why."},
			"starts_at_seconds":  schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time to this step."},
			"least_seconds":      schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time of the step."},
			"gated":              schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether a metric rule can judge it."},
		}}},
		"facts": schema.ObjectAttribute{Computed: true, AttributeTypes: factsType.AttrTypes, MarkdownDescription: "Flat facts of the journey, as in `sluice_rollout`."},
		"findings": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "Remarks with stable codes.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"code":     schema.StringAttribute{Computed: true, MarkdownDescription: "Stable code."},
			"severity": schema.StringAttribute{Computed: true, MarkdownDescription: "`info` or `warning`."},
			"subject":  schema.StringAttribute{Computed: true, MarkdownDescription: "Attribute that it is about."},
			"message":  schema.StringAttribute{Computed: true, MarkdownDescription: "What."},
			"remedy":   schema.StringAttribute{Computed: true, MarkdownDescription: "How to mend it."},
		}}},
		"warnings": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The engine's own remarks. Codes are an open vocabulary.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"code":    schema.StringAttribute{Computed: true, MarkdownDescription: "For example `START_WILL_REJECT`."},
			"message": schema.StringAttribute{Computed: true, MarkdownDescription: "What."},
		}}},
		"hardware": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "The target's hardware; null when the engine does not list it.", Attributes: map[string]schema.Attribute{
			"id":                   schema.StringAttribute{Computed: true, MarkdownDescription: "Instance type."},
			"gpu_type":             schema.StringAttribute{Computed: true, MarkdownDescription: "GPU type."},
			"gpu_count":            schema.Int64Attribute{Computed: true, MarkdownDescription: "GPUs of one replica."},
			"price_cents_per_hour": schema.Int64Attribute{Computed: true, MarkdownDescription: "Price of one replica."},
			"headroom":             schema.Int64Attribute{Computed: true, MarkdownDescription: "Further replicas that fit; null when not known."},
			"headroom_is_exact":    schema.BoolAttribute{Computed: true, MarkdownDescription: "False when at least that many fit."},
		}},
		"overlap_cost_cents": schema.Float64Attribute{Computed: true, MarkdownDescription: "Price of the replicas beyond those that stand, over the least time of the way; null without a price."},
		"traffic_split": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The split now.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"deployment_id": schema.StringAttribute{Computed: true, MarkdownDescription: "Deployment."},
			"weight":        schema.Float64Attribute{Computed: true, MarkdownDescription: "Weight of one ready replica."},
		}}},
		"lock_holder": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "The rollout that holds the endpoint; null when it is free.", Attributes: map[string]schema.Attribute{
			"rollout_id":      schema.StringAttribute{Computed: true, MarkdownDescription: "Rollout."},
			"state":           schema.StringAttribute{Computed: true, MarkdownDescription: "Its state."},
			"traffic_percent": schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent on its target."},
		}},
		"spec_digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Digest of the spec as asked: that of a `sluice_rollout` with the same spec, so a policy finds the preview of a rollout by it."},
		"plan_digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Digest over the spec, the live split, the replica bounds and the engine's limits: what an approval names, and what any change voids."},
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
	if asked.SourceDeploymentID == "" {
		source, err := inferSource(ctx, d.engine, endpoint, asked.TargetDeploymentID)
		if err != nil {
			diags.AddAttributeError(path.Root("source_deployment_id"), "The source cannot be inferred", sentence(err.Error()))
			return
		}
		asked.SourceDeploymentID, spec.Source = source, source
	}
	preview, refusal, err := d.preview(ctx, endpoint, asked)
	if err != nil {
		addRefusal(diags, "preview the rollout", err)
		return
	}
	target, err := d.engine.client.GetDeployment(ctx, endpoint, asked.TargetDeploymentID)
	if err != nil {
		addRefusal(diags, "read deployment "+asked.TargetDeploymentID, err)
		return
	}
	m.SourceDeploymentID = types.StringValue(asked.SourceDeploymentID)
	m.TrafficSplit = splitValue(ep.TrafficSplit)
	m.LockHolder = holderValue(active, found)
	if refusal != nil {
		m.refused(spec, refusal, t)
		m.PlanDigest = types.StringValue(planDigest(planning.Digest(spec), ep, preview))
		return
	}
	m.preview(preview)
	j := m.journey(spec, preview, t)
	m.price(ctx, d.engine.client, target, preview, j)
	m.PlanDigest = types.StringValue(planDigest(j.Digest, ep, preview))
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
	m.PeakReplicas, m.SeedPercent, m.OverlapCostCents = types.Int64Null(), types.Int64Null(), types.Float64Null()
	m.Hardware = types.ObjectNull(hardwareType.AttrTypes)
	m.Journey, m.Facts, m.Findings = journeyValue(j), factsValue(j), findingsValue(j)
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

// journey plans on what stands, with the same code as the resource.
func (m *previewModel) journey(spec rollout.Spec, p api.Preview, t rollout.Timings) planning.Journey {
	basis := &rollout.Basis{
		SourceReplicas: p.SourceReplicas, TargetReplicas: p.TargetReplicas, Seed: seedOf(p),
		TargetBounds: rollout.Bounds{Min: p.TargetMinReplicas, Max: p.TargetMaxReplicas},
	}
	j := planning.NewJourney(spec, planning.Known{Basis: basis}, t)
	if m.PeakReplicas.IsNull() {
		m.PeakReplicas = optionalInt(j.Totals.PeakReplicas)
	}
	m.Journey, m.Facts, m.Findings = journeyValue(j), factsValue(j), findingsValue(j)
	return j
}

// price finds the target's hardware in the inventory, best effort: a hosted engine
// may not let every key list it.
func (m *previewModel) price(ctx context.Context, c *engineclient.Client, target api.Deployment, p api.Preview, j planning.Journey) {
	m.Hardware, m.OverlapCostCents = types.ObjectNull(hardwareType.AttrTypes), types.Float64Null()
	for h, err := range c.Hardware(ctx) {
		if err != nil {
			return
		}
		if h.ID != target.Hardware {
			continue
		}
		headroom, exact := headroomOf(h)
		m.Hardware = types.ObjectValueMust(hardwareType.AttrTypes, map[string]attr.Value{
			"id": types.StringValue(h.ID), "gpu_type": types.StringValue(h.GPUType), "gpu_count": types.Int64Value(int64(h.GPUCount)),
			"price_cents_per_hour": types.Int64Value(int64(h.PriceCentsPerHour)), "headroom": headroom, "headroom_is_exact": types.BoolValue(exact),
		})
		if h.PriceCentsPerHour > 0 && !m.PeakReplicas.IsNull() {
			extra := max(0, m.PeakReplicas.ValueInt64()-int64(p.SourceReplicas)-int64(p.TargetReplicas))
			hours := float64(j.Totals.LeastDuration) / float64(time.Hour)
			m.OverlapCostCents = types.Float64Value(float64(extra) * float64(h.PriceCentsPerHour) * hours)
		}
		return
	}
}

// headroomOf sums the regions whose headroom is known.
func headroomOf(h api.InstanceType) (types.Int64, bool) {
	sum, known, exact := int64(0), false, true
	for _, r := range h.Regions {
		if r.Headroom == nil || r.Headroom.Value == nil {
			exact = false
			continue
		}
		sum, known = sum+int64(*r.Headroom.Value), true
		exact = exact && r.Headroom.Relation == "RELATION_EQ"
	}
	if !known {
		return types.Int64Null(), false
	}
	return types.Int64Value(sum), exact
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
