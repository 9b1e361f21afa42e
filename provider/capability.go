package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// requires reports whether the engine announces a capability that an attribute needs.
// When it does not, that is an error at the attribute, which names both and the
// engine: to be asked at plan, before anything is made.
func (e *engine) requires(ctx context.Context, diags *diag.Diagnostics, at path.Path, capability string) bool {
	can, err := e.client.Can(ctx, capability)
	switch {
	case err != nil:
		addRefusal(diags, "ask the engine what it can do", err)
		return false
	case can:
		return true
	}
	diags.AddAttributeError(topLevel(at), "This engine has no "+at.String(),
		fmt.Sprintf("%s needs an engine with the capability %q, which %s does not announce. Run Sluice's own engine (sluice serve), a newer one if this is one, or leave the attribute out.", at, capability, e.client.URL()))
	return false
}
