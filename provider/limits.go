package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

var _ provider.ProviderWithValidateConfig = (*sluiceProvider)(nil)

// limitsModel is how hard the provider may try. All resources share it.
type limitsModel struct {
	MaxRetries        types.Int64   `tfsdk:"max_retries"`
	RequestTimeout    text          `tfsdk:"request_timeout"`
	RequestsPerSecond types.Float64 `tfsdk:"requests_per_second"`
}

func limitAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"max_retries": schema.Int64Attribute{Optional: true, Validators: []validator.Int64{int64validator.Between(0, 20)},
			MarkdownDescription: "How often a request is tried again when the engine does not answer, or asks for it (408, 429, 502, 503, 504); default 4. The pause is the engine's `Retry-After` and up to a quarter more, or doubles from half a second to ten. A wait for a rollout is not bounded by it."},
		"request_timeout": schema.StringAttribute{Optional: true, CustomType: durationType,
			MarkdownDescription: "How long one try of a request may take, for example `10s`; default 30 s. How long a rollout may take stands in its `timeouts`."},
		"requests_per_second": schema.Float64Attribute{Optional: true, Validators: []validator.Float64{float64validator.AtLeast(0.1)},
			MarkdownDescription: "Most requests a second, of all resources of this provider together, for an engine that limits them; a second's worth may go at once. No limit by default."},
	}
}

// ValidateConfig refuses a timeout in which nothing can answer.
func (p *sluiceProvider) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	var timeout text
	at := path.Root("request_timeout")
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, at, &timeout)...)
	if d := wireDuration(timeout); d != nil && time.Duration(*d) < 100*time.Millisecond {
		resp.Diagnostics.AddAttributeError(at, "Too short a timeout", fmt.Sprintf("No engine answers within %s. Give at least 100ms.", timeout.ValueString()))
	}
}

func (m limitsModel) limitsUnknown() bool {
	return m.MaxRetries.IsUnknown() || m.RequestTimeout.IsUnknown() || m.RequestsPerSecond.IsUnknown()
}

// limit sets what is given; the client's own defaults stand for the rest.
func (m limitsModel) limit(c *engineclient.Config) {
	if !m.MaxRetries.IsNull() {
		c.Retries.Attempts = int(m.MaxRetries.ValueInt64()) + 1
	}
	if d := wireDuration(m.RequestTimeout); d != nil {
		c.AttemptTimeout = time.Duration(*d)
	}
	c.PerSecond = m.RequestsPerSecond.ValueFloat64()
}

// introduce says once, in the debug log, which engine this is.
func (e *engine) introduce(ctx context.Context) {
	who, err := e.client.WhoAmI(ctx)
	if err != nil {
		return // Verify has just asked; whatever is wrong shows with the first call
	}
	fields := map[string]any{"url": e.client.URL(), "project": who.ProjectID, "version": "hosted"}
	if who.Sluice != nil {
		fields["version"], fields["capabilities"] = who.Sluice.Version, who.Sluice.Capabilities
	}
	tflog.Debug(ctx, "the engine that is used", fields)
}
