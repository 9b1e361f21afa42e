package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
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
	planning.ShownPreview
}

// hardwareType is the hardware of the source: the same attributes as the target's.
var hardwareType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"id": types.StringType, "gpu_type": types.StringType, "gpu_count": types.Int64Type,
	"price_cents_per_hour": types.Int64Type, "headroom": types.Int64Type, "headroom_is_exact": types.BoolType,
}}

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
	ahead, ok := d.look(ctx, m.EndpointID.ValueString(), planning.Ahead{Digest: planning.Digest(spec), Spec: dec.spec, Timings: t}, &resp.Diagnostics)
	if !ok {
		return
	}
	m.SourceDeploymentID, m.ShownPreview = optionalString(ahead.Spec.SourceDeploymentID), ahead.Shown()
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// look reads what stands of the endpoint and what the engine would make of the spec.
func (d *previewDataSource) look(ctx context.Context, endpoint string, a planning.Ahead, diags *diag.Diagnostics) (planning.Ahead, bool) {
	var err error
	if a.Endpoint, err = d.engine.client.GetEndpoint(ctx, endpoint); err != nil {
		addRefusal(diags, "read endpoint "+endpoint, err)
		return a, false
	}
	active, found, err := d.engine.client.ActiveRollout(ctx, endpoint)
	if err != nil {
		addRefusal(diags, "read the rollouts of endpoint "+endpoint, err)
		return a, false
	}
	if found {
		a.Holder = &active
	}
	if a.Spec.SourceDeploymentID == "" {
		// None is found after the rollout has completed: a fact, like what the engine refuses.
		if a.Spec.SourceDeploymentID, err = planning.SourceIn(a.Endpoint, a.Spec.TargetDeploymentID); err != nil {
			a.Refused = render.Inert(err.Error())
			return a, true
		}
	}
	if err := d.preview(ctx, &a); err != nil {
		addRefusal(diags, "preview the rollout", err)
		return a, false
	}
	if found && active.SourceDeploymentID == a.Spec.SourceDeploymentID && active.TargetDeploymentID == a.Spec.TargetDeploymentID {
		a.Drift = d.drift(ctx, active)
	}
	if a.Refused != "" {
		return a, true
	}
	if err := d.sides(ctx, &a); err != nil {
		addRefusal(diags, "read both deployments", err)
		return a, false
	}
	return a, true
}

// preview asks the engine. What it refuses of a spec that is right in itself follows
// from what stands (after the rollout has completed its own first step is below the
// standing share): a fact for the reader, not an error that would end every plan.
func (d *previewDataSource) preview(ctx context.Context, a *planning.Ahead) error {
	p, err := d.engine.client.PreviewRollout(ctx, a.Endpoint.ID, a.Spec)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
		a.Refused = render.Inert(refused.Message)
		return nil
	}
	a.Preview = p
	return err
}

// drift is what a person changed under a rollout.
func (d *previewDataSource) drift(ctx context.Context, r api.Rollout) *planning.ShownDrift {
	found, err := d.engine.driftOf(ctx, r)
	if err != nil {
		tflog.Info(ctx, "drift is not known: "+err.Error())
	}
	var out *planning.ShownDrift
	if diags := found.As(ctx, &out, basetypes.ObjectAsOptions{}); diags.HasError() {
		panic(fmt.Sprintf("drift has the attributes of its type: %v", diags))
	}
	return out
}

// sides reads source and target, and their hardware, best effort: a hosted engine may
// not let every key list it.
func (d *previewDataSource) sides(ctx context.Context, a *planning.Ahead) error {
	for i, id := range []string{a.Spec.SourceDeploymentID, a.Spec.TargetDeploymentID} {
		var err error
		if a.Pair[i].Deployment, err = d.engine.client.GetDeployment(ctx, a.Endpoint.ID, id); err != nil {
			return fmt.Errorf("deployment %s: %w", id, err)
		}
	}
	listed, err := engineclient.Collect(d.engine.client.Hardware(ctx))
	if err != nil {
		tflog.Info(ctx, "no hardware for the preview: "+err.Error())
	}
	a.On(listed)
	return nil
}
