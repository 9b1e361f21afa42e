package forgetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Stage is a forge to be tried, and the people at it: ann, who may write; olga, who is
// administrator; zoe, who is nobody; ben, who may write and is in the team
// acme/platform. The repository has no pull requests yet.
type Stage struct {
	Forge  forge.Forge
	Script Script
	Base   string // the branch that pull requests go into; default main
}

// People gives a world the people of a stage.
func People(w *World) {
	w.SetRole("ann", forge.Write)
	w.SetRole("ben", forge.Write)
	w.SetRole("olga", forge.Admin)
	w.SetTeam("acme/platform", "ben")
	w.SetTeam("acme/data", "ann")
}

// Suite is what every forge behind the port must do alike.
func Suite(t *testing.T, stage func(t *testing.T) Stage) {
	for name, scenario := range map[string]func(t *testing.T, s Stage){
		"a pull request from opening to merge":                       lifeOfAPullRequest,
		"closed, seen as closed, reopened, seen as open":             closedAndReopened,
		"files are complete and sorted":                              allFiles,
		"a talk with ourselves and others":                           aTalk,
		"a sign is given twice":                                      aSignTwice,
		"the newest review of each counts, for the head it was of":   reviews,
		"the newest status of each context counts":                   statuses,
		"the same status twice is no error (K1)":                     sameStatusTwice,
		"nothing new writes nothing in a thousand polls (K1)":        noNewsNoWrites,
		"long and foreign names of contexts (K5)":                    longContexts,
		"who may do what, and nobody is nobody (H3)":                 rights,
		"what is too long is refused before it is sent":              tooLong,
		"mentions and markup arrive as they were given (K11)":        asGiven,
		"one sticky comment over thirty pushes (K9)":                 oneSticky,
		"a sticky comment that somebody deleted is made again, once": stickyDeleted,
		"two at once make one sticky comment":                        stickyRace,
		"a marker in the words of others is not ours":                foreignMarker,
		"what is not there is refused with a hint":                   notThere,
		"a call ends with its context":                               endsWithContext,
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			if s.Base == "" {
				s.Base = "main"
			}
			scenario(t, s)
		})
	}
}

// ctx bounds a scenario; nothing in it takes that long.
func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c
}

// eventually asks again, since a real forge works some things out after it has answered.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 20*time.Second, 50*time.Millisecond, what)
}

func lifeOfAPullRequest(t *testing.T, s Stage) {
	before := time.Now().Add(-2 * time.Second)
	r, err := s.Forge.Repository(ctx(t))
	require.NoError(t, err)
	assert.Equal(t, "acme/app", r.FullName)
	assert.NotZero(t, r.ID)
	assert.Equal(t, s.Base, r.DefaultBranch)

	number := s.Script.OpenPullRequest(Opening{Author: "ann", Title: "chat: qwen-3 to 10 %", Files: []string{"prod/chat.hcl"}})
	open, err := s.Forge.Open(ctx(t), s.Base)
	require.NoError(t, err)
	require.Len(t, open, 1)
	one, err := s.Forge.PullRequest(ctx(t), number)
	require.NoError(t, err)
	for _, pr := range []forge.PullRequest{open[0], one} {
		assert.Equal(t, number, pr.Number)
		assert.Equal(t, "ann", pr.Author)
		assert.Equal(t, "chat: qwen-3 to 10 %", pr.Title)
		assert.Equal(t, forge.IsOpen, pr.State)
		assert.Len(t, pr.Head, 40)
		assert.Equal(t, one.Head, pr.Head)
		assert.Equal(t, one.HeadRef, pr.HeadRef)
		assert.Equal(t, s.Base, pr.BaseRef)
		assert.False(t, pr.Fork)
		assert.False(t, pr.Draft)
		assert.NotEqual(t, forge.Conflicting, pr.Mergeable)
		assert.Zero(t, pr.ClosedAt)
		assert.Empty(t, pr.MergeCommit)
		assert.WithinDuration(t, time.Now(), pr.UpdatedAt, time.Minute)
		assert.NotEmpty(t, pr.URL)
	}
	assert.Len(t, one.Base, 40)

	head := s.Script.Push(number, "")
	eventually(t, "the new head is seen", func() bool {
		pr, err := s.Forge.PullRequest(ctx(t), number)
		return err == nil && pr.Head == head
	})
	other, err := s.Forge.Open(ctx(t), "another-branch")
	require.NoError(t, err)
	assert.Empty(t, other)

	commit := s.Script.Merge(number, "")
	merged, err := s.Forge.PullRequest(ctx(t), number)
	require.NoError(t, err)
	closed, err := s.Forge.Closed(ctx(t), s.Base, before)
	require.NoError(t, err)
	require.Len(t, closed, 1)
	for _, pr := range []forge.PullRequest{merged, closed[0]} {
		assert.Equal(t, forge.IsMerged, pr.State)
		assert.Equal(t, commit, pr.MergeCommit)
		assert.WithinDuration(t, time.Now(), pr.ClosedAt, time.Minute)
	}
	open, err = s.Forge.Open(ctx(t), s.Base)
	require.NoError(t, err)
	assert.Empty(t, open)
	later, err := s.Forge.Closed(ctx(t), s.Base, time.Now().Add(time.Hour))
	require.NoError(t, err)
	assert.Empty(t, later, "what ended before the instant is not told again")
}

