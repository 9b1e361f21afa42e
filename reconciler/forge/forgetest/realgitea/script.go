package realgitea

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// Script lets the people of the server work on acme/app.
func (s *Server) Script(t testing.TB) forgetest.Script { return &script{server: s, t: t} }

type script struct {
	server *Server
	t      testing.TB
	pushed int
}

// commit writes files, with a content that no commit had before, onto a branch that is
// made from main when it is new, and returns the commit.
func (p *script) commit(user string, o gitea.ChangeFilesOptions, files []string) string {
	p.t.Helper()
	p.pushed++
	o.Message = fmt.Sprintf("change %d", p.pushed)
	for _, path := range files {
		content := base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("# %d: %s\n", p.pushed, path)))
		o.Files = append(o.Files, &gitea.ChangeFileOperation{Operation: "create", Path: path, Content: content})
	}
	made, _, err := p.server.as(p.t, user).ChangeFiles("acme", "app", o)
	require.NoError(p.t, err)
	return made.Commit.SHA
}

func (p *script) OpenPullRequest(o forgetest.Opening) int {
	p.t.Helper()
	if o.Author == "" {
		o.Author = "ann"
	}
	if o.Title == "" {
		o.Title = "a change"
	}
	branch := fmt.Sprintf("change-%d", p.pushed+1)
	p.commit(o.Author, gitea.ChangeFilesOptions{Branch: "main", NewBranch: branch}, o.Files)
	made, _, err := p.server.as(p.t, o.Author).CreatePullRequest("acme", "app", gitea.CreatePullRequestOption{Head: branch, Base: "main", Title: o.Title})
	require.NoError(p.t, err)
	return int(made.Index)
}

func (p *script) pull(number int) *gitea.PullRequest {
	p.t.Helper()
	pr, _, err := p.server.as(p.t, site).GetPullRequest("acme", "app", int64(number))
	require.NoError(p.t, err)
	return pr
}

func (p *script) Push(number int, _ string, files ...string) string {
	p.t.Helper()
	files = append(files, fmt.Sprintf("pushed-%d.hcl", p.pushed))
	return p.commit("ann", gitea.ChangeFilesOptions{Branch: p.pull(number).Head.Ref}, files)
}

func (p *script) Merge(number int, _ string) string {
	p.t.Helper()
	olga := p.server.as(p.t, "olga")
	// Gitea refuses while it still works out whether the merge is possible.
	require.Eventually(p.t, func() bool {
		merged, _, err := olga.MergePullRequest("acme", "app", int64(number), gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge})
		return err == nil && merged
	}, 30*time.Second, 100*time.Millisecond, "the pull request cannot be merged")
	pr := p.pull(number)
	require.NotNil(p.t, pr.MergedCommitID)
	return *pr.MergedCommitID
}

func (p *script) state(number int, state gitea.StateType) {
	p.t.Helper()
	_, _, err := p.server.as(p.t, "ann").EditPullRequest("acme", "app", int64(number), gitea.EditPullRequestOption{State: &state})
	require.NoError(p.t, err)
}

func (p *script) Close(number int) {
	p.t.Helper()
	p.state(number, gitea.StateClosed)
}

func (p *script) Reopen(number int) {
	p.t.Helper()
	p.state(number, gitea.StateOpen)
}

func (p *script) Say(number int, user, text string) int64 {
	p.t.Helper()
	c, _, err := p.server.as(p.t, user).CreateIssueComment("acme", "app", int64(number), gitea.CreateIssueCommentOption{Body: text})
	require.NoError(p.t, err)
	return c.ID
}

func (p *script) Delete(_ int, comment int64) {
	p.t.Helper()
	_, err := p.server.as(p.t, site).DeleteIssueComment("acme", "app", comment)
	require.NoError(p.t, err)
}

func (p *script) review(number int, user string, state gitea.ReviewStateType) {
	p.t.Helper()
	_, _, err := p.server.as(p.t, user).CreatePullReview("acme", "app", int64(number), gitea.CreatePullReviewOptions{State: state, Body: "reviewed"})
	require.NoError(p.t, err)
}

func (p *script) Approve(number int, user string) {
	p.t.Helper()
	p.review(number, user, gitea.ReviewStateApproved)
}

func (p *script) RequestChanges(number int, user string) {
	p.t.Helper()
	p.review(number, user, gitea.ReviewStateRequestChanges)
}

// Subscribe makes the repository send its webhooks, of all kinds, to an address.
func (s *Server) Subscribe(t testing.TB, address, secret string) {
	t.Helper()
	_, _, err := s.as(t, site).CreateRepoHook("acme", "app", gitea.CreateHookOption{
		Type: gitea.HookTypeGitea, Active: true,
		Config: map[string]string{"url": address, "content_type": "json", "secret": secret},
		Events: []string{"push", "pull_request", "pull_request_sync", "pull_request_review", "issue_comment", "pull_request_comment"},
	})
	require.NoError(t, err)
}

// Propose opens a pull request of a branch that was pushed, and returns its number.
func (s *Server) Propose(t testing.TB, author, branch string) int {
	t.Helper()
	made, _, err := s.as(t, author).CreatePullRequest("acme", "app", gitea.CreatePullRequestOption{Head: branch, Base: "main", Title: branch})
	require.NoError(t, err)
	return int(made.Index)
}

// Comments are the texts that a user has written on a pull request, oldest first.
func (s *Server) Comments(t testing.TB, number int, author string) []string {
	t.Helper()
	all, _, err := s.as(t, site).ListIssueComments("acme", "app", int64(number), gitea.ListIssueCommentOptions{})
	require.NoError(t, err)
	var out []string
	for _, c := range all {
		if c.Poster.UserName == author {
			out = append(out, c.Body)
		}
	}
	return out
}

// Statuses are what was set on a commit or a branch, newest first, as "state description".
func (s *Server) Statuses(t testing.TB, ref string) []string {
	t.Helper()
	all, _, err := s.as(t, site).ListStatuses("acme", "app", ref, gitea.ListStatusesOption{})
	require.NoError(t, err)
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one.State) + " " + one.Description
	}
	return out
}
