package gitea

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

func (a *adaptor) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	all, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.PullRequest, *gitea.Response, error) {
		return c.ListRepoPullRequests(a.owner, a.name, gitea.ListPullRequestsOptions{ListOptions: o, State: gitea.StateOpen, Sort: "oldest"})
	})
	if err != nil {
		return nil, a.op("list the open pull requests", needsRead).Fail(err)
	}
	return forge.SortOpen(convert(all, base)), nil
}

// Closed reads the list by its last change and stops where nothing can follow.
func (a *adaptor) Closed(ctx context.Context, base string, since time.Time) ([]forge.PullRequest, error) {
	since = since.Truncate(time.Second)
	var all []*gitea.PullRequest
	_, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.PullRequest, *gitea.Response, error) {
		some, resp, err := c.ListRepoPullRequests(a.owner, a.name, gitea.ListPullRequestsOptions{ListOptions: o, State: gitea.StateClosed, Sort: "recentupdate"})
		all = append(all, some...)
		if n := len(some); err == nil && n > 0 && at(some[n-1].Updated).Before(since) {
			err = errStop
		}
		return some, resp, err
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, a.op("list the closed pull requests", needsRead).Fail(err)
	}
	return forge.ClosedSince(convert(all, base), since), nil
}

func (a *adaptor) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	pr, err := call(a, ctx, func(c *gitea.Client) (*gitea.PullRequest, error) {
		pr, _, err := c.GetPullRequest(a.owner, a.name, int64(number))
		return pr, err
	})
	if err != nil {
		return forge.PullRequest{}, a.op(fmt.Sprintf("read pull request %d", number), needsRead).Fail(err)
	}
	return pullRequest(pr), nil
}

func (a *adaptor) Files(ctx context.Context, number int) ([]string, error) {
	files, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.ChangedFile, *gitea.Response, error) {
		return c.ListPullRequestFiles(a.owner, a.name, int64(number), gitea.ListPullRequestFilesOptions{ListOptions: o})
	})
	if err != nil {
		return nil, a.op(fmt.Sprintf("list the files of pull request %d", number), needsRead).Fail(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Filename)
		if f.PreviousFilename != "" {
			paths = append(paths, f.PreviousFilename)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// convert keeps those into one branch, which the forge cannot be asked for.
func convert(all []*gitea.PullRequest, base string) []forge.PullRequest {
	var out []forge.PullRequest
	for _, pr := range all {
		if pr != nil && pr.Base != nil && pr.Base.Ref == base {
			out = append(out, pullRequest(pr))
		}
	}
	return out
}

func pullRequest(pr *gitea.PullRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: int(pr.Index), Title: pr.Title, URL: pr.HTMLURL, State: forge.IsOpen, Draft: pr.Draft,
		Mergeable: mergeable(pr), UpdatedAt: at(pr.Updated), ClosedAt: at(pr.Closed),
	}
	if pr.Poster != nil {
		out.Author = pr.Poster.UserName
	}
	if pr.Head != nil {
		out.Head, out.HeadRef = pr.Head.Sha, pr.Head.Ref
	}
	if pr.Base != nil {
		out.Base, out.BaseRef = pr.Base.Sha, pr.Base.Ref
		out.Fork = pr.Head == nil || pr.Head.RepoID != pr.Base.RepoID
	}
	switch {
	case pr.HasMerged:
		out.State, out.ClosedAt = forge.IsMerged, at(pr.Merged)
		if pr.MergedCommitID != nil {
			out.MergeCommit = *pr.MergedCommitID
		}
	case pr.State == gitea.StateClosed:
		out.State = forge.IsClosed
	}
	return out
}

// mergeable is what the forge tells: no is also its answer while it still checks, and
// then it is not known.
func mergeable(pr *gitea.PullRequest) forge.Mergeable {
	switch {
	case pr.State != gitea.StateOpen || !pr.Mergeable && !pr.Draft:
		return forge.Unknown
	case pr.Draft:
		return forge.Blocked
	}
	return forge.Clean
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
