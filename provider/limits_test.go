package provider

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

func TestSettingsOutOfRangeAreRefusedAtTheirAttribute(t *testing.T) {
	p := newProtocol(t, nil)
	for name, bad := range map[string]any{"max_retries": 21, "request_timeout": "soon", "requests_per_second": 0.0} {
		got, err := p.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: dynamic(t, p.schema.Provider.ValueType(), map[string]any{name: bad})})
		require.NoError(t, err)
		require.Len(t, got.Diagnostics, 1, name)
		require.Contains(t, got.Diagnostics[0].Attribute.String(), name)
	}
	got, err := p.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: dynamic(t, p.schema.Provider.ValueType(), map[string]any{"request_timeout": "1ms"})})
	require.NoError(t, err)
	require.Contains(t, said(got.Diagnostics), "at least 100ms")
}

func TestSettingsReachTheClient(t *testing.T) {
	var c engineclient.Config
	limitsModel{RequestTimeout: nullText(durationType)}.limit(&c)
	require.Equal(t, engineclient.Config{}, c, "what is not given is the client's affair")
	limitsModel{MaxRetries: types.Int64Value(0), RequestTimeout: newText(durationType, "10s"), RequestsPerSecond: types.Float64Value(2.5)}.limit(&c)
	require.Equal(t, engineclient.Config{Retries: engineclient.Retries{Attempts: 1}, AttemptTimeout: 10 * time.Second, PerSecond: 2.5}, c)
}

func TestUserAgentNamesTheProviderAndTerraform(t *testing.T) {
	e := newToldEngine(t)
	newProtocol(t, e)
	require.Equal(t, "terraform-provider-sluice/test Terraform/1.11.4", e.agent)
}

func TestCapabilityThatTheEngineLacksIsAnErrorAtTheAttribute(t *testing.T) {
	for name, hosted := range map[string]bool{"hosted": true, "an older one of ours": false} {
		t.Run(name, func(t *testing.T) {
			told := newToldEngine(t)
			told.hosted = hosted
			c, err := engineclient.New(engineclient.Config{BaseURL: told.URL, APIKey: "k"})
			require.NoError(t, err)
			e := &engine{client: c}
			var diags diag.Diagnostics
			require.False(t, e.requires(t.Context(), &diags, path.Root("circuit_breaker"), api.CapabilityCircuitBreaker))
			require.Len(t, diags, 1)
			at, ok := diags[0].(diag.DiagnosticWithPath)
			require.True(t, ok)
			require.Equal(t, "circuit_breaker", at.Path().String())
			require.Contains(t, diags[0].Detail(), api.CapabilityCircuitBreaker)
			require.Contains(t, diags[0].Detail(), told.URL)
			require.Equal(t, !hosted, e.requires(t.Context(), &diags, path.Root("x"), "keys"))
		})
	}
}
