// Command schemajson writes the provider's schema as terraform providers schema
// -json would, from the provider itself. The pages of the registry come from it, so
// that list resources and actions are documented whatever terraform is installed:
// an older one leaves out what it does not know.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/sluice-dev/terraform-provider-sluice/provider"
)

// address is the only key under which tfplugindocs looks.
const address = "registry.terraform.io/hashicorp/sluice"

func main() {
	if err := write(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(ctx context.Context) error {
	server := providerserver.NewProtocol6(provider.New("docs")())()
	got, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return err
	}
	for _, d := range got.Diagnostics {
		return fmt.Errorf("the provider's schema: %s: %s", d.Summary, d.Detail)
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return err
	}
	doc := document{Format: "1.0", Providers: map[string]schemas{address: schemasOf(got, identities)}}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(doc)
}
