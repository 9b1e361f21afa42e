package reconciler

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// claim makes this stack the owner of an endpoint before it is first written to, so that
// two reconcilers never undo each other's work. An engine without owners has none.
func (p *stackPass) claim(ctx context.Context, c planning.Change) error {
	if c.EndpointID == "" || c.Action == planning.Delete && c.Kind == declaration.EndpointKind || !slices.Contains(p.plan.changes.Standing.Capabilities, api.CapabilityOwner) {
		return nil
	}
	mine := p.owner(p.c)
	if slices.Contains(p.owned, c.EndpointID) {
		return nil
	}
	in := journal.Intent{ID: "claim " + c.EndpointID + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: c.Address.String(), Verb: "claim_endpoint"}
	err := p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
		_, err := p.engine.ClaimEndpoint(ctx, c.EndpointID, mine)
		return journal.Batch{}, err
	})
	if err != nil {
		return fmt.Errorf("claim endpoint %s: %w", c.Endpoint, err)
	}
	p.owned = append(p.owned, c.EndpointID)
	return nil
}
