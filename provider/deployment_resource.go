package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

var (
	_ resource.ResourceWithConfigure      = (*deploymentResource)(nil)
	_ resource.ResourceWithImportState    = (*deploymentResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*deploymentResource)(nil)
	_ resource.ResourceWithValidateConfig = (*deploymentResource)(nil)
)

func newDeploymentResource() resource.Resource { return &deploymentResource{} }

type deploymentResource struct{ engine *engine }

type deploymentModel struct {
	ID                   types.String   `tfsdk:"id"`
	EndpointID           types.String   `tfsdk:"endpoint_id"`
	Name                 types.String   `tfsdk:"name"`
	Model                types.String   `tfsdk:"model"`
	Config               types.String   `tfsdk:"config"`
	Autoscaling          types.Object   `tfsdk:"autoscaling"`
	InitialTrafficWeight types.Float64  `tfsdk:"initial_traffic_weight"`
	WaitReady            types.Bool     `tfsdk:"wait_ready"`
	Timeouts             timeouts.Value `tfsdk:"timeouts"`
	QualifiedName        types.String   `tfsdk:"qualified_name"`
	Hardware             types.String   `tfsdk:"hardware"`
	ModelRevisionID      types.String   `tfsdk:"model_revision_id"`
	Status               types.String   `tfsdk:"status"`
	LiveMinReplicas      types.Int64    `tfsdk:"live_min_replicas"`
	LiveMaxReplicas      types.Int64    `tfsdk:"live_max_replicas"`
	ReadyReplicas        types.Int64    `tfsdk:"ready_replicas"`
}

var boundsType = types.ObjectType{AttrTypes: map[string]attr.Type{"min_replicas": wholeNumber, "max_replicas": wholeNumber}}

const prefixDeploymentState = "DEPLOYMENT_STATE_"

// Metadata names the resource.
func (r *deploymentResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_deployment"
}

// Schema describes a deployment.
func (r *deploymentResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	fixed := []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "One model behind an endpoint, served by replicas of one config. A new one gets no traffic unless `initial_traffic_weight` says so; a `sluice_rollout` moves traffic to it later.",
		Attributes: map[string]schema.Attribute{
			"id":          schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "Deployment id, `dep_…`."},
			"endpoint_id": schema.StringAttribute{Required: true, PlanModifiers: replace, MarkdownDescription: "Endpoint that the deployment belongs to."},
			"name":        schema.StringAttribute{Required: true, PlanModifiers: replace, MarkdownDescription: "Name inside the endpoint; clients may pin the deployment by it."},
			"model": schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: fixed,
				MarkdownDescription: "Model to serve, for example `demo/qwen2.5-7b`, or its resource name. May be left out when `config` serves one model only."},
			"config": schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: fixed,
				MarkdownDescription: "Serving config (`cr_…`). May be left out when the model has exactly one. How a model is started stands with the engine, never in HCL."},
			"autoscaling": schema.SingleNestedAttribute{
				Required: true,
				MarkdownDescription: "Replica bounds as you want them. They are written when they change here. A rollout raises floors and lowers them again by itself: " +
					"that is not drift, see `live_min_replicas`. `0` and `0` stop the deployment, as a rollout's target may be.",
				Attributes: map[string]schema.Attribute{
					"min_replicas": schema.NumberAttribute{Required: true, CustomType: wholeNumber, MarkdownDescription: "Floor, at least 1 unless the deployment is stopped."},
					"max_replicas": schema.NumberAttribute{Required: true, CustomType: wholeNumber, MarkdownDescription: "Ceiling, at least the floor."},
				},
			},
			"initial_traffic_weight": schema.Float64Attribute{
				Optional: true, Computed: true, Default: float64default.StaticFloat64(0), Validators: []validator.Float64{float64validator.AtLeast(0)},
				MarkdownDescription: "Weight in the endpoint's split, set once when the deployment is made; 0 (default) for none. Afterwards rollouts own the split: adding, changing or removing this value later does nothing. After an import it is the weight that was found.",
			},
			"wait_ready": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Wait after a create or a change of bounds until the floor's replicas answer (default `true`)."},
			"timeouts":          deploymentTimeouts(ctx),
			"qualified_name":    schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "`slug/endpoint/deployment`, usable as inference `model` past the split."},
			"hardware":          schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "Hardware type of one replica."},
			"model_revision_id": schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "Revision that is served, `rv_…`."},
			"status":            schema.StringAttribute{Computed: true, MarkdownDescription: "`PROVISIONING`, `SCALING`, `READY`, `DEGRADED`, `STOPPING`, `STOPPED` or `FAILED`, as last read."},
			"live_min_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Floor in effect, which a rollout may have raised."},
			"live_max_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Ceiling in effect."},
			"ready_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Replicas that answered when last read."},
		},
	}
}

