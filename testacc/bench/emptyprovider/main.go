// Command emptyprovider is a Terraform provider that does nothing: its one resource
// keeps a name. A plan with it costs what Terraform and the plugin protocol cost.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &empty{} },
		providerserver.ServeOpts{Address: "registry.terraform.io/sluice-dev/empty"})
	if err != nil {
		log.Fatal(err)
	}
}

type empty struct{}

func (*empty) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "empty"
}
func (*empty) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse)          {}
func (*empty) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (*empty) DataSources(context.Context) []func() datasource.DataSource                        { return nil }
func (*empty) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &thing{} }}
}

// thing is a name with an id. Nothing outside the state stands behind it.
type thing struct{}

func (*thing) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "empty_thing"
}

func (*thing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":   schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"name": schema.StringAttribute{Required: true},
	}}
}

func (*thing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), "thing")...)
}

// Read leaves the state as it is.
func (*thing) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (*thing) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete has nothing to delete.
func (*thing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
