package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gitlab.com/gitlab-org/api/client-go"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

func (a *adaptor) Comments(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	self, err := a.self(ctx)
	if err != nil {
		return nil, err
	}
	since = since.Truncate(time.Second)
	notes, err := a.notes(ctx, number, since)
	if err != nil {
		return nil, a.op(fmt.Sprintf("list the comments of merge request %d", number), needsRead).Fail(err)
	}
	var out []forge.Comment
	for _, n := range notes {
		if !n.System && !at(n.UpdatedAt).Before(since) {
			out = append(out, a.comment(n, number, self))
		}
	}
	return forge.SortComments(out), nil
}

// notes reads comments and the lines of GitLab's own by their last change, down to an
// instant.
func (a *adaptor) notes(ctx context.Context, number int, since time.Time) ([]*gitlab.Note, error) {
	return rest.Pages(func(n int) ([]*gitlab.Note, int, error) {
		some, resp, err := a.client.Notes.ListMergeRequestNotes(a.project, int64(number), &gitlab.ListMergeRequestNotesOptions{
			OrderBy: ptr("updated_at"), Sort: ptr("desc"), ListOptions: page(n),
		}, gitlab.WithContext(ctx))
		if last := len(some) - 1; last >= 0 && at(some[last].UpdatedAt).Before(since) {
			return some, 0, err
		}
		return some, next(resp), err
	})
}

func (a *adaptor) comment(n *gitlab.Note, number int, self int64) forge.Comment {
	url := *a.client.BaseURL()
	url.Path = strings.TrimSuffix(url.Path, "api/v4/") + fmt.Sprintf("%s/-/merge_requests/%d", a.project, number)
	url.Fragment = fmt.Sprintf("note_%d", n.ID)
	return forge.Comment{
		ID: n.ID, Author: n.Author.Username, Bot: n.Author.ID == self, Body: n.Body,
		At: at(n.CreatedAt), UpdatedAt: at(n.UpdatedAt), URL: url.String(),
	}
}

func (a *adaptor) Comment(ctx context.Context, number int, body string) (forge.Comment, error) {
	op := a.op(fmt.Sprintf("comment on merge request %d", number), needsWrite)
	if err := limits.FitsComment(op.What, body); err != nil {
		return forge.Comment{}, err
	}
	n, _, err := a.client.Notes.CreateMergeRequestNote(a.project, int64(number), &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	if err != nil {
		return forge.Comment{}, op.Fail(err)
	}
	return a.comment(n, number, n.Author.ID), nil
}

func (a *adaptor) EditComment(ctx context.Context, number int, id int64, body string) error {
	op := a.op(fmt.Sprintf("edit comment %d of merge request %d", id, number), needsWrite)
	if err := limits.FitsComment(op.What, body); err != nil {
		return err
	}
	_, _, err := a.client.Notes.UpdateMergeRequestNote(a.project, int64(number), id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return op.Fail(err)
}

// names of the signs among GitLab's emoji.
var names = map[forge.Sign]string{forge.Seen: "eyes", forge.Done: "thumbsup", forge.Denied: "thumbsdown"}

func (a *adaptor) React(ctx context.Context, number int, comment int64, sign forge.Sign) error {
	op := a.op(fmt.Sprintf("react to comment %d of merge request %d", comment, number), needsWrite)
	name, ok := names[sign]
	if !ok {
		return &forge.Refused{What: op.What, Hint: fmt.Sprintf("there is no sign %q", sign)}
	}
	_, _, err := a.client.AwardEmoji.CreateMergeRequestAwardEmojiOnNote(a.project, int64(number), comment, &gitlab.CreateAwardEmojiOptions{Name: name}, gitlab.WithContext(ctx))
	// A second one of the same name is refused: 404 in older versions, 400 in newer ones.
	if (rest.Is(err, http.StatusNotFound) || rest.Is(err, http.StatusBadRequest)) && strings.Contains(err.Error(), "already been taken") {
		return nil
	}
	return op.Fail(err)
}
