// Package gitsource reads commits and blobs from Git, and nothing else: it never
// checks out a worktree, never runs a hook, a filter or the git command, and never
// writes to a remote.
//
// A poll asks for the refs first (Refs); only when the wanted commit is another one
// than before are objects fetched (Read). What a tree holds that is not a plain file
// of bounded size under the watched paths is refused by name and never followed.
package gitsource

import (
	"context"
	"time"
)

// Remote is one repository as the reconciler sees it. It is safe for concurrent use;
// every call ends at its context's deadline, even where the library below does not.
type Remote interface {
	// Refs lists the remote's refs without fetching objects. An empty repository is a
	// Refs without entries, not an error.
	Refs(ctx context.Context) (Refs, error)
	// Read fetches the commit that a ref was resolved to and returns the watched files of
	// its tree. The commit must be reachable from a ref of the remote (in a shallow store:
	// be at one); else the error is *Gone. Where signatures are asked for and are not
	// there or not good, the error is *Unverified and nothing of the tree is read; a
	// tag's signature is that of the ref's own tag object, which is why the ref is given.
	Read(ctx context.Context, at Resolved) (Snapshot, error)
	// Merge reads what merging head into base would give, file by file; the Commit is
	// head's. Files that both changed since their merge base, in ways that cannot be put
	// together line by line, are *Conflict. Signatures are not asked for: a merge that has
	// not happened is planned and never applied.
	Merge(ctx context.Context, base, head string) (Snapshot, error)
	// Log lists the commits that "to" has and "from" has not, oldest first, at most so
	// many. Rewritten is true when "from" is no ancestor of "to".
	Log(ctx context.Context, from, to string, most int) (Log, error)
}

// Refs are a remote's refs: full names (refs/heads/main) to commit ids. Annotated tags
// are peeled. Head is the ref that HEAD points at, empty in an empty repository.
type Refs struct {
	Head    string
	Moved   string // where the remote redirected to, without credentials: it was renamed; else empty
	Commits map[string]string
	Tags    map[string]string // full names of annotated tags to the ids of the tag objects
}

// Wanted says which commit of a repository is followed. Exactly one field is given;
// none means the branch that HEAD points at.
type Wanted struct {
	Branch string
	Tag    string
	Semver string // a range such as ">=1.2.0 <2.0.0"; the highest matching tag
	Commit string // 40 hex digits
}

// Resolved is where a Wanted points now.
type Resolved struct {
	Ref    string // full name; empty for a commit
	Commit string // empty when State is not Found
	Tag    string // id of the tag object, when Ref is an annotated tag
	State  State
	Reason string // for people, when State is not Found
}

// State is what a poll found a wanted ref to be. None of them but Found says anything
// about files: an absent ref is never an empty folder.
type State string

// The states.
const (
	Found   State = "found"
	Missing State = "missing"  // the branch or tag is not there
	Empty   State = "empty"    // the repository has no commit
	NoMatch State = "no match" // no tag is in the semver range
)

// Happening is what is new about a ref between two polls.
type Happening string

// The happenings, each an event of its own.
const (
	FirstSeen Happening = "first seen"
	Unchanged Happening = "unchanged"
	Advanced  Happening = "advanced"
	Rewritten Happening = "history rewritten" // a branch's old commit is no ancestor of its new one
	TagMoved  Happening = "tag moved"
	Deleted   Happening = "deleted"
	Restored  Happening = "restored"
)

// Commit is one commit.
type Commit struct {
	ID        string
	Author    string // name <address>, as written: text of others
	Committer string
	At        time.Time // of the committer
	Subject   string    // first line
	Signer    string    // whose signature was verified; empty when none was asked for
}

// Snapshot is the watched files of one tree.
type Snapshot struct {
	Commit  Commit
	Files   []File    // by path
	Refused []Refusal // by path: watched files that are not read, each with its reason
}

// File is one blob.
type File struct {
	Path  string // slash-separated, from the repository's root
	Blob  string // its id
	Bytes []byte
}

// Refusal is a watched path that is not read.
type Refusal struct {
	Path   string
	Reason string // such as "is a symbolic link", "is a submodule", "is a Git LFS pointer", "has 3 MB, more than 1 MB"
}

// Log is a stretch of history.
type Log struct {
	Commits   []Commit
	Rewritten bool
	Cut       bool // there are more than were asked for
}
