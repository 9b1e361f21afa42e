package forge

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// The functions below put what adaptors have read into the order that the port
// promises. Pages shift while they are read, so a thing may have come twice.

// SortOpen orders by number and keeps open ones.
func SortOpen(all []PullRequest) []PullRequest {
	all = slices.DeleteFunc(all, func(p PullRequest) bool { return p.State != IsOpen })
	slices.SortStableFunc(all, func(a, b PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(all, func(a, b PullRequest) bool { return a.Number == b.Number })
}

// ClosedSince keeps those that ended at or after an instant, newest last.
func ClosedSince(all []PullRequest, since time.Time) []PullRequest {
	since = since.Truncate(time.Second)
	all = slices.DeleteFunc(all, func(p PullRequest) bool { return p.State == IsOpen || p.ClosedAt.Before(since) })
	slices.SortStableFunc(all, func(a, b PullRequest) int {
		return cmp.Or(a.ClosedAt.Compare(b.ClosedAt), cmp.Compare(a.Number, b.Number))
	})
	return slices.CompactFunc(all, func(a, b PullRequest) bool { return a.Number == b.Number })
}

// SortComments orders by age.
func SortComments(all []Comment) []Comment {
	slices.SortStableFunc(all, func(a, b Comment) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return slices.CompactFunc(all, func(a, b Comment) bool { return a.ID == b.ID })
}

// SortStatuses orders by context and keeps the first of each, which must be the newest.
func SortStatuses(all []Status) []Status {
	slices.SortStableFunc(all, func(a, b Status) int { return strings.Compare(a.Context, b.Context) })
	return slices.CompactFunc(all, func(a, b Status) bool { return a.Context == b.Context })
}

// NewestReviews keeps each reviewer's newest verdict, by name. Of two at one instant it
// is the later in the list.
func NewestReviews(all []Review) []Review {
	newest := map[string]Review{}
	for _, r := range all {
		if old, ok := newest[r.Author]; !ok || !r.At.Before(old.At) {
			newest[r.Author] = r
		}
	}
	out := make([]Review, 0, len(newest))
	for _, r := range newest {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Review) int { return strings.Compare(a.Author, b.Author) })
	return out
}
