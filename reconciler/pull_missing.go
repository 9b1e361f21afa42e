package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// missingFor is how long the forge has to say that a pull request is not there before it is
// forgotten: an incident of a forge looks the same.
const missingFor = 24 * time.Hour

// ofPull names the pull request that an error is about. One that cannot be read stops none
// of the others. One that the forge does not know any more is over after a while.
func (f *follower) ofPull(ctx context.Context, number int, err error) error {
	r := f.pulls.known[number]
	if err == nil {
		return f.isThere(ctx, r)
	}
	var refused *forge.Refused
	if r == nil || !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return fmt.Errorf("pull request %d: %w", number, err)
	}
	if _, err := f.forge.PullRequest(ctx, number); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return fmt.Errorf("pull request %d: %w", number, refused) // it is there, and a part of it is not
	}
	return f.isMissing(ctx, r)
}

// isThere notes that the forge knows a pull request, after it did not.
func (f *follower) isThere(ctx context.Context, r *pullRecord) error {
	if r == nil || r.Missing.IsZero() {
		return nil
	}
	r.Missing = time.Time{}
	return f.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(pullKey(f.config.Name, r.Number), *r)}})
}

// isMissing notes since when the forge does not know a pull request, and forgets it when
// that has lasted. One whose run is open is kept: people may get to it again, to steer.
func (f *follower) isMissing(ctx context.Context, r *pullRecord) error {
	if r.Missing.IsZero() {
		r.Missing = f.now()
		f.log.Warn("the forge says that a pull request is not there", "pull", r.Number)
		return f.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(pullKey(f.config.Name, r.Number), *r)}})
	}
	if f.now().Sub(r.Missing) < missingFor {
		return nil
	}
	open, err := f.hasOpenRun(ctx, r)
	if err != nil || open {
		return err
	}
	f.log.Info("a pull request is not there any more", "pull", r.Number)
	f.pulls.open = slices.DeleteFunc(f.pulls.open, func(pr forge.PullRequest) bool { return pr.Number == r.Number })
	return f.forgetPull(ctx, r.Number)
}

// hasOpenRun reports whether a run that a pull request has brought is not over.
func (f *follower) hasOpenRun(ctx context.Context, r *pullRecord) (bool, error) {
	for _, p := range r.Plans {
		k := f.key(p.Stack)
		s, err := read[stackRecord](ctx, f.ledger, stackKey(k))
		if err != nil {
			return false, err
		}
		for _, commit := range s.Open {
			run, err := read[runRecord](ctx, f.ledger, runKey(k, commit))
			if err != nil || slices.Contains(run.Pulls, r.Number) {
				return true, err
			}
		}
	}
	return false, nil
}

// forgetPull lets go of a pull request.
func (f *follower) forgetPull(ctx context.Context, number int) error {
	delete(f.pulls.known, number)
	delete(f.pulls.plans, number)
	delete(f.pulls.failed, number)
	return f.ledger.write(ctx, journal.Batch{Delete: []journal.Key{pullKey(f.config.Name, number)}})
}
