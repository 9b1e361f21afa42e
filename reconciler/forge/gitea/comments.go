package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

func (a *adaptor) Comments(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	self, err := a.self(ctx)
	if err != nil {
		return nil, err
	}
	since = since.UTC().Truncate(time.Second)
	all, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Comment, *gitea.Response, error) {
		return c.ListIssueComments(a.owner, a.name, int64(number), gitea.ListIssueCommentOptions{ListOptions: o, Since: since})
	})
	if err != nil {
		return nil, a.op(fmt.Sprintf("list the comments of pull request %d", number), "the scope read:issue").Fail(err)
	}
	var out []forge.Comment
	for _, c := range all {
		if !c.Updated.Before(since) {
			out = append(out, comment(c, self))
		}
	}
	return forge.SortComments(out), nil
}

func comment(c *gitea.Comment, self int64) forge.Comment {
	out := forge.Comment{ID: c.ID, Body: c.Body, At: c.Created, UpdatedAt: c.Updated, URL: c.HTMLURL}
	if c.Poster != nil {
		out.Author, out.Bot = c.Poster.UserName, c.Poster.ID == self
	}
	return out
}

func (a *adaptor) Comment(ctx context.Context, number int, body string) (forge.Comment, error) {
	op := a.op(fmt.Sprintf("comment on pull request %d", number), needsIssues)
	if err := limits.FitsComment(op.What, body); err != nil {
		return forge.Comment{}, err
	}
	c, err := call(a, ctx, func(c *gitea.Client) (*gitea.Comment, error) {
		made, _, err := c.CreateIssueComment(a.owner, a.name, int64(number), gitea.CreateIssueCommentOption{Body: body})
		return made, err
	})
	if rest.Is(err, http.StatusInternalServerError) {
		// Gitea answers so where there is no such pull request.
		if _, readErr := a.PullRequest(ctx, number); errors.As(readErr, new(*forge.Refused)) {
			return forge.Comment{}, readErr
		}
	}
	if err != nil {
		return forge.Comment{}, op.Fail(err)
	}
	out := comment(c, 0)
	out.Bot = true
	return out, nil
}

func (a *adaptor) EditComment(ctx context.Context, number int, id int64, body string) error {
	op := a.op(fmt.Sprintf("edit comment %d of pull request %d", id, number), needsIssues)
	if err := limits.FitsComment(op.What, body); err != nil {
		return err
	}
	_, err := call(a, ctx, func(c *gitea.Client) (*gitea.Comment, error) {
		edited, _, err := c.EditIssueComment(a.owner, a.name, id, gitea.EditIssueCommentOption{Body: body})
		return edited, err
	})
	return op.Fail(err)
}

func (a *adaptor) React(ctx context.Context, number int, comment int64, sign forge.Sign) error {
	_, err := call(a, ctx, func(c *gitea.Client) (*gitea.Reaction, error) {
		r, _, err := c.PostIssueCommentReaction(a.owner, a.name, comment, string(sign))
		return r, err
	})
	return a.op(fmt.Sprintf("react to comment %d of pull request %d", comment, number), needsIssues).Fail(err)
}

func (a *adaptor) Reviews(ctx context.Context, number int) ([]forge.Review, error) {
	all, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		return c.ListPullReviews(a.owner, a.name, int64(number), gitea.ListPullReviewsOptions{ListOptions: o})
	})
	if err != nil {
		return nil, a.op(fmt.Sprintf("list the reviews of pull request %d", number), needsRead).Fail(err)
	}
	var verdicts []forge.Review
	for _, r := range all {
		if r.Reviewer == nil || r.State != gitea.ReviewStateApproved && r.State != gitea.ReviewStateRequestChanges {
			continue // a remark or a request is no verdict
		}
		verdicts = append(verdicts, forge.Review{
			Author: r.Reviewer.UserName, Commit: r.CommitID, At: r.Submitted,
			Approved: r.State == gitea.ReviewStateApproved && !r.Dismissed,
		})
	}
	return forge.NewestReviews(verdicts), nil
}
