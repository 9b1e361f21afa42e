package reconciler

import (
	"context"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// Load evaluates one folder, from disk or from the blobs of a commit.
type Load func(declaration.Options) (declaration.Set, declaration.Diagnostics)

// Past is what a door remembers of a folder; all of it may be empty.
type Past struct {
	Bound   planning.Bindings
	Applied *declaration.Set // what was applied last; nil when it is not known
	Sees    Sees             // nil for all
}

// Sees takes out of what stands what a door does not look at.
type Sees func(planning.Standing) planning.Standing

// mostEvaluations bounds how often a folder is evaluated for one plan. Each time knows
// more of what stands; names that are made from ids, which are made from names, are the
// only thing that needs more than two.
const mostEvaluations = 5

// PlanFolder evaluates a folder and compares it with what stands, as of the last Refresh.
// It is evaluated again with what the engine tells of the things that stand, until that
// tells nothing new, so that outputs, checks and whatever else follows from an id have
// their values. The changes are empty when the diagnostics have an error.
func PlanFolder(ctx context.Context, live *Live, load Load, options declaration.Options, past Past) (planning.Changes, declaration.Diagnostics, error) {
	timings := live.Timings()
	options.Timings = &timings
	var changes planning.Changes
	var found declaration.Diagnostics
	for range mostEvaluations {
		var set declaration.Set
		if set, found = load(options); found.HasErrors() {
			return planning.Changes{}, found, nil
		}
		standing, err := live.Standing(ctx, set, past.Bound)
		if err != nil {
			return planning.Changes{}, found, err
		}
		if past.Sees != nil {
			standing = past.Sees(standing)
		}
		if past.Applied != nil {
			changes, err = planning.CompareSince(set, *past.Applied, standing, past.Bound)
		} else {
			changes, err = planning.Compare(set, standing, past.Bound)
		}
		if err != nil {
			return planning.Changes{}, found, err
		}
		known := changes.Known()
		if sameKnown(known, options.Known) {
			break
		}
		options.Known = known
	}
	return changes, found, nil
}
