package github

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v88/github"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

const needsPulls = "pull requests read (classic: repo)"

func (a *adaptor) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	all, err := rest.Pages(func(page int) ([]*github.PullRequest, int, error) {
		some, resp, err := a.client.PullRequests.List(ctx, a.owner, a.name, &github.PullRequestListOptions{
			State: "open", Base: base, Sort: "created", Direction: "asc", ListOptions: pageOf(page),
		})
		return some, next(resp), err
	})
	if err != nil {
		return nil, a.op("list the open pull requests", needsPulls).Fail(err)
	}
	return forge.SortOpen(convert(all)), nil
}

// Closed reads the list by its last change and stops where nothing can follow: one that
// was closed later than an instant was also changed later.
func (a *adaptor) Closed(ctx context.Context, base string, since time.Time) ([]forge.PullRequest, error) {
	since = since.Truncate(time.Second)
	all, err := rest.Pages(func(page int) ([]*github.PullRequest, int, error) {
		some, resp, err := a.client.PullRequests.List(ctx, a.owner, a.name, &github.PullRequestListOptions{
			State: "closed", Base: base, Sort: "updated", Direction: "desc", ListOptions: pageOf(page),
		})
		if n := len(some); n > 0 && some[n-1].GetUpdatedAt().Before(since) {
			return some, 0, err
		}
		return some, next(resp), err
	})
	if err != nil {
		return nil, a.op("list the closed pull requests", needsPulls).Fail(err)
	}
	return forge.ClosedSince(convert(all), since), nil
}

func (a *adaptor) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	pr, _, err := a.client.PullRequests.Get(ctx, a.owner, a.name, number)
	if err != nil {
		return forge.PullRequest{}, a.op(fmt.Sprintf("read pull request %d", number), needsPulls).Fail(err)
	}
	return pullRequest(pr), nil
}

// mostFiles is how many files of a pull request GitHub lists.
const mostFiles = 3000

func (a *adaptor) Files(ctx context.Context, number int) ([]string, error) {
	op := a.op(fmt.Sprintf("list the files of pull request %d", number), needsPulls)
	files, err := rest.Pages(func(page int) ([]*github.CommitFile, int, error) {
		o := pageOf(page)
		some, resp, err := a.client.PullRequests.ListFiles(ctx, a.owner, a.name, number, &o)
		return some, next(resp), err
	})
	if err != nil {
		return nil, op.Fail(err)
	}
	if len(files) >= mostFiles {
		return nil, &forge.Refused{What: op.What, Hint: fmt.Sprintf("GitHub lists %d files at most and this one may touch more: split it", mostFiles)}
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.GetFilename())
		if old := f.GetPreviousFilename(); old != "" {
			paths = append(paths, old)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func convert(all []*github.PullRequest) []forge.PullRequest {
	out := make([]forge.PullRequest, len(all))
	for i, pr := range all {
		out[i] = pullRequest(pr)
	}
	return out
}

func pullRequest(pr *github.PullRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: pr.GetNumber(), Title: pr.GetTitle(), Author: pr.GetUser().GetLogin(), URL: pr.GetHTMLURL(),
		State: forge.IsOpen, Draft: pr.GetDraft(),
		Head: pr.GetHead().GetSHA(), HeadRef: pr.GetHead().GetRef(),
		Fork: pr.GetHead().GetRepo().GetID() != pr.GetBase().GetRepo().GetID(),
		Base: pr.GetBase().GetSHA(), BaseRef: pr.GetBase().GetRef(),
		Mergeable: mergeable(pr),
		UpdatedAt: pr.GetUpdatedAt().Time, ClosedAt: pr.GetClosedAt().Time,
	}
	if pr.GetState() == "closed" {
		out.State = forge.IsClosed
	}
	if pr.GetMerged() || !pr.GetMergedAt().IsZero() {
		// While it is open, merge_commit_sha is a trial merge of GitHub's own.
		out.State, out.MergeCommit = forge.IsMerged, pr.GetMergeCommitSHA()
	}
	return out
}

func mergeable(pr *github.PullRequest) forge.Mergeable {
	if pr.Mergeable == nil || pr.GetState() == "closed" {
		return forge.Unknown
	}
	switch pr.GetMergeableState() {
	case "clean", "unstable", "has_hooks":
		return forge.Clean
	case "dirty":
		return forge.Conflicting
	case "blocked", "behind", "draft":
		return forge.Blocked
	}
	return forge.Unknown
}

func pageOf(page int) github.ListOptions {
	return github.ListOptions{Page: page, PerPage: rest.PerPage}
}

func next(resp *github.Response) int {
	if resp == nil {
		return 0
	}
	return resp.NextPage
}
