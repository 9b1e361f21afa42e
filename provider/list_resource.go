package provider

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// found is one thing that a list resource found.
type found struct {
	name  string
	ids   map[string]types.String
	model any // to be written when the query asks for the resource
}

// stream sends what a walk finds, with identity and, when asked for, the resource.
// It ends at the query's limit, at the first error, or when nobody listens any more.
func stream(ctx context.Context, e *engine, req list.ListRequest, tried string, walk iter.Seq2[found, error]) iter.Seq[list.ListResult] {
	return func(push func(list.ListResult) bool) {
		sent := int64(0)
		for f, err := range walk {
			result := req.NewListResult(ctx)
			if err != nil {
				addRefusal(&result.Diagnostics, tried, err)
				push(result)
				return
			}
			result.DisplayName = f.name
			result.Diagnostics.Append(identify(ctx, e, result.Identity, f.ids)...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, f.model)...)
			} else {
				result.Resource = nil
			}
			if !push(result) {
				return
			}
			if sent++; req.Limit > 0 && sent >= req.Limit {
				return
			}
		}
	}
}

// blank reads a resource without any value into a model, so that all that is not
// set later is null of the right type.
func blank(ctx context.Context, req list.ListRequest, model any) {
	object, ok := req.ResourceSchema.Type().TerraformType(ctx).(tftypes.Object)
	if !ok {
		return
	}
	nulls := map[string]tftypes.Value{}
	for name, t := range object.AttributeTypes {
		nulls[name] = tftypes.NewValue(t, nil)
	}
	state := tfsdk.Resource{Schema: req.ResourceSchema, Raw: tftypes.NewValue(object, nulls)}
	state.Get(ctx, model)
}

// listing reads a query's filters; nil when it cannot go on, with the reason sent.
func listing(ctx context.Context, e *engine, req list.ListRequest, filters any, to *list.ListResultsStream) bool {
	diags := req.Config.Get(ctx, filters)
	if !diags.HasError() && (e == nil || e.client == nil) {
		notConfigured(&diags)
	}
	if diags.HasError() {
		to.Results = list.ListResultsStreamDiagnostics(diags)
		return false
	}
	return true
}
