package reconciler

import (
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// shrinkage guards against a commit that takes away more than a person would mean: the
// wrong path, an empty branch, a file that was lost. An approval of the plan lifts it.
func (p *stackPass) shrinkage(run *runRecord) (Wait, bool) {
	if p.config.Prune.Mode != PruneOn || p.said(run) != nil {
		return Wait{}, false
	}
	gone, bound := p.plan.gone(), p.s.things()
	if gone == 0 || bound == 0 {
		return Wait{}, false
	}
	left := bound - gone
	if left > 0 && gone*100 <= p.config.Prune.MostShrink*bound {
		return Wait{}, false
	}
	return Wait{For: ForPrune, What: fmt.Sprintf("this commit takes away %d of %d things, more than prune { most_shrink = %d } allows; nothing is deleted. If it is meant, approve the plan: %s",
		gone, bound, p.config.Prune.MostShrink, p.way(Approve, planning.ShortDigest(run.Digest)))}, true
}

// emptied guards against filling an engine that has lost what it had: where every endpoint
// of a stack is gone, a backup may be about to be put back, or this is not the engine that
// is meant. An approval of the plan lifts it.
func (p *stackPass) emptied(run *runRecord) (Wait, bool) {
	had := len(p.s.endpointIDs())
	if had == 0 || p.said(run) != nil {
		return Wait{}, false
	}
	gone := 0
	for _, c := range p.plan.changes.Pending() {
		if c.Kind == declaration.EndpointKind && c.Action == planning.Create && p.vanished(c) {
			gone++
		}
	}
	if gone < had {
		return Wait{}, false
	}
	return Wait{For: ForApproval, What: fmt.Sprintf("the engine has none of the %s that this stack has made; nothing is made again until somebody says that it is meant. If it is, approve the plan: %s",
		planning.Count(had, "endpoint"), p.way(Approve, planning.ShortDigest(run.Digest)))}, true
}
