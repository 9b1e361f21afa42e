package forgetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Script is what people do at a forge. World is one; a real forge may be another.
// Functions end the test when they cannot.
type Script interface {
	// OpenPullRequest opens one and returns its number.
	OpenPullRequest(o Opening) int
	// Push gives a pull request a new head, made up when it is empty, and returns it.
	// Files replace the list when there are any.
	Push(number int, head string, files ...string) string
	// Merge merges with a commit, made up when it is empty, and returns it.
	Merge(number int, commit string) string
	Close(number int)
	Reopen(number int)
	// Say comments as a user and returns the comment's id.
	Say(number int, user, text string) int64
	// Delete takes a comment away.
	Delete(number int, comment int64)
	Approve(number int, user string)
	RequestChanges(number int, user string)
}

// Opening is a new pull request. Empty fields are made up; the base is the repository's
// branch.
type Opening struct {
	Author, Title string
	Head, HeadRef string
	Base, BaseRef string
	Files         []string
	Renamed       map[string]string // of Files: new path to old path
	Draft, Fork   bool
}

var _ Script = (*World)(nil)

// change lets a person do something, then sends the webhooks about it.
func (w *World) change(number int, kind string, act func(s *state, p *pull)) {
	w.mu.Lock()
	p, ok := w.state.pulls[number]
	if !ok {
		w.mu.Unlock()
		panic(fmt.Sprintf("forgetest: there is no pull request %d", number))
	}
	act(w.state, p)
	w.touch(p)
	events := w.events(kind, p)
	w.mu.Unlock()
	w.send(events)
}

// OpenPullRequest opens one and returns its number.
func (w *World) OpenPullRequest(o Opening) int {
	w.mu.Lock()
	s := w.state
	number := len(s.pulls) + 1
	or := func(v, fallback string) string {
		if v == "" {
			return fallback
		}
		return v
	}
	now := w.second()
	p := &pull{
		PullRequest: forge.PullRequest{
			Number: number, Title: or(o.Title, fmt.Sprintf("change %d", number)), Author: or(o.Author, "ann"),
			URL: fmt.Sprintf("%s/pulls/%d", s.repository.URL, number), State: forge.IsOpen, Draft: o.Draft, Fork: o.Fork,
			Head: or(o.Head, madeUp(s.repository.FullName, number, "head")), HeadRef: or(o.HeadRef, fmt.Sprintf("change-%d", number)),
			Base: or(o.Base, madeUp(s.repository.FullName, "base")), BaseRef: or(o.BaseRef, s.repository.DefaultBranch),
			Mergeable: forge.Clean, UpdatedAt: now,
		},
		files: slices.Clone(o.Files), renamed: maps.Clone(o.Renamed), openedAt: now,
	}
	if o.Draft {
		p.Mergeable = forge.Blocked
	}
	p.versions = []version{{head: p.Head, at: now}}
	s.pulls[number] = p
	events := w.events("opened", p)
	w.mu.Unlock()
	w.send(events)
	return number
}

// Push gives a pull request a new head and returns it.
func (w *World) Push(number int, head string, files ...string) string {
	w.change(number, "synchronize", func(_ *state, p *pull) {
		if head == "" {
			head = madeUp(p.Head, number, len(p.versions))
		}
		p.Head = head
		p.versions = append(p.versions, version{head: head, at: w.second()})
		if len(files) > 0 {
			p.files = slices.Clone(files)
		}
	})
	return head
}

// MoveBase tells the commit that the base branch has now.
func (w *World) MoveBase(number int, base string) {
	w.change(number, "edited", func(_ *state, p *pull) { p.Base = base })
}

// Retarget makes a pull request go into another branch.
func (w *World) Retarget(number int, base string) {
	w.change(number, "edited", func(_ *state, p *pull) { p.BaseRef = base })
}

// Merge merges a pull request and returns the commit.
func (w *World) Merge(number int, commit string) string {
	w.change(number, "merged", func(_ *state, p *pull) {
		if commit == "" {
			commit = madeUp(p.Head, number, "merge")
		}
		p.State, p.MergeCommit, p.ClosedAt, p.Mergeable = forge.IsMerged, commit, w.second(), forge.Unknown
	})
	return commit
}

// Close closes a pull request without merging it.
func (w *World) Close(number int) {
	w.change(number, "closed", func(_ *state, p *pull) {
		p.State, p.ClosedAt, p.Mergeable = forge.IsClosed, w.second(), forge.Unknown
	})
}

