package reconciler

import (
	"context"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// OtherProject means that the engine answers for another project than the one that the
// journal is about: everything in it would read like deleted. Nothing is planned or
// written there.
type OtherProject struct {
	Journal string // id of the project that the journal is about
	Engine  string // id of the one that the key belongs to now
}

func (o *OtherProject) Error() string {
	return fmt.Sprintf("the journal is about project %s, and the engine answers for project %s: nothing is planned or written there. Give the key of %s and start again, or reconcile %s with a journal of its own (state)", o.Journal, o.Engine, o.Journal, o.Engine)
}

// sameProject refuses to work where the client reaches another project than the journal's.
// Where the engine does not tell, the pass finds that out by itself.
func (r *Reconciler) sameProject(ctx context.Context) error {
	project, err := r.engine.Project(ctx)
	if err != nil {
		return nil //nolint:nilerr // told by whatever asks the engine next
	}
	known, err := read[string](ctx, r.ledger, journal.Key{Kind: kindProject})
	if err == nil && known != "" && known != project {
		return &OtherProject{Journal: known, Engine: project}
	}
	return err
}

// keepProject judges a good reading of the engine: the first one under the lease says
// which project the journal is about, and no other is taken after it.
func (r *Reconciler) keepProject(ctx context.Context) error {
	if err := r.sameProject(ctx); err != nil {
		return err
	}
	project, err := r.engine.Project(ctx)
	if err != nil {
		return err
	}
	key := journal.Key{Kind: kindProject}
	known, err := read[string](ctx, r.ledger, key)
	if err != nil || known != "" || r.ledger.mayWrite() != nil { // who stands by settles nothing
		return err
	}
	return r.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(key, project)}})
}
