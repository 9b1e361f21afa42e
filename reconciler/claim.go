package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	if old := p.orphan(c.EndpointID); old != "" {
		if err := p.giveBack(ctx, c, c.EndpointID, old); err != nil {
			return err
		}
		p.tellTaken("apply.taken_in", c.Address, c.EndpointID, fmt.Sprintf("was %s's, which is not in the configuration any more; it is taken over", inert(strings.TrimPrefix(old, p.instance+" "))))
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

// orphan is the owner of an endpoint that is a stack of ours no more; empty for none.
func (p *stackPass) orphan(endpoint string) string {
	for _, e := range p.plan.changes.Standing.Endpoints {
		if owner := ownerOf(e.Endpoint); e.ID == endpoint && p.orphaned(owner) {
			return owner
		}
	}
	return ""
}
