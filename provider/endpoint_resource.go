package provider

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var (
	_ resource.ResourceWithConfigure   = (*endpointResource)(nil)
	_ resource.ResourceWithImportState = (*endpointResource)(nil)
)

func newEndpointResource() resource.Resource { return &endpointResource{} }

type endpointResource struct{ engine *engine }

type endpointModel struct {
	ID            types.String `tfsdk:"id"`
	Name          types.String `tfsdk:"name"`
	Visibility    types.String `tfsdk:"visibility"`
	QualifiedName types.String `tfsdk:"qualified_name"`
	TrafficSplit  types.List   `tfsdk:"traffic_split"`
	GatewayURL    types.String `tfsdk:"gateway_url"`
}

const prefixVisibility = "VISIBILITY_"

var weightType = types.ObjectType{AttrTypes: map[string]attr.Type{"deployment_id": types.StringType, "weight": types.Float64Type}}

// Metadata names the resource.
func (r *endpointResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_endpoint"
}

// Schema describes an endpoint.
func (r *endpointResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A stable name that clients call. Its deployments serve it; rollouts move its traffic between them.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "Endpoint id, `ep_…`."},
			"name": schema.StringAttribute{
				Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Name inside the project, without the project's slug. Clients depend on it, so another name is another endpoint.",
			},
			"visibility": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("PRIVATE"),
				Validators:          []validator.String{stringvalidator.OneOf("PRIVATE", "INTERNAL")},
				MarkdownDescription: "`PRIVATE` (default): the project alone; `INTERNAL`: the whole organization.",
			},
			"qualified_name": schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "What clients send as `model`: `slug/name`."},
			"traffic_split": schema.ListNestedAttribute{
				Computed: true, PlanModifiers: []planmodifier.List{listplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "The standing split as last read, without entries of weight 0. A rollout owns it while it runs, and what it leaves is what stands; it is never a difference to mend.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"deployment_id": schema.StringAttribute{Computed: true, MarkdownDescription: "Deployment that gets traffic."},
					"weight":        schema.Float64Attribute{Computed: true, MarkdownDescription: "Weight of one ready replica: the share is weight × ready replicas over the sum of all."},
				}},
			},
			"gateway_url": schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "Base address for inference, when the engine tells it."},
		},
	}
}

// Configure takes the client.
func (r *endpointResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	r.engine = e
}

// Create makes the endpoint. A name that is taken is an error: the endpoint may be
// somebody else's, and an import takes it over knowingly.
func (r *endpointResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.engine.acts()
	var m endpointModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	e, err := r.engine.client.CreateEndpoint(ctx, api.CreateEndpoint{Name: m.Name.ValueString(), Visibility: fullEnum(prefixVisibility, m.Visibility.ValueString())}, onceKey())
	if taken(err) {
		r.engine.endpointTaken(ctx, &resp.Diagnostics, m.Name.ValueString(), err)
		return
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "create endpoint "+m.Name.ValueString(), err)
		return
	}
	m.apply(e)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Read refreshes the state; an endpoint that is gone for sure leaves it.
func (r *endpointResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m endpointModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		return // unknown at plan: what was read last stays
	}
	e, gone, err := readTwice(ctx, r.engine.client, func() (api.Endpoint, error) {
		return r.engine.seen.endpoint(ctx, r.engine.client, m.ID.ValueString())
	})
	if gone {
		if err = sameProject(ctx, r.engine.client, m.QualifiedName.ValueString()); err == nil {
			resp.State.RemoveResource(ctx)
			return
		}
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "read endpoint "+m.ID.ValueString(), err)
		return
	}
	split := m.TrafficSplit
	m.apply(e)
	if e.ActiveRolloutID != "" && !split.IsNull() {
		m.TrafficSplit = split // a split on its way is the rollout's affair, not drift
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update changes the visibility, all else is another endpoint. The split keeps its
// planned value: it may have moved since the plan, and the next read shows it.
func (r *endpointResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.engine.acts()
	var m endpointModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	visibility := fullEnum(prefixVisibility, m.Visibility.ValueString())
	e, err := r.engine.client.UpdateEndpoint(ctx, m.ID.ValueString(), "visibility", api.UpdateEndpoint{Visibility: &visibility})
	if err != nil {
		addRefusal(&resp.Diagnostics, "update endpoint "+m.ID.ValueString(), err)
		return
	}
	split := m.TrafficSplit
	m.apply(e)
	if !split.IsUnknown() {
		m.TrafficSplit = split
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Delete deletes an endpoint that has no deployment left. A rollout that holds it
// is named at once; nothing is canceled on the way.
func (r *endpointResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	r.engine.acts()
	var m endpointModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	id := m.ID.ValueString()
	e, gone, err := readTwice(ctx, r.engine.client, func() (api.Endpoint, error) { return r.engine.client.GetEndpoint(ctx, id) })
	if gone {
		if err = sameProject(ctx, r.engine.client, m.QualifiedName.ValueString()); err == nil {
			return
		}
	}
	if err == nil && e.ActiveRolloutID != "" {
		addHeld(ctx, r.engine, &resp.Diagnostics, "delete endpoint "+id, id)
		return
	}
	if err == nil {
		err = r.engine.client.DeleteEndpoint(ctx, id, "")
	}
	if err != nil && !engineclient.IsNotFound(err) {
		addRefusal(&resp.Diagnostics, "delete endpoint "+id, err)
	}
}

// ImportState takes an endpoint over by its id or its identity.
func (r *endpointResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ids := importing(ctx, r.engine, req, &resp.Diagnostics, "endpoint_id")
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), ids[0])...)
	resp.Diagnostics.Append(identified(ctx, r.engine, resp.Identity, map[string]types.String{"id": types.StringValue(ids[0])})...)
}

func (m *endpointModel) apply(e api.Endpoint) {
	m.ID = types.StringValue(e.ID)
	bare := e.Name
	if _, after, ok := strings.Cut(e.Name, "/"); ok {
		bare = after
	}
	if m.Name.ValueString() != e.Name {
		m.Name = types.StringValue(bare)
	}
	m.Visibility = types.StringValue(shortEnum(prefixVisibility, e.Visibility))
	m.QualifiedName = types.StringValue(e.Name)
	m.TrafficSplit = splitValue(e.TrafficSplit)
	m.GatewayURL = types.StringNull()
	if e.Sluice != nil {
		m.GatewayURL = optionalString(e.Sluice.GatewayURL)
	}
}

func splitValue(split []api.TrafficWeight) types.List {
	entries := make([]attr.Value, 0, len(split))
	for _, w := range split {
		if w.Weight == 0 {
			continue // equal to absent
		}
		entries = append(entries, types.ObjectValueMust(weightType.AttrTypes, map[string]attr.Value{
			"deployment_id": types.StringValue(w.DeploymentID), "weight": types.Float64Value(w.Weight),
		}))
	}
	return types.ListValueMust(weightType, entries)
}

// onceKey is an idempotency key for the retries of one create. Endpoints and
// deployments are told apart by name, not by content: a key from content would let
// two configurations silently share one endpoint.
func onceKey() string { return "sluice-" + rand.Text() }