func deploymentTimeouts(ctx context.Context) schema.Attribute {
	return described(timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Update: true, Delete: true,
		CreateDescription: "How long to wait until a new deployment answers, for example `45m` (default 30 min). When it ends the deployment stays, with a warning.",
		UpdateDescription: "How long to wait after a change of bounds (default 30 min).",
		DeleteDescription: "How long replicas may finish what they hold (default 20 min).",
	}), "How long to wait for replicas.")
}

// described gives the timeouts attribute a description.
func described(a schema.Attribute, text string) schema.Attribute {
	nested, ok := a.(schema.SingleNestedAttribute)
	if !ok {
		return a
	}
	nested.MarkdownDescription = text
	return nested
}

// Configure takes the client.
func (r *deploymentResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	r.engine = e
}

// ValidateConfig refuses bounds that no deployment can have.
func (r *deploymentResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m deploymentModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.Autoscaling.IsUnknown() || m.Autoscaling.IsNull() {
		return
	}
	low, lowKnown := wholeAt(m.Autoscaling, "min_replicas").int()
	high, highKnown := wholeAt(m.Autoscaling, "max_replicas").int()
	if !lowKnown || !highKnown {
		return
	}
	at := path.Root("autoscaling")
	switch {
	case low < 0:
		resp.Diagnostics.AddAttributeError(at, "Less than no replica", fmt.Sprintf("min_replicas %d is below 0.", low))
	case high < low:
		resp.Diagnostics.AddAttributeError(at, "Ceiling below the floor", fmt.Sprintf("max_replicas %d is below min_replicas %d.", high, low))
	case low == 0 && high > 0:
		resp.Diagnostics.AddAttributeError(at, "A running deployment keeps a replica", "min_replicas 0 goes with max_replicas 0 only, which stops the deployment. Give at least 1.")
	}
}

