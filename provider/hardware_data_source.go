package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

var _ datasource.DataSourceWithConfigure = (*hardwareDataSource)(nil)

func newHardwareDataSource() datasource.DataSource { return &hardwareDataSource{} }

type hardwareDataSource struct{ reader }

type hardwareModel struct {
	ID      types.String    `tfsdk:"id"`
	GPUType types.String    `tfsdk:"gpu_type"`
	Types   []hardwareEntry `tfsdk:"types"`
}

type hardwareEntry struct {
	ID                types.String  `tfsdk:"id"`
	Name              types.String  `tfsdk:"name"`
	Description       types.String  `tfsdk:"description"`
	GPUType           types.String  `tfsdk:"gpu_type"`
	GPUCount          types.Int64   `tfsdk:"gpu_count"`
	GPUMemoryGiB      types.Int64   `tfsdk:"gpu_memory_gib"`
	PriceCentsPerHour types.Int64   `tfsdk:"price_cents_per_hour"`
	Capacity          types.Int64   `tfsdk:"capacity"`
	Free              types.Int64   `tfsdk:"free"`
	FreeIsExact       types.Bool    `tfsdk:"free_is_exact"`
	Regions           []regionEntry `tfsdk:"regions"`
}

type regionEntry struct {
	Name        types.String `tfsdk:"name"`
	Free        types.Int64  `tfsdk:"free"`
	FreeIsExact types.Bool   `tfsdk:"free_is_exact"`
}

// Metadata names the data source.
func (d *hardwareDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_hardware"
}

// Schema describes the hardware types.
func (d *hardwareDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	const free = "Further replicas that fit now; null when it is not known, or there is no limit."
	const exact = "False when at least that many fit; null when `free` is."
	resp.Schema = schema.Schema{
		MarkdownDescription: "The hardware types that replicas may run on, with price and room. Calls to the engine: one for each 50 types.",
		Attributes: map[string]schema.Attribute{
			"id":       schema.StringAttribute{Optional: true, MarkdownDescription: "Only this type."},
			"gpu_type": schema.StringAttribute{Optional: true, MarkdownDescription: "Only types with this GPU."},
			"types": givenList("The types, as the engine orders them; empty when none passes.", map[string]schema.Attribute{
				"id":                   given("Type, as `hardware` of a deployment names it."),
				"name":                 given("Name; null when there is none."),
				"description":          given("Description; null when there is none."),
				"gpu_type":             given("GPU; null when there is none."),
				"gpu_count":            givenInt("GPUs of one replica."),
				"gpu_memory_gib":       givenInt("Memory of one GPU in GiB."),
				"price_cents_per_hour": givenInt("Price of one replica for an hour, in cents; 0 when the engine names none."),
				"capacity":             givenInt("Replicas that fit in all; null when the engine does not tell, or there is no limit."),
				"free":                 givenInt("Sum over the regions whose room is known. " + free),
				"free_is_exact":        schema.BoolAttribute{Computed: true, MarkdownDescription: exact},
				"regions": givenList("Room by region.", map[string]schema.Attribute{
					"name":          given("Region."),
					"free":          givenInt(free),
					"free_is_exact": schema.BoolAttribute{Computed: true, MarkdownDescription: exact},
				}),
			}),
		},
	}
}

// Read looks once.
func (d *hardwareDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m hardwareModel
	if !d.ready(ctx, req, &m, &resp.Diagnostics) {
		return
	}
	m.Types = []hardwareEntry{}
	for h, err := range d.engine.client.Hardware(ctx) {
		if err != nil {
			addRefusal(&resp.Diagnostics, "list the hardware", err)
			return
		}
		if !m.ID.IsNull() && m.ID.ValueString() != h.ID || !m.GPUType.IsNull() && m.GPUType.ValueString() != h.GPUType {
			continue
		}
		m.Types = append(m.Types, entryOf(h))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func entryOf(h api.InstanceType) hardwareEntry {
	out := hardwareEntry{
		ID: types.StringValue(h.ID), Name: optionalString(h.Name), Description: optionalString(h.Description), GPUType: optionalString(h.GPUType),
		GPUCount: types.Int64Value(int64(h.GPUCount)), GPUMemoryGiB: types.Int64Value(int64(h.GPUMemoryGiB)),
		PriceCentsPerHour: types.Int64Value(int64(h.PriceCentsPerHour)), Regions: []regionEntry{},
	}
	if h.Sluice != nil {
		out.Capacity = optionalInt(h.Sluice.Capacity)
	}
	sum, known, exact := 0, false, true
	for _, r := range h.Regions {
		entry := regionEntry{Name: types.StringValue(r.Name)}
		if r.Headroom != nil && r.Headroom.Value != nil {
			is := r.Headroom.Relation == "RELATION_EQ"
			entry.Free, entry.FreeIsExact = optionalInt(r.Headroom.Value), types.BoolValue(is)
			sum, known, exact = sum+*r.Headroom.Value, true, exact && is
		} else {
			exact = false
		}
		out.Regions = append(out.Regions, entry)
	}
	if known {
		out.Free, out.FreeIsExact = types.Int64Value(int64(sum)), types.BoolValue(exact)
	}
	return out
}
