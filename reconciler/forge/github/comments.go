package github

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

const needsComments = "pull requests write and issues write (classic: repo)"

func (a *adaptor) Comments(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	self, err := a.self(ctx)
	if err != nil {
		return nil, err
	}
	var from *time.Time
	if !since.IsZero() {
		second := since.UTC().Truncate(time.Second)
		from = &second
	}
	all, err := rest.Pages(func(page int) ([]*github.IssueComment, int, error) {
		some, resp, err := a.client.Issues.ListComments(ctx, a.owner, a.name, number, &github.IssueListCommentsOptions{Since: from, ListOptions: pageOf(page)})
		return some, next(resp), err
	})
	if err != nil {
		return nil, a.op(fmt.Sprintf("list the comments of pull request %d", number), "pull requests read and issues read (classic: repo)").Fail(err)
	}
	out := make([]forge.Comment, len(all))
	for i, c := range all {
		out[i] = comment(c, self)
	}
	return forge.SortComments(out), nil
}

func comment(c *github.IssueComment, self string) forge.Comment {
	return forge.Comment{
		ID: c.GetID(), Author: c.GetUser().GetLogin(), Bot: strings.EqualFold(c.GetUser().GetLogin(), self),
		Body: c.GetBody(), At: c.GetCreatedAt().Time, UpdatedAt: c.GetUpdatedAt().Time, URL: c.GetHTMLURL(),
	}
}

func (a *adaptor) Comment(ctx context.Context, number int, body string) (forge.Comment, error) {
	op := a.op(fmt.Sprintf("comment on pull request %d", number), needsComments)
	if err := limits.FitsComment(op.What, body); err != nil {
		return forge.Comment{}, err
	}
	c, _, err := a.client.Issues.CreateComment(ctx, a.owner, a.name, number, &github.IssueComment{Body: &body})
	if err != nil {
		return forge.Comment{}, op.Fail(err)
	}
	return comment(c, c.GetUser().GetLogin()), nil
}

func (a *adaptor) EditComment(ctx context.Context, number int, id int64, body string) error {
	op := a.op(fmt.Sprintf("edit comment %d of pull request %d", id, number), needsComments)
	if err := limits.FitsComment(op.What, body); err != nil {
		return err
	}
	_, _, err := a.client.Issues.EditComment(ctx, a.owner, a.name, id, &github.IssueComment{Body: &body})
	return op.Fail(err)
}

func (a *adaptor) React(ctx context.Context, number int, comment int64, sign forge.Sign) error {
	_, _, err := a.client.Reactions.CreateIssueCommentReaction(ctx, a.owner, a.name, comment, string(sign))
	return a.op(fmt.Sprintf("react to comment %d of pull request %d", comment, number), needsComments).Fail(err)
}

func (a *adaptor) Reviews(ctx context.Context, number int) ([]forge.Review, error) {
	all, err := rest.Pages(func(page int) ([]*github.PullRequestReview, int, error) {
		o := pageOf(page)
		some, resp, err := a.client.PullRequests.ListReviews(ctx, a.owner, a.name, number, &o)
		return some, next(resp), err
	})
	if err != nil {
		return nil, a.op(fmt.Sprintf("list the reviews of pull request %d", number), needsPulls).Fail(err)
	}
	var verdicts []forge.Review
	for _, r := range all {
		switch r.GetState() {
		case "APPROVED", "CHANGES_REQUESTED", "DISMISSED": // a remark is no verdict
			verdicts = append(verdicts, forge.Review{
				Author: r.GetUser().GetLogin(), Commit: r.GetCommitID(),
				Approved: r.GetState() == "APPROVED", At: r.GetSubmittedAt().Time,
			})
		}
	}
	return forge.NewestReviews(verdicts), nil
}
