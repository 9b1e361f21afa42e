package reconciler

import (
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// page is what a comment is to say, and the plans that its readers see by it.
type page struct {
	render.Sheet
	plans []pullPlan
}

// showing is what the comment of a pull request showed from an instant on.
type showing struct {
	Head  string
	Plans []pullPlan
	At    time.Time // when the comment was written; of this machine
}

// mostShowings bounds how far back it is known what a comment showed.
const mostShowings = 20

// shows notes what the comment shows from now on. It is noted after the comment was written,
// so that a word of just before counts for what stood there.
func (r *pullRecord) shows(p page, now time.Time) {
	next := showing{Head: p.Revision.Commit, Plans: p.plans, At: now}
	if n := len(r.Showings); n > 0 && r.Showings[n-1].Head == next.Head && slices.Equal(r.Showings[n-1].Plans, next.Plans) {
		return
	}
	r.Showings = append(r.Showings, next)
	if n := len(r.Showings); n > mostShowings {
		r.Showings = slices.Clone(r.Showings[n-mostShowings:])
	}
}

// shownAt is what the comment showed in the second of an instant: forges tell the time of a
// word by the second, so that it is two things, or more, when the comment was written then.
// It is nothing before the first.
func (r *pullRecord) shownAt(at time.Time) []showing {
	from := at.Truncate(time.Second)
	till := from.Add(time.Second)
	var out []showing
	for _, s := range r.Showings {
		switch {
		case !s.At.Before(till):
		case s.At.After(from):
			out = append(out, s)
		default:
			out = []showing{s}
		}
	}
	return out
}

// headSeen reports whether the comment showed a head to whoever said something then.
func (r *pullRecord) headSeen(head string, at time.Time) bool {
	shown := r.shownAt(at)
	return len(shown) > 0 && !slices.ContainsFunc(shown, func(s showing) bool { return s.Head != head })
}

// plansSeen are the plans that whoever said something then has seen. One that took another's
// place in that very second was seen by nobody for sure, nor was the other.
func (r *pullRecord) plansSeen(at time.Time) []pullPlan {
	shown := r.shownAt(at)
	if len(shown) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(shown[0].Plans), func(p pullPlan) bool {
		return p.Digest == "" || slices.ContainsFunc(shown, func(s showing) bool { return !slices.Contains(s.Plans, p) })
	})
}
