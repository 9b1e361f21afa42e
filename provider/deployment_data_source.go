package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
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
	_ datasource.DataSourceWithConfigure        = (*deploymentDataSource)(nil)
	_ datasource.DataSourceWithConfigValidators = (*deploymentDataSource)(nil)
)

func newDeploymentDataSource() datasource.DataSource { return &deploymentDataSource{} }

type deploymentDataSource struct{ reader }

type deploymentDataModel struct {
	ID                types.String   `tfsdk:"id"`
	EndpointID        types.String   `tfsdk:"endpoint_id"`
	Name              types.String   `tfsdk:"name"`
	QualifiedName     types.String   `tfsdk:"qualified_name"`
	Model             types.String   `tfsdk:"model"`
	ModelRevisionID   types.String   `tfsdk:"model_revision_id"`
	Config            types.String   `tfsdk:"config"`
	Hardware          types.String   `tfsdk:"hardware"`
	Status            types.String   `tfsdk:"status"`
	Message           types.String   `tfsdk:"message"`
	MinReplicas       types.Int64    `tfsdk:"min_replicas"`
	MaxReplicas       types.Int64    `tfsdk:"max_replicas"`
	DesiredReplicas   types.Int64    `tfsdk:"desired_replicas"`
	ReadyReplicas     types.Int64    `tfsdk:"ready_replicas"`
	ScheduledReplicas types.Int64    `tfsdk:"scheduled_replicas"`
	TrafficShare      types.Float64  `tfsdk:"traffic_share"`
	CreatedAt         types.String   `tfsdk:"created_at"`
	Replicas          []replicaModel `tfsdk:"replicas"`
}

type replicaModel struct {
	ID      types.String `tfsdk:"id"`
	State   types.String `tfsdk:"state"`
	Message types.String `tfsdk:"message"`
	Since   types.String `tfsdk:"since"`
}

// Metadata names the data source.
func (d *deploymentDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_deployment"
}

// Schema describes a deployment as it is now.
func (d *deploymentDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A deployment as it is now. Give its `id`, with the `endpoint_id` if it is known; or `endpoint_id` and `name`. " +
			fmt.Sprintf("Calls to the engine: one with `id` and `endpoint_id`; by name one for each 500 deployments of the endpoint; by `id` alone one for each 500 endpoints, one for each endpoint with ten or more deployments (at most %d) and one for the deployment.", mostEndpoints),
		Attributes: map[string]schema.Attribute{
			"id":                 schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Deployment id, `dep_…`."},
			"endpoint_id":        schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Endpoint that it belongs to."},
			"name":               schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("endpoint_id"))}, MarkdownDescription: "Name inside the endpoint; goes with `endpoint_id`."},
			"qualified_name":     given("`slug/endpoint/deployment`, usable as inference `model` past the split."),
			"model":              given("Model that it serves."),
			"model_revision_id":  given("Revision that is served, `rv_…`; null when the engine does not tell."),
			"config":             given("Serving config, `cr_…`."),
			"hardware":           given("Hardware type of one replica; null when the engine does not tell."),
			"status":             given("`PROVISIONING`, `SCALING`, `READY`, `DEGRADED`, `STOPPING`, `STOPPED` or `FAILED`."),
			"message":            given("What the engine says about the status; null when nothing."),
			"min_replicas":       givenInt("Floor in effect, which a rollout may have raised."),
			"max_replicas":       givenInt("Ceiling in effect."),
			"desired_replicas":   givenInt("Replicas that there should be now; null when the engine does not tell."),
			"ready_replicas":     givenInt("Replicas that answer."),
			"scheduled_replicas": givenInt("Replicas that there are, ready or not."),
			"traffic_share":      givenFloat("Share of the endpoint's traffic by the split, 0 to 1; null when the engine does not tell."),
			"created_at":         given("When it was made, RFC 3339."),
			"replicas": givenList("Each replica; null when the engine does not tell.", map[string]schema.Attribute{
				"id":      given("Replica."),
				"state":   given("Where it is."),
				"message": given("What is said about it; null when nothing."),
				"since":   given("Since when it is there, RFC 3339."),
			}),
		},
	}
}

// ConfigValidators want an id or a name.
func (d *deploymentDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(path.MatchRoot("id"), path.MatchRoot("name"))}
}

// Read looks once.
func (d *deploymentDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m deploymentDataModel
	if !d.ready(ctx, req, &m, &resp.Diagnostics) {
		return
	}
	x, err := d.find(ctx, &m)
	if err != nil {
		addRefusal(&resp.Diagnostics, "read deployment "+orElse(m.ID.ValueString(), m.Name.ValueString()), err)
		return
	}
	m.fill(x)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// find reads the deployment; it sets the endpoint when that was not given.
func (d *deploymentDataSource) find(ctx context.Context, m *deploymentDataModel) (api.Deployment, error) {
	if m.ID.IsNull() {
		return d.named(ctx, m.EndpointID.ValueString(), m.Name.ValueString())
	}
	if m.EndpointID.IsNull() {
		endpoint, err := d.engine.endpointOfDeployment(ctx, m.ID.ValueString())
		if err != nil {
			return api.Deployment{}, err
		}
		m.EndpointID = types.StringValue(endpoint)
	}
	return d.engine.client.GetDeployment(ctx, m.EndpointID.ValueString(), m.ID.ValueString())
}

func (d *deploymentDataSource) named(ctx context.Context, endpoint, name string) (api.Deployment, error) {
	for x, err := range d.engine.client.Deployments(ctx, endpoint, engineclient.ListOptions{PageSize: api.MaxPageSize}) {
		if err != nil {
			return api.Deployment{}, err
		}
		if x.Name == name || lastPart(x.Name) == name {
			return x, nil
		}
	}
	return api.Deployment{}, fmt.Errorf("endpoint %s has no deployment %q", endpoint, name)
}

func (m *deploymentDataModel) fill(x api.Deployment) {
	m.ID, m.QualifiedName = types.StringValue(x.ID), types.StringValue(x.Name)
	if m.Name.IsNull() {
		m.Name = types.StringValue(lastPart(x.Name))
	}
	m.Model, m.ModelRevisionID = types.StringValue(bareName(x.Model, "models")), optionalString(x.ModelRevisionID)
	m.Config, m.Hardware = types.StringValue(bareName(x.Config, "configs")), optionalString(x.Hardware)
	m.Status, m.Message = types.StringValue(shortEnum(prefixDeploymentState, x.Status.State)), optionalString(x.Status.Message)
	m.MinReplicas, m.MaxReplicas, m.DesiredReplicas = optionalInt(x.Autoscaling.MinReplicas), optionalInt(x.Autoscaling.MaxReplicas), optionalInt(x.DesiredReplicas)
	m.ReadyReplicas, m.ScheduledReplicas = types.Int64Value(int64(x.Status.ReadyReplicas)), types.Int64Value(int64(x.Status.ScheduledReplicas))
	m.TrafficShare, m.CreatedAt = types.Float64PointerValue(x.EstimatedEffectiveTrafficShare), instant(&x.CreatedAt)
	if x.Sluice == nil {
		return
	}
	m.Replicas = make([]replicaModel, 0, len(x.Sluice.Replicas))
	for _, r := range x.Sluice.Replicas {
		m.Replicas = append(m.Replicas, replicaModel{ID: types.StringValue(r.ID), State: types.StringValue(r.State), Message: optionalString(r.Message), Since: instant(&r.Since)})
	}
}
