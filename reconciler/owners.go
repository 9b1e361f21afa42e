package reconciler

import (
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// OwnersTold is what stands, as a door sees it that shows a plan and writes nothing: whose
// an endpoint is it tells, and that holds no change back, since its owner will make it.
func OwnersTold(standing planning.Standing) planning.Standing {
	standing.Endpoints = slices.Clone(standing.Endpoints)
	for i := range standing.Endpoints {
		e := &standing.Endpoints[i]
		e.Keeper, e.Owner = e.Owner, ""
	}
	return standing
}
