package gitsource

import "strings"

// Seen is what is remembered of a wanted ref between two polls. The zero value is one
// that was never polled. It is keyed by the remote's URL and the Wanted: after either
// changes, begin with the zero value.
type Seen struct {
	Now  Resolved // by the newest poll
	Last Resolved // when it was last Found; zero when it never was
}

// Next is what is remembered after a poll.
func (s Seen) Next(now Resolved) Seen {
	if now.State == Found {
		return Seen{Now: now, Last: now}
	}
	return Seen{Now: now, Last: s.Last}
}

// Known is what a poll found, for those who have seen the ref before: a repository that
// has lost its last branch is not one that waits for its first commit.
func (s Seen) Known(now Resolved) Resolved {
	if now.State != Empty || s.Last.State != Found {
		return now
	}
	name := s.Last.Commit
	if s.Last.Ref != "" {
		name = strings.TrimPrefix(strings.TrimPrefix(s.Last.Ref, branches), tags) + ", which was at " + s.Last.Commit[:min(len(s.Last.Commit), 10)]
	}
	now.State, now.Reason = Missing, "the repository has no branch and no tag any more; gone is "+name
	return now
}

// Ancestry says whether the commit of before is an ancestor of the one of now.
type Ancestry string

// What Log says: its Rewritten is NotAncestor, else Ancestor.
const (
	Unasked     Ancestry = ""
	Ancestor    Ancestry = "ancestor"
	NotAncestor Ancestry = "not an ancestor"
)

// AsksHistory says whether Compare needs to know the ancestry, which is Log's from
// s.Last.Commit to now.Commit: a branch that was found before has another commit.
func (s Seen) AsksHistory(now Resolved) bool {
	return now.State == Found && s.Last.State == Found && now.Commit != s.Last.Commit && now.Ref == s.Last.Ref && strings.HasPrefix(now.Ref, branches)
}

// Compare names what is new since the last poll. A state that is not Found is told by
// the Resolved itself; that it was the same at the last poll is Unchanged. A branch
// with another commit is Advanced only when its old commit is known to be an ancestor:
// an unasked history counts as rewritten, the case that needs a person's eye.
func Compare(before Seen, now Resolved, history Ancestry) Happening {
	was, last := before.Now, before.Last
	switch {
	case was.State == "":
		return FirstSeen
	case now.State != Found && was.State == Found:
		return Deleted
	case now.State != Found:
		return Unchanged
	case last.State != Found:
		return FirstSeen // it was awaited, and is there for the first time
	case before.AsksHistory(now) && history != Ancestor:
		return Rewritten // also when it was deleted in between
	case was.State != Found:
		return Restored
	case now.Commit == last.Commit && now.Tag == last.Tag:
		return Unchanged
	case now.Ref == last.Ref && strings.HasPrefix(now.Ref, tags):
		return TagMoved
	}
	return Advanced // on its branch, to a higher version, or to another ref that HEAD names
}