// Create makes the deployment, puts it into the split if asked, and waits until it
// answers. The id is saved before the first wait: a timeout or an interrupt leaves
// a deployment that the next apply knows.
func (r *deploymentResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.engine.acts()
	var m deploymentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	endpoint, weight := m.EndpointID.ValueString(), m.InitialTrafficWeight.ValueFloat64()
	if weight > 0 { // refused before anything is made, not after
		e, err := r.engine.client.GetEndpoint(ctx, endpoint)
		if err != nil {
			addRefusal(&resp.Diagnostics, "read endpoint "+endpoint, err)
			return
		}
		if e.ActiveRolloutID != "" {
			addHeld(ctx, r.engine, &resp.Diagnostics, "give deployment "+m.Name.ValueString()+" its initial_traffic_weight", endpoint)
			return
		}
	}
	d, err := r.engine.client.CreateDeployment(ctx, endpoint, api.CreateDeployment{
		Name: m.Name.ValueString(), Model: m.Model.ValueString(), Config: m.Config.ValueString(), Autoscaling: m.bounds(),
	}, onceKey())
	if taken(err) {
		r.engine.deploymentTaken(ctx, &resp.Diagnostics, endpoint, m.Name.ValueString(), err)
		return
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "create deployment "+m.Name.ValueString(), err)
		return
	}
	m.apply(d)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if weight > 0 {
		if _, err := r.engine.client.SetWeight(ctx, endpoint, d.ID, weight); err != nil {
			resp.Diagnostics.AddAttributeWarning(path.Root("initial_traffic_weight"), "The deployment gets no traffic yet",
				fmt.Sprintf("Deployment %s is made, but its weight could not be set: %v. Set it by hand, or move traffic with a sluice_rollout.", d.ID, err))
		}
	}
	timeout, diags := m.Timeouts.Create(ctx, readyWithin)
	resp.Diagnostics.Append(diags...)
	r.settle(ctx, &m, timeout, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Read refreshes the state. The bounds stay those that were asked for; what is in
// effect stands beside them.
func (r *deploymentResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m deploymentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() || r.engine.client == nil {
		return
	}
	d, gone, err := readTwice(ctx, r.engine.client, func() (api.Deployment, error) {
		return r.engine.seen.deployment(ctx, r.engine.client, m.EndpointID.ValueString(), m.ID.ValueString())
	})
	if gone {
		if err = sameProject(ctx, r.engine.client, m.QualifiedName.ValueString()); err == nil {
			resp.State.RemoveResource(ctx)
			return
		}
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "read deployment "+m.ID.ValueString(), err)
		return
	}
	m.apply(d)
	if m.InitialTrafficWeight.IsNull() { // an import
		e, err := r.engine.seen.endpoint(ctx, r.engine.client, m.EndpointID.ValueString())
		if err != nil {
			addRefusal(&resp.Diagnostics, "read endpoint "+m.EndpointID.ValueString(), err)
			return
		}
		m.InitialTrafficWeight = types.Float64Value(planning.WeightIn(e.TrafficSplit, m.ID.ValueString()))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update writes bounds that changed in the configuration, and only those.
func (r *deploymentResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.engine.acts()
	var m, state deploymentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	endpoint, id := m.EndpointID.ValueString(), m.ID.ValueString()
	d, err := r.engine.client.GetDeployment(ctx, endpoint, id)
	if err == nil && !m.Autoscaling.Equal(state.Autoscaling) {
		bounds := m.bounds()
		d, err = r.engine.client.UpdateDeployment(ctx, endpoint, id, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &bounds})
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "update deployment "+id, err)
		return
	}
	m.apply(d)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if !m.Autoscaling.Equal(state.Autoscaling) {
		timeout, diags := m.Timeouts.Update(ctx, readyWithin)
		resp.Diagnostics.Append(diags...)
		r.settle(ctx, &m, timeout, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// ImportState takes a deployment over by "endpoint_id/deployment_id", by its id
// alone, or by its identity.
func (r *deploymentResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	in := importInto{engine: r.engine, req: req, resp: resp}
	if !in.pair(ctx, "deployment", r.engine.endpointOfDeployment) {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("wait_ready"), true)...)
}

const (
	readyWithin   = 30 * time.Minute
	stoppedWithin = 20 * time.Minute
)

func (m deploymentModel) bounds() api.Autoscaling {
	low, high := wholeAt(m.Autoscaling, "min_replicas").orZero(), wholeAt(m.Autoscaling, "max_replicas").orZero()
	return api.Autoscaling{MinReplicas: &low, MaxReplicas: &high}
}

// apply takes over what the engine told. What was configured keeps its spelling.
func (m *deploymentModel) apply(d api.Deployment) {
	m.ID = types.StringValue(d.ID)
	m.QualifiedName = types.StringValue(d.Name)
	if m.Name.IsNull() {
		m.Name = types.StringValue(d.Name[strings.LastIndex(d.Name, "/")+1:])
	}
	if m.Model.IsNull() || m.Model.IsUnknown() {
		m.Model = types.StringValue(bareName(d.Model, "models"))
	}
	if m.Config.IsNull() || m.Config.IsUnknown() {
		m.Config = types.StringValue(bareName(d.Config, "configs"))
	}
	low := 0
	if d.Autoscaling.MinReplicas != nil {
		low = *d.Autoscaling.MinReplicas
	}
	high := low
	if d.Autoscaling.MaxReplicas != nil {
		high = *d.Autoscaling.MaxReplicas
	}
	if m.Autoscaling.IsNull() {
		m.Autoscaling = types.ObjectValueMust(boundsType.AttrTypes, map[string]attr.Value{"min_replicas": wholeOf(low), "max_replicas": wholeOf(high)})
	}
	m.LiveMinReplicas, m.LiveMaxReplicas = types.Int64Value(int64(low)), types.Int64Value(int64(high))
	m.Hardware, m.ModelRevisionID = optionalString(d.Hardware), optionalString(d.ModelRevisionID)
	m.Status = types.StringValue(shortEnum(prefixDeploymentState, d.Status.State))
	m.ReadyReplicas = types.Int64Value(int64(d.Status.ReadyReplicas))
}

// bareName cuts "projects/{p}/{collection}/" and a revision off a resource name.
func bareName(name, collection string) string {
	if _, after, ok := strings.Cut(name, "/"+collection+"/"); ok && strings.HasPrefix(name, "projects/") {
		name = after
	}
	name, _, _ = strings.Cut(name, "/revisions/")
	return name
}

// settle waits until a deployment has what its floor asks for. That the wait ends
// early is a warning: the deployment is there and goes on by itself.
func (r *deploymentResource) settle(ctx context.Context, m *deploymentModel, within time.Duration, diags *diag.Diagnostics) {
	if !m.WaitReady.ValueBool() || wholeAt(m.Autoscaling, "min_replicas").orZero() == 0 {
		return
	}
	d, err := r.awaitDeployment(ctx, m.EndpointID.ValueString(), m.ID.ValueString(), within, func(d api.Deployment) bool {
		return d.Status.State == api.DeploymentReady || d.Status.State == api.DeploymentFailed
	})
	if d.ID != "" {
		m.apply(d)
	}
	switch {
	case err != nil:
		diags.AddWarning(fmt.Sprintf("Deployment %s does not answer yet", m.ID.ValueString()),
			fmt.Sprintf("The wait ended (%v) while it was %s with %s. It goes on by itself; a rollout from it starts once it is READY.", err, m.Status.ValueString(), planning.Count(int(m.ReadyReplicas.ValueInt64()), "ready replica")))
	case d.Status.State == api.DeploymentFailed:
		diags.AddError(fmt.Sprintf("Deployment %s failed", d.ID), sentence(d.Status.Message)+" A failed deployment cannot be restarted; look at its logs, mend the cause and apply again.")
	}
}
