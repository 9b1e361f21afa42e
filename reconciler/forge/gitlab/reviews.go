package gitlab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/gitlab-org/api/client-go"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

// Reviews puts together what GitLab keeps in four places: who approves now, who asks
// for changes, when each of them said so, and which head was there at that time.
// GitLab does not say which commit an approval was of: it is the newest version that
// the merge request had before the approval, so that an approval at the moment of a
// push is taken for one of the older head.
func (a *adaptor) Reviews(ctx context.Context, number int) ([]forge.Review, error) {
	op := a.op(fmt.Sprintf("list the reviews of merge request %d", number), needsRead)
	approvals, _, err := a.client.MergeRequests.GetMergeRequestApprovals(a.project, int64(number), gitlab.WithContext(ctx))
	if err != nil {
		return nil, op.Fail(err)
	}
	reviewers, _, err := a.client.MergeRequests.GetMergeRequestReviewers(a.project, int64(number), gitlab.WithContext(ctx))
	if err != nil {
		return nil, op.Fail(err)
	}
	said := map[string]bool{} // by name: whether it is an approval
	for _, r := range reviewers {
		if r.User != nil && r.State == "requested_changes" {
			said[r.User.Username] = false
		}
	}
	for _, by := range approvals.ApprovedBy {
		if by.User != nil {
			said[by.User.Username] = true
		}
	}
	if len(said) == 0 {
		return []forge.Review{}, nil
	}
	return a.dated(ctx, op, number, said)
}

// dated gives verdicts their time, from GitLab's own lines in the talk, and their
// commit. One that has no line is of no commit.
func (a *adaptor) dated(ctx context.Context, op rest.Op, number int, said map[string]bool) ([]forge.Review, error) {
	notes, err := a.notes(ctx, number, time.Time{})
	if err != nil {
		return nil, op.Fail(err)
	}
	versions, err := rest.Pages(func(n int) ([]*gitlab.MergeRequestDiffVersion, int, error) {
		some, resp, err := a.client.MergeRequests.GetMergeRequestDiffVersions(a.project, int64(number),
			&gitlab.GetMergeRequestDiffVersionsOptions{ListOptions: page(n)}, gitlab.WithContext(ctx))
		return some, next(resp), err
	})
	if err != nil {
		return nil, op.Fail(err)
	}
	slices.SortFunc(versions, func(a, b *gitlab.MergeRequestDiffVersion) int { return at(a.CreatedAt).Compare(at(b.CreatedAt)) })
	var out []forge.Review
	for name, approves := range said {
		r := forge.Review{Author: name, Approved: approves}
		line := map[bool]string{true: "approved this merge request", false: "requested changes"}[approves]
		for _, n := range notes {
			if n.System && n.Author.Username == name && strings.HasPrefix(n.Body, line) && at(n.CreatedAt).After(r.At) {
				r.At = at(n.CreatedAt)
			}
		}
		r.Commit = headAt(versions, r.At)
		out = append(out, r)
	}
	return forge.NewestReviews(out), nil
}

// headAt is the head of the newest version from before an instant; versions are sorted.
func headAt(versions []*gitlab.MergeRequestDiffVersion, when time.Time) string {
	head := ""
	for _, v := range versions {
		if when.IsZero() || at(v.CreatedAt).After(when) {
			break
		}
		head = v.HeadCommitSHA
	}
	return head
}
