package gitlab_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// GitLab does not say which commit was approved: it is the newest head from before.
func TestAnApprovalFromBeforeAPushIsOneOfTheOlderHead(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := forgetest.New(forgetest.Options{Now: func() time.Time { return now }})
	f := adaptor(t, w)
	number := w.OpenPullRequest(forgetest.Opening{})
	old := w.PullRequestOf(number).Head
	now = now.Add(time.Minute)
	w.Approve(number, "ben")
	now = now.Add(time.Minute)
	head := w.Push(number, "")
	now = now.Add(time.Minute)
	w.Approve(number, "olga")
	reviews, err := f.Reviews(t.Context(), number)
	require.NoError(t, err)
	require.Len(t, reviews, 2)
	assert.Equal(t, forge.Review{Author: "ben", Commit: old, Approved: true, At: now.Add(-2 * time.Minute)}, reviews[0])
	assert.Equal(t, forge.Review{Author: "olga", Commit: head, Approved: true, At: now}, reviews[1])
	w.Dismiss(number, "ben")
	reviews, err = f.Reviews(t.Context(), number)
	require.NoError(t, err)
	assert.Len(t, reviews, 1, "one that was withdrawn is no verdict")
}

func TestAStatusThatIsPendingAlreadyTakesTheNewText(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	f := adaptor(t, w)
	commit := w.PullRequestOf(w.OpenPullRequest(forgetest.Opening{})).Head
	for _, text := range []string{"planning", "planning, 10 s", "planning, 20 s"} {
		require.NoError(t, f.SetStatus(t.Context(), commit, forge.Status{Context: "sluice/chat", State: forge.Pending, Text: text}))
		all, err := f.Statuses(t.Context(), commit)
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, text, all[0].Text)
	}
	// A refusal for whatever other reason is one.
	w.Next(forgetest.CallSetStatus, forgetest.Answer(400))
	var refused *forge.Refused
	require.ErrorAs(t, f.SetStatus(t.Context(), commit, forge.Status{Context: "sluice/chat", State: forge.Pending}), &refused)
}

func TestRolesOfGitLabAreRanked(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	f := adaptor(t, w)
	for _, role := range []forge.Role{forge.Read, forge.Triage, forge.Write, forge.Maintain, forge.Admin} {
		w.SetRole("ann", role)
		got, err := f.Role(t.Context(), "ann")
		require.NoError(t, err)
		assert.Equal(t, role, got)
	}
	w.SetTeam("acme/platform", "zoe")
	got, err := f.Role(t.Context(), "zoe")
	require.NoError(t, err)
	assert.Equal(t, forge.None, got, "known, but no member")
}
