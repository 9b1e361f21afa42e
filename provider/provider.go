package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

var (
	_ provider.Provider                  = (*sluiceProvider)(nil)
	_ provider.ProviderWithListResources = (*sluiceProvider)(nil)
	_ provider.ProviderWithFunctions     = (*sluiceProvider)(nil)
)

// New makes the provider's constructor; version goes into the user agent.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &sluiceProvider{version: version} }
}

type sluiceProvider struct {
	version string
	adjust  func(*engineclient.Config) // a test's other network or shorter patience; nil for none
}

type providerModel struct {
	EngineURL types.String `tfsdk:"engine_url"`
	APIKey    types.String `tfsdk:"api_key"`
	Project   types.String `tfsdk:"project"`

	limitsModel
	APIKeyFile   types.String `tfsdk:"api_key_file"`
	ProgressFile types.String `tfsdk:"progress_file"`
}

// Metadata names the provider's type.
func (p *sluiceProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "sluice", p.version
}

// Schema is the provider block.
func (p *sluiceProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Moves live model traffic between deployments as declared rollouts. Talks to a Sluice engine or to a hosted platform that speaks the same v2 API.",
		Attributes: map[string]schema.Attribute{
			"engine_url": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Address of the engine, for example `http://127.0.0.1:8420`; a `/v2` at the end may be left out. Falls back to the environment variables `SLUICE_ENGINE_URL`, then `TOGETHER_BASE_URL`.",
			},
			"api_key": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "API key with the scope `operate`; `read` is enough for plans. Falls back to `SLUICE_API_KEY`, then `TOGETHER_API_KEY`.",
			},
			"api_key_file":  keyFileAttribute(),
			"progress_file": progressFileAttribute(),
			"project": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Project id (`proj_…`). Falls back to `SLUICE_PROJECT`, then `TOGETHER_PROJECT_ID`, then the project that the key belongs to.",
			},
		},
	}
	maps.Copy(resp.Schema.Attributes, limitAttributes())
}

// setting is one provider setting with where it may come from.
type setting struct {
	attribute string
	value     types.String
	env       []string
}

// resolve prefers the configuration to the environment, in order.
func (s setting) resolve() string {
	if v := strings.TrimSpace(s.value.ValueString()); v != "" {
		return v
	}
	for _, name := range s.env {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return ""
}

// Configure makes the client and asks once whether it reaches an engine, with the
// key and the project. A setting that is not known yet leaves the provider
// without one: plans then tell what they can without the engine.
func (p *sluiceProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.EngineURL.IsUnknown() || m.APIKey.IsUnknown() || m.APIKeyFile.IsUnknown() || m.Project.IsUnknown() || m.limitsUnknown() {
		d := &engine{seen: newSeen()}
		resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = d, d, d, d
		return
	}
	url := setting{"engine_url", m.EngineURL, []string{"SLUICE_ENGINE_URL", "TOGETHER_BASE_URL"}}
	key := setting{"api_key", m.APIKey, []string{"SLUICE_API_KEY", "TOGETHER_API_KEY"}}
	key, renew := m.keySource(key, &resp.Diagnostics)
	project := setting{"project", m.Project, []string{"SLUICE_PROJECT", "TOGETHER_PROJECT_ID"}}
	for _, s := range []setting{url, key} {
		if s.resolve() == "" {
			resp.Diagnostics.AddAttributeError(path.Root(s.attribute), "Missing "+s.attribute,
				fmt.Sprintf("Set %s in the provider block, or one of the environment variables %s.", s.attribute, strings.Join(s.env, ", ")))
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	config := engineclient.Config{
		BaseURL: url.resolve(), APIKey: key.resolve(), RenewKey: renew, Project: project.resolve(),
		UserAgent: fmt.Sprintf("terraform-provider-sluice/%s Terraform/%s", p.version, req.TerraformVersion),
	}
	m.limit(&config)
	if p.adjust != nil {
		p.adjust(&config)
	}
	client, err := engineclient.New(config)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("engine_url"), "Invalid engine", err.Error())
		return
	}
	if err := client.Verify(ctx); err != nil {
		addUnusable(&resp.Diagnostics, err)
		return
	}
	d := &engine{client: client, progress: m.progressFile(), seen: newSeen()}
	d.introduce(ctx)
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = d, d, d, d
}

// addUnusable reports an engine that cannot be worked with. It ends the run before
// any resource is read: one that is not found at a wrong address is not gone.
func addUnusable(diags *diag.Diagnostics, err error) {
	var wrong *engineclient.WrongAddress
	if !errors.As(err, &wrong) {
		addRefusal(diags, "use the engine", err)
		return
	}
	diags.AddError("This is not the engine or project that was meant",
		sentence(render.Inert(wrong.What))+" "+sentence(wrong.Hint)+" (engine_url or SLUICE_ENGINE_URL; project or SLUICE_PROJECT.) It answered: "+render.Inert(wrong.Err.Error()))
}

// Resources lists the resources.
func (p *sluiceProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newEndpointResource, newDeploymentResource, newRolloutResource, newSplitResource}
}

// DataSources lists the data sources.
func (p *sluiceProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newPreviewDataSource, newGateDataSource,
		newEndpointDataSource, newDeploymentDataSource, newRolloutDataSource, newRolloutsDataSource, newHardwareDataSource, newEventsDataSource,
	}
}

// Functions lists the functions.
func (p *sluiceProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newLadderFunction, newSoakFunction, newReplicasFunction, newParseFunction}
}

// ListResources lists what terraform query can find.
func (p *sluiceProvider) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{newEndpointList, newDeploymentList, newRolloutList}
}

// engine is what the provider hands to its resources. client is nil while the
// provider's configuration is not known.
type engine struct {
	client   *engineclient.Client
	progress *progressFile // nil for none
	seen     *seen         // by a refresh; never by what acts
}

// timings are the waits that the engine runs by: its own when it tells them, else
// the published ones.
func (e *engine) timings(ctx context.Context) (rollout.Timings, error) {
	who, err := e.client.WhoAmI(ctx)
	if err != nil {
		return rollout.Timings{}, err
	}
	if who.Sluice == nil || who.Sluice.Timings == nil {
		return rollout.DefaultTimings(), nil
	}
	return wire.TimingsFromAPI(*who.Sluice.Timings), nil
}

// ours reports whether the engine takes what only Sluice's own does.
func (e *engine) ours(ctx context.Context) (bool, error) {
	who, err := e.client.WhoAmI(ctx)
	return who.Sluice != nil, err
}

// engineOf reads what Configure handed over. It is nil before Configure ran, as
// during validation.
func engineOf(data any) (*engine, error) {
	switch d := data.(type) {
	case nil:
		return nil, nil //nolint:nilnil // the framework asks before it configures
	case *engine:
		return d, nil
	}
	return nil, fmt.Errorf("unexpected provider data %T; report this", data)
}
