package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// reader is what the data sources that only look share.
type reader struct{ engine *engine }

// Configure takes the client.
func (d *reader) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	d.engine = e
}

// ready reads the configuration into a model; it reports whether to go on.
func (d *reader) ready(ctx context.Context, req datasource.ReadRequest, model any, diags *diag.Diagnostics) bool {
	diags.Append(req.Config.Get(ctx, model)...)
	if !diags.HasError() && d.engine.client == nil {
		notConfigured(diags)
	}
	return !diags.HasError()
}

// instant is a time of the wire for HCL; null when there is none.
func instant(t *api.Time) types.String {
	if t == nil || t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Format(time.RFC3339Nano))
}

// The attributes of data sources that only the engine gives.

func given(text string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: text}
}

func givenInt(text string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: text}
}

func givenFloat(text string) schema.Float64Attribute {
	return schema.Float64Attribute{Computed: true, MarkdownDescription: text}
}

func givenList(text string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{Computed: true, MarkdownDescription: text, NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}
