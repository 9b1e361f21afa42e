package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The identity of a resource is its ids, and the project where it is known. Once it
// is set it never changes, also when the project becomes known later: Terraform takes
// another identity for another thing. Create, Read and Update must all set it.

var (
	_ resource.ResourceWithIdentity = (*endpointResource)(nil)
	_ resource.ResourceWithIdentity = (*deploymentResource)(nil)
	_ resource.ResourceWithIdentity = (*rolloutResource)(nil)
)

// IdentitySchema is the endpoint's id.
func (r *endpointResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityOf(map[string]string{"id": "Endpoint id, `ep_…`."})
}

// IdentitySchema is the ids of the endpoint and the deployment.
func (r *deploymentResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityOf(map[string]string{"endpoint_id": "Endpoint of the deployment, `ep_…`.", "id": "Deployment id, `dep_…`."})
}

// IdentitySchema is the ids of the endpoint and the rollout.
func (r *rolloutResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityOf(map[string]string{"endpoint_id": "Endpoint of the rollout, `ep_…`.", "id": "Rollout id, `rol_…`."})
}

func identityOf(ids map[string]string) identityschema.Schema {
	s := identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"project_id": identityschema.StringAttribute{OptionalForImport: true, Description: "Project, `proj_…`; the one of the provider when left out."},
	}}
	for name, text := range ids {
		s.Attributes[name] = identityschema.StringAttribute{RequiredForImport: true, Description: text}
	}
	return s
}

// identify sets the identity if there is none yet. It is nil for a Terraform that
// knows no identities.
func identify(ctx context.Context, e *engine, identity *tfsdk.ResourceIdentity, ids map[string]types.String) diag.Diagnostics {
	var diags diag.Diagnostics
	if identity == nil || !identity.Raw.IsFullyNull() {
		return diags
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		diags.Append(identity.SetAttribute(ctx, path.Root(name), ids[name])...)
	}
	if e == nil || e.client == nil {
		return diags
	}
	if project, err := e.client.Project(ctx); err == nil {
		diags.Append(identity.SetAttribute(ctx, path.Root("project_id"), project)...)
	}
	return diags
}

func (m *endpointModel) ids() map[string]types.String { return map[string]types.String{"id": m.ID} }

func (m *deploymentModel) ids() map[string]types.String {
	return map[string]types.String{"endpoint_id": m.EndpointID, "id": m.ID}
}

func (m *rolloutModel) ids() map[string]types.String {
	return map[string]types.String{"endpoint_id": m.EndpointID, "id": m.ID}
}

// importing reads what an import names: its ids in the order of names, from the
// import's id ("endpoint/thing", or the thing alone) or from its identity. An id that
// is left out is empty.
func importing(ctx context.Context, e *engine, req resource.ImportStateRequest, diags *diag.Diagnostics, names ...string) []string {
	if req.ID == "" && req.Identity != nil && !req.Identity.Raw.IsNull() {
		return importedIdentity(ctx, e, req, diags, names)
	}
	if !strings.Contains(req.ID, "/") && strings.TrimSpace(req.ID) != "" {
		ids := make([]string, len(names))
		ids[len(ids)-1] = strings.TrimSpace(req.ID)
		return ids
	}
	ids, err := splitImportID(req.ID, names...)
	if err != nil {
		diags.AddError("Invalid import id", fmt.Sprintf("%s Give %s, or %s alone.", sentence(err.Error()), strings.Join(names, "/"), names[len(names)-1]))
		return nil
	}
	return ids
}

func importedIdentity(ctx context.Context, e *engine, req resource.ImportStateRequest, diags *diag.Diagnostics, names []string) []string {
	var project types.String
	diags.Append(req.Identity.GetAttribute(ctx, path.Root("project_id"), &project)...)
	if e != nil && e.client != nil && project.ValueString() != "" {
		ours, err := e.client.Project(ctx)
		if err == nil && ours != project.ValueString() {
			diags.AddAttributeError(path.Root("project_id"), "The identity is of another project",
				fmt.Sprintf("It names project %s, and the provider works in project %s. Give the provider that project and a key of it, or leave project_id out.", project.ValueString(), ours))
		}
	}
	ids := make([]string, 0, len(names))
	if _, ok := req.Identity.Schema.GetAttributes()["id"]; ok { // the last one is the thing itself
		names = append(slices.Clone(names[:len(names)-1]), "id")
	}
	for _, name := range names {
		var id types.String
		diags.Append(req.Identity.GetAttribute(ctx, path.Root(name), &id)...)
		ids = append(ids, id.ValueString())
	}
	if diags.HasError() {
		return nil
	}
	return ids
}

// identified is identify for an import, whose identity may lack the project.
func identified(ctx context.Context, e *engine, identity *tfsdk.ResourceIdentity, ids map[string]types.String) diag.Diagnostics {
	if identity != nil {
		identity.Raw = tftypes.NewValue(identity.Schema.Type().TerraformType(ctx), nil)
	}
	return identify(ctx, e, identity, ids)
}

// importInto takes a thing inside an endpoint over into the state.
type importInto struct {
	engine *engine
	req    resource.ImportStateRequest
	resp   *resource.ImportStateResponse
}

// pair sets endpoint_id, id and the identity; it reports whether it could. find looks
// for the endpoint of an id that came without one.
func (in importInto) pair(ctx context.Context, kind string, find func(context.Context, string) (string, error)) bool {
	diags := &in.resp.Diagnostics
	ids := importing(ctx, in.engine, in.req, diags, "endpoint_id", kind+"_id")
	if diags.HasError() {
		return false
	}
	if ids[0] == "" {
		if in.engine == nil || in.engine.client == nil {
			notConfigured(diags)
			return false
		}
		endpoint, err := find(ctx, ids[1])
		if err != nil {
			addRefusal(diags, "find the endpoint of "+kind+" "+ids[1], err)
			return false
		}
		ids[0] = endpoint
	}
	diags.Append(in.resp.State.SetAttribute(ctx, path.Root("endpoint_id"), ids[0])...)
	diags.Append(in.resp.State.SetAttribute(ctx, path.Root("id"), ids[1])...)
	diags.Append(identified(ctx, in.engine, in.resp.Identity, map[string]types.String{"endpoint_id": types.StringValue(ids[0]), "id": types.StringValue(ids[1])})...)
	return !diags.HasError()
}
