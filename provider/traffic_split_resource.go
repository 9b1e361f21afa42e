package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var (
	_ resource.ResourceWithConfigure      = (*splitResource)(nil)
	_ resource.ResourceWithImportState    = (*splitResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*splitResource)(nil)
	_ resource.ResourceWithValidateConfig = (*splitResource)(nil)
	_ resource.ResourceWithIdentity       = (*splitResource)(nil)
)

func newSplitResource() resource.Resource { return &splitResource{} }

// splitResource is a standing split that people set by hand. A rollout moves the same
// split: while one holds the lock nothing is planned, and what a finished one left is
// never written over by a configuration from before it.
type splitResource struct{ engine *engine }

type splitModel struct {
	EndpointID types.String `tfsdk:"endpoint_id"`
	Weights    types.Map    `tfsdk:"weights"`
	Reassert   types.Bool   `tfsdk:"reassert"`
	MovedBy    types.String `tfsdk:"moved_by"`
}

// Metadata names the resource.
func (r *splitResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_traffic_split"
}

// Schema describes a standing split.
func (r *splitResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The standing split of an endpoint, set by hand and at once: without steps, gates or a way back. To move live traffic use a `sluice_rollout`. " +
			"A rollout moves the same split. While one is active, a change of this resource is refused at plan. When one has moved the split since this resource was applied, the plan is an error that says how to accept its split; " +
			"the old one is not written back, unless `reassert` says so. Destroying this resource leaves the split as it is.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id": schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}, MarkdownDescription: "Endpoint whose split it is. One `sluice_traffic_split` an endpoint."},
			"weights": schema.MapAttribute{Required: true, ElementType: types.Float64Type, Validators: []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.ValueFloat64sAre(float64validator.Between(0, 1e9))},
				MarkdownDescription: "Weight of one ready replica, by deployment id: the share is weight × ready replicas over the sum of all. It is the whole split: a deployment that is left out gets no traffic, as one with weight 0."},
			"reassert": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "`true`: write `weights` although a finished rollout has moved the split since. Take it out again after the apply, or the next rollout is undone too."},
			"moved_by": schema.StringAttribute{Computed: true, MarkdownDescription: "The finished rollout that moved the split since this resource was applied; null when none did. An apply of the split that it left sets it to null."},
		},
	}
}

// IdentitySchema is the endpoint's id.
func (r *splitResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityOf(map[string]string{"endpoint_id": "Endpoint of the split, `ep_…`."})
}

func (m *splitModel) ids() map[string]types.String {
	return map[string]types.String{"endpoint_id": m.EndpointID}
}

// Configure takes the client.
func (r *splitResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	r.engine = e
}

// ValidateConfig refuses a split that nothing serves.
func (r *splitResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m splitModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.Weights.IsUnknown() || len(m.Weights.Elements()) == 0 {
		return
	}
	for _, w := range m.Weights.Elements() {
		if f, ok := w.(types.Float64); ok && (f.IsUnknown() || f.ValueFloat64() > 0) {
			return
		}
	}
	resp.Diagnostics.AddAttributeError(path.Root("weights"), "Nothing would serve", "All weights are 0. Give at least one deployment a weight above 0.")
}

// written is what the private state keeps beside the state.
type written struct {
	Weights map[string]float64 `json:"weights"` // as the configuration had them at the last apply
	Seen    api.Time           `json:"seen"`    // engine's time of the newest change that the state has
}

const writtenKey = "written"

// privately is the private state of a request or an answer.
type privately interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readWritten(ctx context.Context, p privately) (written, diag.Diagnostics) {
	var w written
	raw, diags := p.GetKey(ctx, writtenKey)
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &w); err != nil {
			diags.AddError("The private state of the split cannot be read", err.Error()+". Take the resource out with terraform state rm and import it again.")
		}
	}
	return w, diags
}

func keepWritten(ctx context.Context, p privately, w written) diag.Diagnostics {
	raw, err := json.Marshal(w)
	if err != nil {
		var diags diag.Diagnostics
		diags.AddError("The private state of the split cannot be written", err.Error())
		return diags
	}
	return p.SetKey(ctx, writtenKey, raw)
}

