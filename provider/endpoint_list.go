package provider

import (
	"context"
	"iter"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var _ list.ListResourceWithConfigure = (*endpointList)(nil)

func newEndpointList() list.ListResource { return &endpointList{} }

// endpointList finds endpoints for terraform query.
type endpointList struct{ endpointResource }

type endpointFilters struct {
	NamePrefix types.String `tfsdk:"name_prefix"`
	Visibility types.String `tfsdk:"visibility"`
}

// ListResourceConfigSchema describes the filters.
func (l *endpointList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Finds the endpoints of the project, for `terraform query`. One call to the engine for each 500 endpoints.",
		Attributes: map[string]schema.Attribute{
			"name_prefix": schema.StringAttribute{Optional: true, MarkdownDescription: "Only endpoints whose name, without the project's slug, begins so."},
			"visibility": schema.StringAttribute{Optional: true, Validators: []validator.String{stringvalidator.OneOf("PRIVATE", "INTERNAL")},
				MarkdownDescription: "Only endpoints of this visibility, `PRIVATE` or `INTERNAL`."},
		},
	}
}

// List walks the endpoints.
func (l *endpointList) List(ctx context.Context, req list.ListRequest, to *list.ListResultsStream) {
	var f endpointFilters
	if !listing(ctx, l.engine, req, &f, to) {
		return
	}
	to.Results = stream(ctx, l.engine, req, "list the endpoints", func(yield func(found, error) bool) {
		all, err := l.engine.everyEndpoint(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, e := range all {
			var m endpointModel
			blank(ctx, req, &m)
			m.apply(e)
			if !strings.HasPrefix(m.Name.ValueString(), f.NamePrefix.ValueString()) || !f.Visibility.IsNull() && !f.Visibility.Equal(m.Visibility) {
				continue
			}
			if !yield(found{name: e.Name, ids: m.ids(), model: &m}, nil) {
				return
			}
		}
	})
}

// endpointsIn are the ids that a filter names, or those of all endpoints.
func (e *engine) endpointsIn(ctx context.Context, filter types.String) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if !filter.IsNull() {
			yield(filter.ValueString(), nil)
			return
		}
		all, err := e.everyEndpoint(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, ep := range all {
			if !yield(ep.ID, nil) {
				return
			}
		}
	}
}
