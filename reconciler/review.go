package reconciler

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// review takes an approving review of the planned head as an approval of the plan that
// the comment showed then.
func (f *follower) review(ctx context.Context, r *pullRecord) error {
	if f.config.Approval != ApproveByDigest {
		return nil
	}
	reviews, err := f.forge.Reviews(ctx, r.Number)
	if err != nil {
		return err
	}
	r.withdraw(reviews)
	for _, v := range reviews {
		mark := reviewMark(v.Author, v.Commit, v.At)
		if !v.Approved || v.Commit != r.Head || slices.Contains(r.Reviewed, mark) {
			continue
		}
		if !r.headSeen(r.Head, v.At) {
			continue // it was given before there was a plan to see
		}
		allowed, err := f.may(ctx, v.Author, r.Author, Approve)
		if err != nil {
			return err
		}
		r.Reviewed = append(r.Reviewed, mark)
		if !allowed.OK {
			f.log.Info("an approving review does not count", "pull", r.Number, "reviewer", v.Author, "because", allowed.Why)
			continue
		}
		for _, p := range r.plansSeen(v.At) {
			r.Approved = append(r.Approved, approval{Digest: p.Digest, Who: v.Author, Via: "review", At: v.At, Commit: v.Commit})
		}
	}
	return nil
}

// reviewMark tells two reviews apart, also of one head: its plan may have changed between.
func reviewMark(author, commit string, at time.Time) string {
	return author + " " + commit + " " + at.UTC().Format(time.RFC3339)
}

// withdraw takes back the approvals of reviews that do not approve any more.
func (r *pullRecord) withdraw(reviews []forge.Review) {
	stands := func(author, commit string) bool {
		return slices.ContainsFunc(reviews, func(v forge.Review) bool { return v.Author == author && v.Commit == commit && v.Approved })
	}
	r.Approved = slices.DeleteFunc(r.Approved, func(a approval) bool {
		gone := a.Via == "review" && !stands(a.Who, a.Commit)
		if gone {
			r.Reviewed = slices.DeleteFunc(r.Reviewed, func(m string) bool { return m == reviewMark(a.Who, a.Commit, a.At) })
		}
		return gone
	})
}
