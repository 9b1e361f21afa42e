package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// strayedAfter is how long the merge commit of a pull request has to come into the followed
// history.
const strayedAfter = 24 * time.Hour

// strayed reports whether the merge commit of a pull request is not in the history of the
// followed branch long after the merge: it went into another branch in the end, or history
// was rewritten without it. A run that knows of it has had it. A followed tag comes when it
// comes.
func (f *follower) strayed(ctx context.Context, r *pullRecord) bool {
	if !r.Over.IsZero() || len(r.Attached) > 0 || r.Merged.IsZero() || f.now().Sub(r.Merged) < strayedAfter || !f.followsBranch() {
		return false
	}
	if f.tree == nil || f.gitErr != nil {
		return false // what the history has is not known now
	}
	if r.MergeCommit == "" || r.MergeCommit == f.tree.Commit.ID {
		return r.MergeCommit == ""
	}
	log, err := f.remote.Log(ctx, r.MergeCommit, f.tree.Commit.ID, mostCommits)
	var gone *gitsource.Gone
	return err == nil && log.Rewritten || errors.As(err, &gone)
}

// strayedSheet is the end of a pull request whose merge never came to the stacks.
func (f *follower) strayedSheet(r *pullRecord, out page) page {
	if r.Over.IsZero() {
		r.Over = f.now()
	}
	where := refName(f.source.Now.Ref)
	out.Stage, out.Over = render.Closed, render.Over{At: r.Over, Note: fmt.Sprintf("Its merge, %s, is not in the history of %s: nothing of it was applied.", short(r.MergeCommit), where)}
	if r.MergeCommit == "" {
		out.Over.Note = fmt.Sprintf("The forge tells no merge commit of it, and nothing came to %s from it: nothing of it was applied.", where)
	}
	out.Over.Why = "Merged, and not into " + where
	return out
}
