package gitsource

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

var fullID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Check says whether a Wanted can be understood, before any remote is asked.
func (w Wanted) Check() error {
	given := 0
	for _, field := range []string{w.Branch, w.Tag, w.Semver, w.Commit} {
		if field != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("give one of branch, tag, semver and commit")
	case w.Commit != "" && !fullID.MatchString(w.Commit):
		return fmt.Errorf("commit %q is not 40 lower-case hex digits; a short id could mean another commit tomorrow", w.Commit)
	case w.Semver != "":
		if _, err := semver.NewConstraint(w.Semver); err != nil {
			return fmt.Errorf("semver %q cannot be read: %w", w.Semver, err)
		}
	}
	return nil
}

// Resolve finds where a Wanted points now. Whatever it cannot find is a state with a
// reason, never an empty set of files.
func (w Wanted) Resolve(refs Refs) Resolved {
	if err := w.Check(); err != nil {
		return Resolved{State: Missing, Reason: err.Error()}
	}
	if len(refs.Commits) == 0 {
		return Resolved{State: Empty, Reason: "the repository has no commit yet"}
	}
	switch {
	case w.Commit != "":
		return Resolved{Commit: w.Commit, State: Found}
	case w.Semver != "":
		return w.highest(refs)
	case w.Tag != "":
		return refs.at(tags+strings.TrimPrefix(w.Tag, tags), "there is no tag %q")
	case w.Branch != "":
		return refs.at(branches+strings.TrimPrefix(w.Branch, branches), "there is no branch %q")
	case refs.Head == "":
		return Resolved{State: Missing, Reason: "HEAD of the repository points at no branch; name the branch"}
	}
	return refs.at(refs.Head, "HEAD points at %q, which is not there; name the branch")
}

// at is one ref by its full name.
func (r Refs) at(ref, missing string) Resolved {
	commit, ok := r.Commits[ref]
	if !ok {
		name := strings.TrimPrefix(strings.TrimPrefix(ref, branches), tags)
		return Resolved{State: Missing, Reason: fmt.Sprintf(missing, name)}
	}
	return Resolved{Ref: ref, Commit: commit, Tag: r.Tags[ref], State: Found}
}

// highest is the tag with the highest version in a range. Pre-releases are in a range
// only when it names one. Of two tags with one version (v1.2.0 and 1.2.0) the one that
// sorts last is taken, so that the choice does not change from poll to poll.
func (w Wanted) highest(refs Refs) Resolved {
	within, err := semver.NewConstraint(w.Semver)
	if err != nil {
		return Resolved{State: NoMatch, Reason: err.Error()}
	}
	type candidate struct {
		version *semver.Version
		ref     string
	}
	var all []candidate
	for ref := range refs.Commits {
		name, ok := strings.CutPrefix(ref, tags)
		if !ok {
			continue
		}
		if v, err := semver.NewVersion(name); err == nil && within.Check(v) {
			all = append(all, candidate{v, ref})
		}
	}
	if len(all) == 0 {
		return Resolved{State: NoMatch, Reason: fmt.Sprintf("no tag is in the range %q", w.Semver)}
	}
	best := slices.MaxFunc(all, func(a, b candidate) int {
		if c := a.version.Compare(b.version); c != 0 {
			return c
		}
		return strings.Compare(a.ref, b.ref)
	})
	return refs.at(best.ref, "%q")
}
