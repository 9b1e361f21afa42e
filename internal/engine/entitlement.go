package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// lapsed asks the billing whether a target may be raised to a floor, and returns why it
// may not. 0 replicas is no raise, and not asked. An error is no answer.
func (e *Engine) lapsed(ctx context.Context, target rollout.Deployment, replicas int) (reason string, err error) {
	if e.Billing == nil || replicas == 0 {
		return "", nil
	}
	err = e.Billing.Check(ctx, target.ProjectID, target, replicas)
	var lapse *rollout.Lapse
	switch {
	case errors.As(err, &lapse):
		return cmp.Or(lapse.Reason, "no reason was given"), nil
	case err != nil:
		return "", fmt.Errorf("no answer from the billing check: %w", err)
	}
	return "", nil
}

// entitled refuses a journey that would raise its target beyond what the billing allows
// now. One that raises nothing is not asked about.
func (e *Engine) entitled(ctx context.Context, p pair, j rollout.Journey, k Kind) error {
	floor := j.Floor()
	if floor <= p.target.Bounds.Min {
		return nil
	}
	reason, err := e.lapsed(ctx, p.target.Deployment, floor)
	switch {
	case err != nil:
		return refuse(Transient, "%s; nothing was changed, try again", err)
	case reason != "":
		refusal := refuse(k, "the billing check failed for target deployment %s, which needs up to %d replica(s): %s. Mend the billing and try again", p.target.ID, floor, reason)
		if k == Invalid {
			refusal.Field = "targetDeploymentId"
		}
		return refusal
	}
	return nil
}

// refusal is what a start would be refused for by the billing now. A preview does
// without an answer that does not come: the start asks again.
func (e *Engine) refusal(ctx context.Context, p pair, j rollout.Journey) *Error {
	var refused *Error
	err := e.entitled(ctx, p, j, Precondition)
	if !errors.As(err, &refused) {
		return nil
	}
	if refused.Kind == Transient {
		e.Logger.Warn("preview without the billing", "deployment", p.target.ID, "error", err)
		return nil
	}
	return refused
}