// Create writes the split.
func (r *splitResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.engine.acts()
	var m splitModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ep, ok := r.write(ctx, m, nil, &resp.Diagnostics)
	if !ok {
		return
	}
	m.MovedBy = types.StringNull()
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(keepWritten(ctx, resp.Private, written{Weights: weightsOf(m.Weights), Seen: ep.UpdatedAt})...)
}

// Update writes the split, if it is still what the plan was made on.
func (r *splitResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.engine.acts()
	var m, state splitModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() {
		return
	}
	was := weightsOf(state.Weights)
	ep, ok := r.write(ctx, m, was, &resp.Diagnostics)
	if !ok {
		return
	}
	m.MovedBy = types.StringNull()
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(keepWritten(ctx, resp.Private, written{Weights: weightsOf(m.Weights), Seen: ep.UpdatedAt})...)
}

// write makes the split that of m, under the endpoint's etag. was is the split that
// the plan was made on, nil for a new resource. ok is false when nothing was written
// and the diagnostics say why.
func (r *splitResource) write(ctx context.Context, m splitModel, was map[string]float64, diags *diag.Diagnostics) (ep api.Endpoint, ok bool) {
	if r.engine.client == nil {
		notConfigured(diags)
		return ep, false
	}
	endpoint, wanted := m.EndpointID.ValueString(), weightsOf(m.Weights)
	ep, err := r.engine.client.GetEndpoint(ctx, endpoint)
	if err != nil {
		addRefusal(diags, "read endpoint "+endpoint, err)
		return ep, false
	}
	if sameWeights(wanted, liveWeights(ep)) {
		return ep, true
	}
	if ep.ActiveRolloutID != "" {
		addHeld(ctx, r.engine, diags, "set the split of endpoint "+endpoint, endpoint)
		return ep, false
	}
	if was != nil && !sameWeights(was, liveWeights(ep)) {
		addMoved(diags, endpoint, ep)
		return ep, false
	}
	split := splitOf(wanted)
	changed, err := r.engine.client.UpdateEndpoint(ctx, endpoint, "trafficSplit", api.UpdateEndpoint{ETag: ep.ETag, TrafficSplit: &split})
	switch {
	case engineclient.IsStale(err):
		addMoved(diags, endpoint, ep)
	case err != nil:
		addRefusal(diags, "set the split of endpoint "+endpoint, err)
	}
	return changed, err == nil
}

func addMoved(diags *diag.Diagnostics, endpoint string, ep api.Endpoint) {
	diags.AddError("The split of endpoint "+endpoint+" has changed since the plan",
		fmt.Sprintf("It was %s when it was read last. Nothing was written. Plan again, and look at what the new plan says.", weightsText(liveWeights(ep))))
}

// Delete leaves the split as it is: what serves goes on serving.
func (r *splitResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// ImportState takes the split of an endpoint over, by the endpoint's id or by identity.
func (r *splitResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ids := importing(ctx, r.engine, req, &resp.Diagnostics, "endpoint_id")
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("endpoint_id"), ids[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("reassert"), false)...)
	resp.Diagnostics.Append(identified(ctx, r.engine, resp.Identity, map[string]types.String{"endpoint_id": types.StringValue(ids[0])})...)
}

// weightsOf are the weights above 0: one of 0 is equal to absent.
func weightsOf(m types.Map) map[string]float64 {
	out := map[string]float64{}
	for id, v := range m.Elements() {
		if w, ok := v.(types.Float64); ok && w.ValueFloat64() > 0 {
			out[id] = w.ValueFloat64()
		}
	}
	return out
}

func liveWeights(ep api.Endpoint) map[string]float64 {
	out := map[string]float64{}
	for _, w := range ep.TrafficSplit {
		if w.Weight > 0 {
			out[w.DeploymentID] = w.Weight
		}
	}
	return out
}

func weightsValue(weights map[string]float64) types.Map {
	out := map[string]attr.Value{}
	for id, w := range weights {
		out[id] = types.Float64Value(w)
	}
	return types.MapValueMust(types.Float64Type, out)
}