func closedAndReopened(t *testing.T, s Stage) {
	first := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	second := s.Script.OpenPullRequest(Opening{Files: []string{"b.hcl"}})
	s.Script.Close(first)
	pr, err := s.Forge.PullRequest(ctx(t), first)
	require.NoError(t, err)
	assert.Equal(t, forge.IsClosed, pr.State)
	assert.Empty(t, pr.MergeCommit)
	open, err := s.Forge.Open(ctx(t), s.Base)
	require.NoError(t, err)
	require.Len(t, open, 1)
	assert.Equal(t, second, open[0].Number)
	s.Script.Reopen(first)
	open, err = s.Forge.Open(ctx(t), s.Base)
	require.NoError(t, err)
	require.Len(t, open, 2)
	assert.Equal(t, []int{first, second}, []int{open[0].Number, open[1].Number})
	closed, err := s.Forge.Closed(ctx(t), s.Base, time.Time{})
	require.NoError(t, err)
	assert.Empty(t, closed)
}

func allFiles(t *testing.T, s Stage) {
	var want []string
	for n := range 60 {
		want = append(want, fmt.Sprintf("prod/endpoint-%02d.hcl", n))
	}
	number := s.Script.OpenPullRequest(Opening{Files: want})
	got, err := s.Forge.Files(ctx(t), number)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func aTalk(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	theirs := s.Script.Say(number, "ann", "/sluice plan")
	ours, err := s.Forge.Comment(ctx(t), number, "the plan\n\n* one step")
	require.NoError(t, err)
	assert.True(t, ours.Bot)
	assert.NotEmpty(t, ours.URL)
	all, err := s.Forge.Comments(ctx(t), number, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, theirs, all[0].ID)
	assert.Equal(t, "ann", all[0].Author)
	assert.False(t, all[0].Bot)
	assert.Equal(t, "/sluice plan", all[0].Body)
	assert.Equal(t, ours.ID, all[1].ID)
	assert.True(t, all[1].Bot)
	assert.Equal(t, "the plan\n\n* one step", all[1].Body)

	require.NoError(t, s.Forge.EditComment(ctx(t), number, ours.ID, "another plan"))
	all, err = s.Forge.Comments(ctx(t), number, all[0].At)
	require.NoError(t, err)
	require.Len(t, all, 2, "an instant counts to its second and is part of what is asked for")
	assert.Equal(t, "another plan", all[1].Body)
	all, err = s.Forge.Comments(ctx(t), number, time.Now().Add(time.Hour))
	require.NoError(t, err)
	assert.Empty(t, all)
}

func aSignTwice(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	id := s.Script.Say(number, "ann", "/sluice resume")
	for _, sign := range []forge.Sign{forge.Seen, forge.Seen, forge.Done, forge.Denied} {
		require.NoError(t, s.Forge.React(ctx(t), number, id, sign))
	}
}

func reviews(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Author: "ann", Files: []string{"a.hcl"}})
	none, err := s.Forge.Reviews(ctx(t), number)
	require.NoError(t, err)
	assert.Empty(t, none)
	pr, err := s.Forge.PullRequest(ctx(t), number)
	require.NoError(t, err)
	s.Script.RequestChanges(number, "olga")
	s.Script.Approve(number, "ben")
	all, err := s.Forge.Reviews(ctx(t), number)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "ben", all[0].Author)
	assert.True(t, all[0].Approved)
	assert.Equal(t, pr.Head, all[0].Commit)
	assert.WithinDuration(t, time.Now(), all[0].At, time.Minute)
	assert.Equal(t, "olga", all[1].Author)
	assert.False(t, all[1].Approved)
}

func statuses(t *testing.T, s Stage) {
	head := headOf(t, s)
	none, err := s.Forge.Statuses(ctx(t), head)
	require.NoError(t, err)
	assert.Empty(t, none)
	chat := forge.Status{Context: "sluice/chat", State: forge.Pending, Text: "step 1/3 · 10 % · soaking", URL: "https://example.com/r/1"}
	embed := forge.Status{Context: "sluice/embed", State: forge.Failure, Text: "denied by policy"}
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, chat))
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, embed))
	chat.State, chat.Text = forge.Success, "done"
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, chat))
	all, err := s.Forge.Statuses(ctx(t), head)
	require.NoError(t, err)
	assert.Equal(t, []forge.Status{chat, embed}, all)
	embed.State = forge.Error
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, embed))
	all, err = s.Forge.Statuses(ctx(t), head)
	require.NoError(t, err)
	assert.Equal(t, []forge.Status{chat, embed}, all)
}

