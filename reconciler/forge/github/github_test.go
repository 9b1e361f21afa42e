package github_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/github"
)

// An unchanged poll costs no call of GitHub's hourly limit: it answers 304.
func TestAPollWithoutNewsIsAnsweredNotModified(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	f := adaptor(t, w)
	for n := range 120 {
		w.OpenPullRequest(forgetest.Opening{Title: fmt.Sprint(n)})
	}
	poll := func() int {
		open, err := f.Open(t.Context(), "main")
		require.NoError(t, err)
		return len(open)
	}
	assert.Equal(t, 120, poll())
	assert.Zero(t, w.NotModified())
	assert.Equal(t, 120, poll())
	assert.Equal(t, 2, w.NotModified(), "both pages")
	w.OpenPullRequest(forgetest.Opening{})
	assert.Equal(t, 121, poll(), "news are seen at once")
}

func TestWhatGitHubSaysOfAMergeIsTakenForNoMore(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	f := adaptor(t, w)
	number := w.OpenPullRequest(forgetest.Opening{Fork: true, Draft: true})
	pr, err := f.PullRequest(t.Context(), number)
	require.NoError(t, err)
	assert.True(t, pr.Fork)
	assert.True(t, pr.Draft)
	for _, m := range []forge.Mergeable{forge.Clean, forge.Conflicting, forge.Blocked, forge.Unknown} {
		w.SetMergeable(number, m)
		pr, err := f.PullRequest(t.Context(), number)
		require.NoError(t, err)
		assert.Equal(t, m, pr.Mergeable)
	}
	open, err := f.Open(t.Context(), "main")
	require.NoError(t, err)
	assert.Equal(t, forge.Unknown, open[0].Mergeable, "a list does not say")
	assert.Empty(t, open[0].MergeCommit, "a trial merge is none")
}

func TestADismissedReviewIsNoApproval(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	f := adaptor(t, w)
	number := w.OpenPullRequest(forgetest.Opening{})
	w.Approve(number, "ben")
	w.Dismiss(number, "ben")
	reviews, err := f.Reviews(t.Context(), number)
	require.NoError(t, err)
	require.Len(t, reviews, 1)
	assert.False(t, reviews[0].Approved)
}

func TestAPullRequestOfMoreFilesThanGitHubListsIsRefused(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	f := adaptor(t, w)
	files := make([]string, 3000)
	for n := range files {
		files[n] = fmt.Sprintf("f%04d.hcl", n)
	}
	number := w.OpenPullRequest(forgetest.Opening{Files: files})
	_, err := f.Files(t.Context(), number)
	var refused *forge.Refused
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, refused.Hint, "split it")
	number = w.OpenPullRequest(forgetest.Opening{Files: []string{"new.hcl", "b.hcl"}, Renamed: map[string]string{"new.hcl": "a.hcl"}})
	got, err := f.Files(t.Context(), number)
	require.NoError(t, err)
	assert.Equal(t, []string{"a.hcl", "b.hcl", "new.hcl"}, got, "a rename has both names")
}

func TestOnlyTheClosedOnesSinceAnInstantAreRead(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := forgetest.New(forgetest.Options{Now: func() time.Time { return now }})
	f := adaptor(t, w)
	for range 250 {
		w.Close(w.OpenPullRequest(forgetest.Opening{}))
	}
	now = now.Add(time.Hour)
	recent := w.OpenPullRequest(forgetest.Opening{})
	w.Merge(recent, "")
	before := w.Calls(forgetest.CallClosed)
	closed, err := f.Closed(t.Context(), "main", now.Add(300*time.Millisecond))
	require.NoError(t, err)
	require.Len(t, closed, 1, "an instant within a second counts from its beginning")
	assert.Equal(t, recent, closed[0].Number)
	assert.Equal(t, 1, w.Calls(forgetest.CallClosed)-before, "one page tells that nothing else follows")
	all, err := f.Closed(t.Context(), "main", time.Time{})
	require.NoError(t, err)
	assert.Len(t, all, 251)
}

func TestATokenThatMayNotAskForItsAccountIsToldIt(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	w.Always(forgetest.CallSelf, forgetest.Answer(403))
	url := w.Serve(t, forgetest.GitHub)
	number := w.OpenPullRequest(forgetest.Opening{})
	o := github.Options{URL: url, Repository: "acme/app", Token: func(context.Context) (string, error) { return "token", nil }}
	f, err := github.New(o)
	require.NoError(t, err)
	_, err = f.Comments(t.Context(), number, time.Time{})
	require.ErrorContains(t, err, "github-actions[bot]")
	o.Account = forgetest.Self
	f, err = github.New(o)
	require.NoError(t, err)
	_, err = f.Comments(t.Context(), number, time.Time{})
	require.NoError(t, err)
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	token := func(context.Context) (string, error) { return "token", nil }
	for name, o := range map[string]github.Options{
		"no owner":        {Repository: "app", Token: token},
		"too deep":        {Repository: "acme/app/more", Token: token},
		"no token":        {Repository: "acme/app"},
		"a URL with user": {Repository: "acme/app", Token: token, URL: "https://user:password@github.test"},
		"another scheme":  {Repository: "acme/app", Token: token, URL: "ftp://github.test"},
	} {
		_, err := github.New(o)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "password@")
	}
}
