package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

var (
	_ datasource.DataSourceWithConfigure        = (*endpointDataSource)(nil)
	_ datasource.DataSourceWithConfigValidators = (*endpointDataSource)(nil)
)

func newEndpointDataSource() datasource.DataSource { return &endpointDataSource{} }

type endpointDataSource struct{ reader }

type endpointDataModel struct {
	ID                types.String     `tfsdk:"id"`
	Name              types.String     `tfsdk:"name"`
	QualifiedName     types.String     `tfsdk:"qualified_name"`
	ProjectID         types.String     `tfsdk:"project_id"`
	Visibility        types.String     `tfsdk:"visibility"`
	CreatedAt         types.String     `tfsdk:"created_at"`
	GatewayURL        types.String     `tfsdk:"gateway_url"`
	RequestsPerSecond types.Float64    `tfsdk:"requests_per_second"`
	TrafficSplit      types.List       `tfsdk:"traffic_split"`
	Serving           []servedModel    `tfsdk:"serving"`
	Deployments       []deploymentLine `tfsdk:"deployments"`
	ActiveRollout     *activeModel     `tfsdk:"active_rollout"`
}

// servedModel is one deployment's part of the traffic.
type servedModel struct {
	DeploymentID  types.String  `tfsdk:"deployment_id"`
	SetShare      types.Float64 `tfsdk:"set_share"`
	ActualShare   types.Float64 `tfsdk:"actual_share"`
	Requests      types.Int64   `tfsdk:"requests"`
	ReadyReplicas types.Int64   `tfsdk:"ready_replicas"`
}

// deploymentLine is a deployment as its endpoint shows it.
type deploymentLine struct {
	ID            types.String `tfsdk:"id"`
	Name          types.String `tfsdk:"name"`
	Model         types.String `tfsdk:"model"`
	Status        types.String `tfsdk:"status"`
	Hardware      types.String `tfsdk:"hardware"`
	MinReplicas   types.Int64  `tfsdk:"min_replicas"`
	MaxReplicas   types.Int64  `tfsdk:"max_replicas"`
	ReadyReplicas types.Int64  `tfsdk:"ready_replicas"`
}

// activeModel is the rollout that holds an endpoint.
type activeModel struct {
	RolloutID          types.String `tfsdk:"rollout_id"`
	State              types.String `tfsdk:"state"`
	SourceDeploymentID types.String `tfsdk:"source_deployment_id"`
	TargetDeploymentID types.String `tfsdk:"target_deployment_id"`
	TrafficPercent     types.Int64  `tfsdk:"traffic_percent"`
}

// Metadata names the data source.
func (d *endpointDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_endpoint"
}

// Schema describes an endpoint as it is now.
func (d *endpointDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "An endpoint as it is now: its split as set and as served, its deployments, the rollout that holds it. Give its `id`, or its `name`. " +
			"Calls to the engine: one by id, or by name one for each 500 endpoints of the project; one more while a rollout is active, and one for each 500 deployments of an endpoint with ten or more.",
		Attributes: map[string]schema.Attribute{
			"id":                  schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Endpoint id, `ep_…`."},
			"name":                schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Name inside the project, with or without the project's slug."},
			"qualified_name":      given("What clients send as `model`: `slug/name`."),
			"project_id":          given("Project, `proj_…`."),
			"visibility":          given("`PRIVATE` or `INTERNAL`."),
			"created_at":          given("When it was made, RFC 3339."),
			"gateway_url":         given("Base address for inference; null when the engine does not tell."),
			"requests_per_second": givenFloat("Requests a second over the last minute; null when the engine does not tell."),
			"traffic_split": givenList("The split as set, without entries of weight 0. While a rollout is active it is on its way.", map[string]schema.Attribute{
				"deployment_id": given("Deployment that gets traffic."),
				"weight":        givenFloat("Weight of one ready replica: the share is weight × ready replicas over the sum of all."),
			}),
			"serving": givenList("Who serves how much; null when the engine does not tell.", map[string]schema.Attribute{
				"deployment_id":  given("Deployment."),
				"set_share":      givenFloat("Share that the routing table gives it, 0 to 1."),
				"actual_share":   givenFloat("Its part of the requests that ended in the last minute, 0 to 1; null when there were none."),
				"requests":       givenInt("Requests that ended in the last minute."),
				"ready_replicas": givenInt("Replicas that answer."),
			}),
			"deployments": givenList("All its deployments, newest first.", map[string]schema.Attribute{
				"id":             given("Deployment id, `dep_…`."),
				"name":           given("Name inside the endpoint."),
				"model":          given("Model that it serves."),
				"status":         given("As `status` of `sluice_deployment`."),
				"hardware":       given("Hardware type of one replica; null when the engine does not tell."),
				"min_replicas":   givenInt("Floor in effect."),
				"max_replicas":   givenInt("Ceiling in effect."),
				"ready_replicas": givenInt("Replicas that answer."),
			}),
			"active_rollout": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "The rollout that holds the endpoint; null when it is free.", Attributes: map[string]schema.Attribute{
				"rollout_id":           given("Rollout id, `rol_…`."),
				"state":                given("Its state."),
				"source_deployment_id": given("Where traffic comes from."),
				"target_deployment_id": given("Where it goes."),
				"traffic_percent":      givenInt("Percent of the pair on the target."),
			}},
		},
	}
}