func headOf(t *testing.T, s Stage) string {
	t.Helper()
	pr, err := s.Forge.PullRequest(ctx(t), s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}}))
	require.NoError(t, err)
	return pr.Head
}

func sameStatusTwice(t *testing.T, s Stage) {
	head := headOf(t, s)
	st := forge.Status{Context: "sluice/chat", State: forge.Pending, Text: "planning"}
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, st))
	st.Text = "still planning"
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, st))
	st.State = forge.Success
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, st))
	require.NoError(t, s.Forge.SetStatus(ctx(t), head, st))
	all, err := s.Forge.Statuses(ctx(t), head)
	require.NoError(t, err)
	assert.Equal(t, []forge.Status{st}, all)
}

// polls is how often nothing new is looked at; a real server is asked less often.
func polls(s Stage) int {
	if _, ok := s.Script.(*World); ok {
		return 1000
	}
	return 20
}

func noNewsNoWrites(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	pr, err := s.Forge.PullRequest(ctx(t), number)
	require.NoError(t, err)
	want := []forge.Status{
		{Context: "sluice/chat", State: forge.Pending, Text: "planning"},
		{Context: "sluice/embed", State: forge.Success, Text: "nothing to do"},
	}
	written, err := forge.SetStatuses(ctx(t), s.Forge, pr.Head, want)
	require.NoError(t, err)
	assert.Equal(t, 2, written)
	first, err := forge.Upsert(ctx(t), s.Forge, number, "<!-- sluice: acme/app -->", "the plan")
	require.NoError(t, err)
	for range polls(s) {
		written, err := forge.SetStatuses(ctx(t), s.Forge, pr.Head, want)
		require.NoError(t, err)
		require.Zero(t, written)
		again, err := forge.Upsert(ctx(t), s.Forge, number, "<!-- sluice: acme/app -->", "the plan")
		require.NoError(t, err)
		require.Equal(t, first.ID, again.ID)
	}
	if w, ok := s.Script.(*World); ok {
		assert.Equal(t, 3, w.Writes(Any), "two statuses and one comment, and not one write more")
	}
}

func longContexts(t *testing.T, s Stage) {
	head := headOf(t, s)
	long := strings.Repeat("endpoint-with-a-very-long-name/", 10)
	var want []string
	for _, parts := range [][]string{{"sluice", long + "a"}, {"sluice", long + "b"}, {"sluice", "größe/日本語🚀"}, {"sluice", "chat"}} {
		name := forge.Context(s.Forge.Limits().Context, parts...)
		want = append(want, name)
		require.NoError(t, s.Forge.SetStatus(ctx(t), head, forge.Status{Context: name, State: forge.Pending, Text: "planning"}))
	}
	all, err := s.Forge.Statuses(ctx(t), head)
	require.NoError(t, err)
	var got []string
	for _, st := range all {
		got = append(got, st.Context)
	}
	assert.ElementsMatch(t, want, got)
}

func rights(t *testing.T, s Stage) {
	for user, want := range map[string]forge.Role{"ann": forge.Write, "olga": forge.Admin} {
		role, err := s.Forge.Role(ctx(t), user)
		require.NoError(t, err)
		assert.Equal(t, want, role, user)
	}
	role, err := s.Forge.Role(ctx(t), "zoe")
	if err == nil {
		assert.LessOrEqual(t, role, forge.Read, "a stranger")
	}
	role, err = s.Forge.Role(ctx(t), "nobody-of-this-name")
	assert.LessOrEqual(t, role, forge.Read)
	if err != nil {
		assert.Equal(t, forge.None, role, "a failed look-up names no role")
	}
	teams, err := s.Forge.Teams(ctx(t), "ben", []string{"acme/platform", "acme/data"})
	require.NoError(t, err)
	assert.Equal(t, []string{"acme/platform"}, teams)
	teams, err = s.Forge.Teams(ctx(t), "ben", nil)
	require.NoError(t, err)
	assert.Empty(t, teams)
	teams, err = s.Forge.Teams(ctx(t), "ben", []string{"acme/platform", "acme/no-such-team"})
	assert.Error(t, err, "a team that is not there is a mistake of somebody, not an answer")
	assert.Empty(t, teams)
}

