package engine

import (
	"context"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// EffectiveSplit is an endpoint's split as weights. While a rollout holds the pair
// it is what the shares come to at the present replica counts.
func (e *Engine) EffectiveSplit(ctx context.Context, ep rollout.Endpoint) []rollout.Weight {
	if ep.Pair == nil {
		return ep.Split
	}
	return e.standing(ctx, ep, *ep.Pair, ep.Pair.Percent)
}