// ConfigValidators want an id or a name.
func (d *endpointDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(path.MatchRoot("id"), path.MatchRoot("name"))}
}

// Read looks once.
func (d *endpointDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m endpointDataModel
	if !d.ready(ctx, req, &m, &resp.Diagnostics) {
		return
	}
	ep, err := d.find(ctx, m)
	if err == nil {
		err = d.fill(ctx, &m, ep)
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "read endpoint "+orElse(m.ID.ValueString(), m.Name.ValueString()), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (d *endpointDataSource) find(ctx context.Context, m endpointDataModel) (api.Endpoint, error) {
	if !m.ID.IsNull() {
		return d.engine.client.GetEndpoint(ctx, m.ID.ValueString())
	}
	return d.engine.endpointNamed(ctx, m.Name.ValueString())
}

// endpointNamed looks an endpoint up by its name, with or without the slug.
func (e *engine) endpointNamed(ctx context.Context, name string) (api.Endpoint, error) {
	all, err := e.everyEndpoint(ctx)
	if err != nil {
		return api.Endpoint{}, err
	}
	for _, ep := range all {
		if ep.Name == name || lastPart(ep.Name) == name {
			return ep, nil
		}
	}
	return api.Endpoint{}, fmt.Errorf("none of the project's %s has the name %q", planning.Count(len(all), "endpoint"), name)
}

// lastPart is a name without what it is qualified by.
func lastPart(name string) string { return name[strings.LastIndex(name, "/")+1:] }

func (d *endpointDataSource) fill(ctx context.Context, m *endpointDataModel, ep api.Endpoint) error {
	m.ID, m.QualifiedName, m.ProjectID = types.StringValue(ep.ID), types.StringValue(ep.Name), optionalString(ep.ProjectID)
	if m.Name.IsNull() {
		m.Name = types.StringValue(lastPart(ep.Name))
	}
	m.Visibility, m.CreatedAt = optionalString(shortEnum(prefixVisibility, ep.Visibility)), instant(&ep.CreatedAt)
	m.TrafficSplit = splitValue(ep.TrafficSplit)
	if x := ep.Sluice; x != nil {
		m.GatewayURL, m.RequestsPerSecond = optionalString(x.GatewayURL), types.Float64PointerValue(x.RequestsPerSecond)
		m.Serving = served(x.Serving)
	}
	if ep.ActiveRolloutID != "" {
		r, err := d.engine.client.GetRollout(ctx, ep.ID, ep.ActiveRolloutID)
		if err != nil {
			return err
		}
		m.ActiveRollout = &activeModel{RolloutID: types.StringValue(r.ID), State: types.StringValue(engineclient.Short(r.State)),
			SourceDeploymentID: types.StringValue(r.SourceDeploymentID), TargetDeploymentID: types.StringValue(r.TargetDeploymentID), TrafficPercent: types.Int64Value(int64(percentOf(r)))}
	}
	var err error
	m.Deployments, err = d.lines(ctx, ep)
	return err
}

func served(parts []api.ServedPart) []servedModel {
	total := int64(0)
	for _, p := range parts {
		total += p.Requests
	}
	out := make([]servedModel, 0, len(parts))
	for _, p := range parts {
		actual := types.Float64Null()
		if total > 0 {
			actual = types.Float64Value(float64(p.Requests) / float64(total))
		}
		out = append(out, servedModel{DeploymentID: types.StringValue(p.DeploymentID), SetShare: types.Float64Value(p.SetShare), ActualShare: actual,
			Requests: types.Int64Value(p.Requests), ReadyReplicas: types.Int64Value(int64(p.ReadyReplicas))})
	}
	return out
}

// lines are the endpoint's deployments: those that it shows, or, when it may have
// more, those of their own list.
func (d *endpointDataSource) lines(ctx context.Context, ep api.Endpoint) ([]deploymentLine, error) {
	out := make([]deploymentLine, 0, len(ep.Deployments))
	if len(ep.Deployments) < embeddedDeployments {
		for _, s := range ep.Deployments {
			out = append(out, deploymentLine{ID: types.StringValue(s.ID), Name: types.StringValue(lastPart(s.Name)), Model: types.StringValue(bareName(s.Model, "models")),
				Status: types.StringValue(shortEnum(prefixDeploymentState, s.State)), Hardware: optionalString(s.Hardware), MinReplicas: optionalInt(s.Autoscaling.MinReplicas),
				MaxReplicas: optionalInt(s.Autoscaling.MaxReplicas), ReadyReplicas: types.Int64Value(int64(s.ReadyReplicas))})
		}
		return out, nil
	}
	for x, err := range d.engine.client.Deployments(ctx, ep.ID, engineclient.ListOptions{PageSize: api.MaxPageSize}) {
		if err != nil {
			return nil, err
		}
		out = append(out, deploymentLine{ID: types.StringValue(x.ID), Name: types.StringValue(lastPart(x.Name)), Model: types.StringValue(bareName(x.Model, "models")),
			Status: types.StringValue(shortEnum(prefixDeploymentState, x.Status.State)), Hardware: optionalString(x.Hardware), MinReplicas: optionalInt(x.Autoscaling.MinReplicas),
			MaxReplicas: optionalInt(x.Autoscaling.MaxReplicas), ReadyReplicas: types.Int64Value(int64(x.Status.ReadyReplicas))})
	}
	return out, nil
}
