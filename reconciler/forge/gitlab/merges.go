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

func (a *adaptor) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	// A merge request is "locked" while GitLab merges it, and not over yet.
	var all []forge.PullRequest
	for _, state := range []string{"opened", "locked"} {
		some, err := a.list(ctx, &gitlab.ListProjectMergeRequestsOptions{
			State: &state, TargetBranch: &base, OrderBy: ptr("created_at"), Sort: ptr("asc"), Scope: ptr("all"),
		})
		if err != nil {
			return nil, a.op("list the open merge requests", needsRead).Fail(err)
		}
		all = append(all, some...)
	}
	return forge.SortOpen(all), nil
}

func (a *adaptor) Closed(ctx context.Context, base string, since time.Time) ([]forge.PullRequest, error) {
	since = since.UTC().Truncate(time.Second)
	o := &gitlab.ListProjectMergeRequestsOptions{TargetBranch: &base, OrderBy: ptr("updated_at"), Sort: ptr("desc"), State: ptr("all"), Scope: ptr("all")}
	if !since.IsZero() {
		// Whether "after" includes the instant itself is not said.
		o.UpdatedAfter = ptr(since.Add(-time.Second))
	}
	all, err := a.list(ctx, o)
	if err != nil {
		return nil, a.op("list the closed merge requests", needsRead).Fail(err)
	}
	return forge.ClosedSince(all, since), nil
}

func (a *adaptor) list(ctx context.Context, o *gitlab.ListProjectMergeRequestsOptions) ([]forge.PullRequest, error) {
	return rest.Pages(func(n int) ([]forge.PullRequest, int, error) {
		o.ListOptions = page(n)
		some, resp, err := a.client.MergeRequests.ListProjectMergeRequests(a.project, o, gitlab.WithContext(ctx))
		out := make([]forge.PullRequest, len(some))
		for i, mr := range some {
			out[i] = pullRequest(mr)
		}
		return out, next(resp), err
	})
}

func (a *adaptor) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	mr, err := a.mergeRequest(ctx, number)
	if err != nil {
		return forge.PullRequest{}, a.op(fmt.Sprintf("read merge request %d", number), needsRead).Fail(err)
	}
	out := pullRequest(&mr.BasicMergeRequest)
	out.Base = mr.DiffRefs.StartSha
	return out, nil
}

func (a *adaptor) mergeRequest(ctx context.Context, number int) (*gitlab.MergeRequest, error) {
	mr, _, err := a.client.MergeRequests.GetMergeRequest(a.project, int64(number), nil, gitlab.WithContext(ctx))
	return mr, err
}

func (a *adaptor) Files(ctx context.Context, number int) ([]string, error) {
	op := a.op(fmt.Sprintf("list the files of merge request %d", number), needsRead)
	mr, err := a.mergeRequest(ctx, number)
	if err != nil {
		return nil, op.Fail(err)
	}
	// GitLab says "1000+" where it has cut the list.
	if strings.HasSuffix(mr.ChangesCount, "+") {
		return nil, &forge.Refused{What: op.What, Hint: "GitLab lists the first files only of a merge request with " + mr.ChangesCount + " changes: split it"}
	}
	diffs, err := rest.Pages(func(n int) ([]*gitlab.MergeRequestDiff, int, error) {
		some, resp, err := a.client.MergeRequests.ListMergeRequestDiffs(a.project, int64(number),
			&gitlab.ListMergeRequestDiffsOptions{ListOptions: page(n)}, gitlab.WithContext(ctx))
		return some, next(resp), err
	})
	if err != nil {
		return nil, op.Fail(err)
	}
	var paths []string
	for _, d := range diffs {
		paths = append(paths, d.NewPath, d.OldPath)
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return p == "" }), nil
}

func pullRequest(mr *gitlab.BasicMergeRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: int(mr.IID), Title: mr.Title, URL: mr.WebURL,
		State: forge.IsOpen, Draft: mr.Draft, Head: mr.SHA, HeadRef: mr.SourceBranch,
		Fork: mr.SourceProjectID != mr.TargetProjectID, BaseRef: mr.TargetBranch,
		Mergeable: mergeable(mr), UpdatedAt: at(mr.UpdatedAt),
	}
	if mr.Author != nil {
		out.Author = mr.Author.Username
	}
	switch mr.State {
	case "closed":
		out.State, out.ClosedAt = forge.IsClosed, at(mr.ClosedAt)
	case "merged":
		// Merged by fast-forward there is no commit but the head.
		out.State, out.ClosedAt, out.MergeCommit = forge.IsMerged, at(mr.MergedAt), mr.SHA
		for _, id := range []string{mr.SquashCommitSHA, mr.MergeCommitSHA} {
			if id != "" {
				out.MergeCommit = id
			}
		}
	}
	return out
}

func mergeable(mr *gitlab.BasicMergeRequest) forge.Mergeable {
	switch {
	case mr.State != "opened":
		return forge.Unknown
	case mr.HasConflicts || mr.DetailedMergeStatus == "conflict" || mr.DetailedMergeStatus == "broken_status":
		return forge.Conflicting
	}
	switch mr.DetailedMergeStatus {
	case "mergeable":
		return forge.Clean
	case "", "unchecked", "checking", "preparing", "approvals_syncing":
		return forge.Unknown
	}
	return forge.Blocked
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func ptr[T any](v T) *T { return &v }