func tooLong(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	var refused *forge.Refused
	_, err := s.Forge.Comment(ctx(t), number, strings.Repeat("ö", s.Forge.Limits().Comment+1))
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "fold or shorten")
	assert.Contains(t, err.Error(), "not sent")
	err = s.Forge.EditComment(ctx(t), number, 1, strings.Repeat("ö", s.Forge.Limits().Comment+1))
	require.ErrorAs(t, err, &refused)
	err = s.Forge.SetStatus(ctx(t), strings.Repeat("a", 40), forge.Status{Context: strings.Repeat("c", s.Forge.Limits().Context+1), State: forge.Pending})
	require.ErrorAs(t, err, &refused)
	err = s.Forge.SetStatus(ctx(t), strings.Repeat("a", 40), forge.Status{Context: "c", State: forge.Pending, Text: strings.Repeat("t", s.Forge.Limits().Description+1)})
	require.ErrorAs(t, err, &refused)
	long := strings.Repeat("o", min(s.Forge.Limits().Comment, 65536))
	c, err := s.Forge.Comment(ctx(t), number, long)
	require.NoError(t, err, "what just fits is taken")
	all, err := s.Forge.Comments(ctx(t), number, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, c.ID, all[0].ID)
	assert.Len(t, all[0].Body, len(long))
}

func asGiven(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	body := "name `a`; rm -rf / </details> <!-- --> @\u200bacme/platform @ann \\ \"q\" \u001b[31m & é 日本 🚀"
	body = strings.ReplaceAll(body, "\u001b", "␛")
	c, err := s.Forge.Comment(ctx(t), number, body)
	require.NoError(t, err)
	assert.Equal(t, body, c.Body)
	all, err := s.Forge.Comments(ctx(t), number, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, body, all[0].Body)
}

const marker = "<!-- sluice: acme/app prod -->"

func ownComments(t *testing.T, s Stage, number int) []forge.Comment {
	t.Helper()
	all, err := s.Forge.Comments(ctx(t), number, time.Time{})
	require.NoError(t, err)
	var own []forge.Comment
	for _, c := range all {
		if c.Bot {
			own = append(own, c)
		}
	}
	return own
}

func oneSticky(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	s.Script.Say(number, "ann", "please look")
	for n := range 30 {
		c, err := forge.Upsert(ctx(t), s.Forge, number, marker, fmt.Sprintf("plan %d", n))
		require.NoError(t, err)
		assert.Equal(t, marker+fmt.Sprintf("\nplan %d", n), c.Body)
	}
	own := ownComments(t, s, number)
	require.Len(t, own, 1)
	assert.Equal(t, marker+"\nplan 29", own[0].Body)
	other, err := forge.Upsert(ctx(t), s.Forge, number, "<!-- sluice: acme/app staging -->", "plan")
	require.NoError(t, err)
	assert.NotEqual(t, own[0].ID, other.ID, "another marker, another comment")
}

func stickyDeleted(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	first, err := forge.Upsert(ctx(t), s.Forge, number, marker, "plan")
	require.NoError(t, err)
	s.Script.Delete(number, first.ID)
	for range 3 {
		again, err := forge.Upsert(ctx(t), s.Forge, number, marker, "plan")
		require.NoError(t, err)
		assert.NotEqual(t, first.ID, again.ID)
	}
	assert.Len(t, ownComments(t, s, number), 1)
}

func stickyRace(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			_, err := forge.Upsert(ctx(t), s.Forge, number, marker, fmt.Sprintf("plan of %d", n))
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Len(t, ownComments(t, s, number), 1)
}

func foreignMarker(t *testing.T, s Stage) {
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	theirs := s.Script.Say(number, "ann", marker+"\napproved by nobody")
	_, err := s.Forge.Comment(ctx(t), number, "the title is: "+marker)
	require.NoError(t, err)
	ours, err := forge.Upsert(ctx(t), s.Forge, number, marker, "plan")
	require.NoError(t, err)
	assert.NotEqual(t, theirs, ours.ID)
	all, err := s.Forge.Comments(ctx(t), number, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, marker+"\napproved by nobody", all[0].Body, "the words of others are left alone")
	_, err = forge.Upsert(ctx(t), s.Forge, number, "no comment", "plan")
	require.Error(t, err)
}

func notThere(t *testing.T, s Stage) {
	var refused *forge.Refused
	_, err := s.Forge.PullRequest(ctx(t), 4711)
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusNotFound, refused.Status)
	assert.NotEmpty(t, refused.Hint)
	_, err = s.Forge.Comment(ctx(t), 4711, "hello")
	require.ErrorAs(t, err, &refused)
	number := s.Script.OpenPullRequest(Opening{Files: []string{"a.hcl"}})
	err = s.Forge.EditComment(ctx(t), number, 1<<40, "hello")
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusNotFound, refused.Status)
}

func endsWithContext(t *testing.T, s Stage) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Forge.Repository(over)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Forge.Comment(over, 1, "hello")
	require.ErrorIs(t, err, context.Canceled)
	var refused *forge.Refused
	assert.False(t, errors.As(err, &refused), "what was not sent can be tried again")
}
