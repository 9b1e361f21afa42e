package declaration_test

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/provider"
)

// providerSchemas are the schemas as the real provider tells them to Terraform.
func providerSchemas(t *testing.T) map[string]*tfprotov6.Schema {
	t.Helper()
	server := providerserver.NewProtocol6(provider.New("test")())()
	got, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	require.Empty(t, got.Diagnostics)
	return got.ResourceSchemas
}

// A file that terraform apply takes is taken here: whatever the provider's schema
// has, this room knows, with the same need and the same type.
func TestEveryAttributeOfTheProviderIsKnownHere(t *testing.T) {
	declaration.CompareSchemas(t, providerSchemas(t))
}