// Reopen opens a closed pull request again.
func (w *World) Reopen(number int) {
	w.change(number, "reopened", func(_ *state, p *pull) {
		p.State, p.ClosedAt, p.Mergeable = forge.IsOpen, time.Time{}, forge.Clean
	})
}

// SetMergeable says what the forge says of a merge.
func (w *World) SetMergeable(number int, m forge.Mergeable) {
	w.change(number, "edited", func(_ *state, p *pull) { p.Mergeable = m })
}

// SetDraft makes a pull request a draft.
func (w *World) SetDraft(number int) {
	w.change(number, "converted_to_draft", func(_ *state, p *pull) { p.Draft, p.Mergeable = true, forge.Blocked })
}

// Ready makes a draft ready for review.
func (w *World) Ready(number int) {
	w.change(number, "ready_for_review", func(_ *state, p *pull) { p.Draft, p.Mergeable = false, forge.Clean })
}

// Say comments as a user and returns the comment's id.
func (w *World) Say(number int, user, text string) int64 {
	var id int64
	w.change(number, "comment", func(s *state, _ *pull) {
		c, err := w.addComment(s, number, user, text)
		if err != nil {
			panic(err)
		}
		id = c.ID
	})
	return id
}

// Edit replaces the text of somebody's comment.
func (w *World) Edit(number int, comment int64, text string) {
	w.change(number, "comment", func(s *state, _ *pull) {
		if _, err := w.editComment(s, comment, text); err != nil {
			panic(err)
		}
	})
}

// Delete takes a comment away.
func (w *World) Delete(number int, comment int64) {
	w.change(number, "comment", func(_ *state, p *pull) {
		p.comments = slices.DeleteFunc(p.comments, func(c forge.Comment) bool { return c.ID == comment })
	})
}

// Approve approves the head of a pull request as a user.
func (w *World) Approve(number int, user string) { w.review(number, user, "approved") }

// RequestChanges refuses the head of a pull request as a user.
func (w *World) RequestChanges(number int, user string) { w.review(number, user, "refused") }

func (w *World) review(number int, user, verdict string) {
	w.change(number, "review", func(s *state, p *pull) {
		p.reviews = append(p.reviews, reviewRow{id: s.id(), user: user, commit: p.Head, at: w.second(), approved: verdict == "approved"})
	})
}

// Dismiss makes a user's approvals void.
func (w *World) Dismiss(number int, user string) {
	w.change(number, "review", func(_ *state, p *pull) {
		for i := range p.reviews {
			if p.reviews[i].user == user {
				p.reviews[i].dismissed = true
			}
		}
	})
}

// SetRole gives a user a role in the repository; None takes it away.
func (w *World) SetRole(user string, role forge.Role) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.roles[user] = role
}

// SetTeam makes a team of an organization, "acme/platform", have these members.
func (w *World) SetTeam(team string, users ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.teams[team] = slices.Clone(users)
}

// Rename gives the repository another full name; calls with the old one are redirected
// no more.
func (w *World) Rename(fullName string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.repository.FullName = fullName
}

// Archive makes the repository read-only in name.
func (w *World) Archive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.repository.Archived = true
}

// SetToken changes the token that the HTTP servers take.
func (w *World) SetToken(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.token = token
}

// SetPage makes the HTTP servers give at most so many things a page.
func (w *World) SetPage(most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mostPage = most
}

// Comments are those of a pull request, as the forge keeps them.
func (w *World) Comments(number int) []forge.Comment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.state.pulls[number].comments)
}

// Statuses are all that were ever set on a commit, oldest first.
func (w *World) Statuses(commit string) []forge.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []forge.Status
	for _, row := range w.state.statuses {
		if row.commit == commit {
			out = append(out, row.Status)
		}
	}
	return out
}

// Signs are what Self has answered a comment with, sorted.
func (w *World) Signs(comment int64) []forge.Sign {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []forge.Sign
	for r := range w.state.reactions {
		if r.comment == comment && r.user == Self {
			out = append(out, r.sign)
		}
	}
	slices.Sort(out)
	return out
}

// PullRequestOf is a pull request as the forge keeps it.
func (w *World) PullRequestOf(number int) forge.PullRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.pulls[number].PullRequest
}
