package forgetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Forge is a forge over the world, in memory.
func (w *World) Forge() forge.Forge { return &memory{w} }

type memory struct{ w *World }

var memoryLimits = forge.Limits{Comment: 65536, Context: 255, Description: 140}

// fail turns what went wrong into the errors of the port.
func (m *memory) fail(what string, err error) error {
	var p *problem
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &p):
		return fmt.Errorf("%s: %w", what, err)
	case p.status == http.StatusTooManyRequests, p.status == http.StatusForbidden && p.retryAfter > 0:
		return &forge.Limited{Until: m.w.now().Add(max(p.retryAfter, time.Second)), What: what}
	case p.status >= 500:
		return fmt.Errorf("%s: %w", what, p)
	}
	return &forge.Refused{Status: p.status, What: what, Hint: p.message}
}

// result is what a call gave, and nothing of it where it failed.
func result[T any](m *memory, what string, out T, err error) (T, error) {
	if err != nil {
		var none T
		return none, m.fail(what, err)
	}
	return out, nil
}

func (m *memory) Limits() forge.Limits { return memoryLimits }

func (m *memory) Repository(ctx context.Context) (out forge.Repository, err error) {
	err = m.w.read(ctx, CallRepository, func(s *state) error {
		out = s.repository
		return nil
	})
	return result(m, "read the repository", out, err)
}

func (m *memory) Open(ctx context.Context, base string) (out []forge.PullRequest, err error) {
	err = m.w.read(ctx, CallOpen, func(s *state) error {
		out = forge.SortOpen(s.all(base))
		return nil
	})
	return result(m, "list the open pull requests", out, err)
}

func (m *memory) Closed(ctx context.Context, base string, since time.Time) (out []forge.PullRequest, err error) {
	err = m.w.read(ctx, CallClosed, func(s *state) error {
		out = forge.ClosedSince(s.all(base), since)
		return nil
	})
	return result(m, "list the closed pull requests", out, err)
}

func (s *state) all(base string) []forge.PullRequest {
	var out []forge.PullRequest
	for _, n := range s.numbers() {
		if p := s.pulls[n]; p.BaseRef == base {
			out = append(out, p.PullRequest)
		}
	}
	return out
}

func (m *memory) PullRequest(ctx context.Context, number int) (out forge.PullRequest, err error) {
	err = m.w.read(ctx, CallPullRequest, func(s *state) error {
		p, err := s.pull(number)
		if err == nil {
			out = p.PullRequest
		}
		return err
	})
	return result(m, fmt.Sprintf("read pull request %d", number), out, err)
}

func (m *memory) Files(ctx context.Context, number int) (out []string, err error) {
	err = m.w.read(ctx, CallFiles, func(s *state) error {
		p, err := s.pull(number)
		if err == nil {
			out = p.paths()
		}
		return err
	})
	return result(m, fmt.Sprintf("list the files of pull request %d", number), out, err)
}

func (m *memory) Comments(ctx context.Context, number int, since time.Time) (out []forge.Comment, err error) {
	err = m.w.read(ctx, CallComments, func(s *state) error {
		p, err := s.pull(number)
		if err == nil {
			out = forge.SortComments(p.since(since))
		}
		return err
	})
	return result(m, fmt.Sprintf("list the comments of pull request %d", number), out, err)
}

func (m *memory) Comment(ctx context.Context, number int, body string) (out forge.Comment, err error) {
	what := fmt.Sprintf("comment on pull request %d", number)
	if err := memoryLimits.FitsComment(what, body); err != nil {
		return forge.Comment{}, err
	}
	err = m.w.write(ctx, CallComment, func(s *state) (err error) {
		out, err = m.w.addComment(s, number, Self, body)
		return err
	})
	return result(m, what, out, err)
}

func (m *memory) EditComment(ctx context.Context, number int, id int64, body string) error {
	what := fmt.Sprintf("edit comment %d of pull request %d", id, number)
	if err := memoryLimits.FitsComment(what, body); err != nil {
		return err
	}
	return m.fail(what, m.w.write(ctx, CallEditComment, func(s *state) error {
		_, err := m.w.editComment(s, id, body)
		return err
	}))
}

func (m *memory) React(ctx context.Context, _ int, comment int64, sign forge.Sign) error {
	return m.fail(fmt.Sprintf("react to comment %d", comment), m.w.write(ctx, CallReact, func(s *state) error {
		_, err := s.react(comment, Self, sign)
		return err
	}))
}

func (m *memory) Reviews(ctx context.Context, number int) (out []forge.Review, err error) {
	err = m.w.read(ctx, CallReviews, func(s *state) error {
		p, err := s.pull(number)
		if err != nil {
			return err
		}
		var all []forge.Review
		for _, r := range p.reviews {
			all = append(all, forge.Review{Author: r.user, Commit: r.commit, Approved: r.approved && !r.dismissed, At: r.at})
		}
		out = forge.NewestReviews(all)
		return nil
	})
	return result(m, fmt.Sprintf("list the reviews of pull request %d", number), out, err)
}

func (m *memory) Statuses(ctx context.Context, commit string) (out []forge.Status, err error) {
	err = m.w.read(ctx, CallStatuses, func(s *state) error {
		for _, row := range s.newest(commit) {
			out = append(out, row.Status)
		}
		out = forge.SortStatuses(out)
		return nil
	})
	return result(m, "list the statuses of commit "+commit, out, err)
}

func (m *memory) SetStatus(ctx context.Context, commit string, st forge.Status) error {
	what := "set a status of commit " + commit
	if err := memoryLimits.FitsStatus(what, st); err != nil {
		return err
	}
	return m.fail(what, m.w.write(ctx, CallSetStatus, func(s *state) error {
		m.w.addStatus(s, commit, st)
		return nil
	}))
}

func (m *memory) Role(ctx context.Context, user string) (out forge.Role, err error) {
	err = m.w.read(ctx, CallRole, func(s *state) error {
		out = s.roles[user]
		return nil
	})
	return result(m, "read the role of "+user, out, err)
}

func (m *memory) Teams(ctx context.Context, user string, of []string) (out []string, err error) {
	if len(of) == 0 {
		return nil, nil
	}
	err = m.w.read(ctx, CallTeams, func(s *state) error {
		for _, team := range of {
			members, ok := s.teams[team]
			if !ok {
				return &problem{status: http.StatusNotFound, message: "there is no team " + team}
			}
			if slices.Contains(members, user) {
				out = append(out, team)
			}
		}
		return nil
	})
	return result(m, "read the teams of "+user, out, err)
}
