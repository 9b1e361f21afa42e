package gitsource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

func TestWhereAWantedPoints(t *testing.T) {
	id := strings.Repeat("0", 39)
	refs := gitsource.Refs{Head: "refs/heads/main", Tags: map[string]string{"refs/tags/v1.10.0": id + "f"}, Commits: map[string]string{
		"refs/heads/main": id + "1", "refs/heads/v1.2.0": id + "2", "refs/tags/v1.2.0": id + "3", "refs/tags/v1.10.0": id + "4",
		"refs/tags/1.9.0": id + "5", "refs/tags/v2.0.0-rc.1": id + "6", "refs/tags/nightly": id + "7", "refs/tags/v1.10": id + "8",
		"refs/pull/1/head": id + "9",
	}}
	for name, c := range map[string]struct {
		wanted gitsource.Wanted
		refs   gitsource.Refs
		want   string
	}{
		"HEAD":                         {gitsource.Wanted{}, refs, "refs/heads/main 1"},
		"branch":                       {gitsource.Wanted{Branch: "main"}, refs, "refs/heads/main 1"},
		"branch by its full name":      {gitsource.Wanted{Branch: "refs/heads/main"}, refs, "refs/heads/main 1"},
		"branch with a tag's name":     {gitsource.Wanted{Branch: "v1.2.0"}, refs, "refs/heads/v1.2.0 2"},
		"tag with a branch's name":     {gitsource.Wanted{Tag: "v1.2.0"}, refs, "refs/tags/v1.2.0 3"},
		"annotated tag":                {gitsource.Wanted{Tag: "v1.10.0"}, refs, "refs/tags/v1.10.0 4 tag"},
		"range, by number not by text": {gitsource.Wanted{Semver: ">=1.0.0 <2.0.0"}, refs, "refs/tags/v1.10.0 4 tag"},
		"range without a v":            {gitsource.Wanted{Semver: "~1.9"}, refs, "refs/tags/1.9.0 5"},
		"range with pre-releases":      {gitsource.Wanted{Semver: ">=2.0.0-0"}, refs, "refs/tags/v2.0.0-rc.1 6"},
		"range without match":          {gitsource.Wanted{Semver: ">=3"}, refs, `no match: no tag is in the range ">=3"`},
		"commit":                       {gitsource.Wanted{Commit: id + "a"}, refs, " a"},
		"missing branch":               {gitsource.Wanted{Branch: "x"}, refs, `missing: there is no branch "x"`},
		"missing tag":                  {gitsource.Wanted{Tag: "x"}, refs, `missing: there is no tag "x"`},
		"two fields":                   {gitsource.Wanted{Tag: "x", Branch: "y"}, refs, "missing: give one of branch, tag, semver and commit"},
		"HEAD at nothing":              {gitsource.Wanted{}, gitsource.Refs{Head: "refs/heads/x", Commits: refs.Commits}, `missing: HEAD points at "x", which is not there; name the branch`},
		"HEAD detached":                {gitsource.Wanted{}, gitsource.Refs{Commits: refs.Commits}, "missing: HEAD of the repository points at no branch; name the branch"},
		"empty, HEAD":                  {gitsource.Wanted{}, gitsource.Refs{Head: "refs/heads/main"}, "empty: the repository has no commit yet"},
		"empty, commit":                {gitsource.Wanted{Commit: id + "a"}, gitsource.Refs{}, "empty: the repository has no commit yet"},
	} {
		t.Run(name, func(t *testing.T) {
			at := c.wanted.Resolve(c.refs)
			got := fmt.Sprintf("%s: %s", at.State, at.Reason)
			if at.State == gitsource.Found {
				got = at.Ref + " " + strings.TrimLeft(at.Commit, "0")
			} else {
				require.Empty(t, at.Commit)
			}
			if at.Tag != "" {
				got += " tag"
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestHappenings walks one followed ref through its life; each line is a poll.
func TestHappenings(t *testing.T) {
	at := func(ref, commit string) gitsource.Resolved {
		return gitsource.Resolved{Ref: ref, Commit: commit, State: gitsource.Found}
	}
	gone := gitsource.Resolved{State: gitsource.Missing}
	type poll struct {
		now     gitsource.Resolved
		history gitsource.Ancestry
		want    gitsource.Happening
	}
	for name, polls := range map[string][]poll{
		"branch": {
			{at("refs/heads/main", "1"), "", gitsource.FirstSeen},
			{at("refs/heads/main", "1"), "", gitsource.Unchanged},
			{at("refs/heads/main", "2"), gitsource.Ancestor, gitsource.Advanced},
			{at("refs/heads/main", "1"), gitsource.NotAncestor, gitsource.Rewritten},
			{at("refs/heads/main", "3"), gitsource.Unasked, gitsource.Rewritten},
			{gone, "", gitsource.Deleted},
			{gone, "", gitsource.Unchanged},
			{at("refs/heads/main", "3"), "", gitsource.Restored},
			{gone, "", gitsource.Deleted},
			{at("refs/heads/main", "4"), gitsource.Ancestor, gitsource.Restored},
			{gone, "", gitsource.Deleted},
			{at("refs/heads/main", "9"), gitsource.NotAncestor, gitsource.Rewritten},
		},
		"branch of a repository that was empty": {
			{gitsource.Resolved{State: gitsource.Empty}, "", gitsource.FirstSeen},
			{gitsource.Resolved{State: gitsource.Empty}, "", gitsource.Unchanged},
			{gone, "", gitsource.Unchanged},
			{at("refs/heads/main", "1"), "", gitsource.FirstSeen},
			{gitsource.Resolved{State: gitsource.Empty}, "", gitsource.Deleted},
		},
		"tag": {
			{at("refs/tags/v1", "1"), "", gitsource.FirstSeen},
			{at("refs/tags/v1", "2"), "", gitsource.TagMoved},
			{gitsource.Resolved{Ref: "refs/tags/v1", Commit: "2", Tag: "t", State: gitsource.Found}, "", gitsource.TagMoved},
			{gone, "", gitsource.Deleted},
			{at("refs/tags/v1", "2"), "", gitsource.Restored},
		},
		"range": {
			{at("refs/tags/v1.0.0", "1"), "", gitsource.FirstSeen},
			{at("refs/tags/v1.1.0", "2"), "", gitsource.Advanced},
			{at("refs/tags/v1.1.0", "3"), "", gitsource.TagMoved},
		},
		"HEAD that moves to a renamed branch": {
			{at("refs/heads/master", "1"), "", gitsource.FirstSeen},
			{at("refs/heads/main", "1"), "", gitsource.Unchanged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seen gitsource.Seen
			for i, p := range polls {
				require.Equal(t, p.want, gitsource.Compare(seen, p.now, p.history), "poll %d", i+1)
				seen = seen.Next(p.now)
			}
		})
	}
}

func TestWantedThatCannotBeUnderstood(t *testing.T) {
	require.NoError(t, gitsource.Wanted{}.Check())
	require.ErrorContains(t, gitsource.Wanted{Commit: "abc"}.Check(), "not 40 lower-case hex digits")
	require.ErrorContains(t, gitsource.Wanted{Semver: "one"}.Check(), `semver "one" cannot be read`)
	require.ErrorContains(t, gitsource.Wanted{Branch: "a", Semver: "1"}.Check(), "give one of")
}
