package gitsource_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

var main = gitsource.Wanted{Branch: "main"}

func TestAllRefsWithPeeledTagsAndHead(t *testing.T) {
	_, repo := server(t)
	c1 := repo.Commit("main", map[string]string{"a.hcl": "1"})
	c2 := repo.Commit("next", map[string]string{"a.hcl": "2"})
	repo.Tag("light", c1)
	tag := repo.AnnotatedTag("v1.0.0", c2, nil)
	repo.SetRef("refs/pull/7/head", c2)
	refs, err := open(t, repo.URL(), gitsource.Shallow).Refs(bounded(t))
	require.NoError(t, err)
	require.Equal(t, gitsource.Refs{
		Head:    "refs/heads/main",
		Commits: map[string]string{"refs/heads/main": c1, "refs/heads/next": c2, "refs/tags/light": c1, "refs/tags/v1.0.0": c2, "refs/pull/7/head": c2},
		Tags:    map[string]string{"refs/tags/v1.0.0": tag},
	}, refs)
}

// F7: an empty repository, one without matching files, and one with a .gitignore only
// are three states, and none is "all files removed".
func TestEmptyRepositoryIsAStateAndNoFiles(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		r := open(t, repo.URL(), kind, include("stacks/**/*.hcl"))
		at := resolve(t, r, main)
		require.Equal(t, gitsource.Empty, at.State)
		require.Empty(t, at.Commit)
		require.Equal(t, gitsource.Empty, resolve(t, r, gitsource.Wanted{}).State)

		repo.Commit("main", map[string]string{".gitignore": "x\n"})
		s := read(t, r, main)
		require.Empty(t, s.Files)
		require.Empty(t, s.Refused)
		require.Equal(t, "change", s.Commit.Subject, "a commit without watched files is a commit all the same")
	})
}

// F1: a force-push back to an older commit is read at the next poll, and told.
func TestForcePushBackToAnOlderCommit(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		c1 := repo.Commit("main", map[string]string{"a.hcl": "1"})
		repo.Commit("main", map[string]string{"a.hcl": "2"})
		c3 := repo.Commit("main", map[string]string{"a.hcl": "3"})
		r := open(t, repo.URL(), kind)
		require.Equal(t, map[string]string{"a.hcl": "3"}, texts(read(t, r, main)))
		seen := gitsource.Seen{}.Next(resolve(t, r, main))

		repo.ForcePush("main", c1)
		now := resolve(t, r, main)
		require.True(t, seen.AsksHistory(now))
		log, err := r.Log(bounded(t), c3, now.Commit, 10)
		require.NoError(t, err)
		require.True(t, log.Rewritten)
		require.Equal(t, gitsource.Rewritten, gitsource.Compare(seen, now, gitsource.NotAncestor))
		s := read(t, r, main)
		require.Equal(t, c1, s.Commit.ID)
		require.Equal(t, map[string]string{"a.hcl": "1"}, texts(s))
	})
}

// F3: many single-commit fetches, one after the other.
func TestTenFetchesOfOneCommitEach(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		r := open(t, repo.URL(), kind)
		for i := range 11 {
			text := string(rune('a' + i))
			repo.Commit("main", map[string]string{"a.hcl": text})
			require.Equal(t, map[string]string{"a.hcl": text}, texts(read(t, r, main)))
		}
	})
}

// F5: a deleted branch is missing after one poll, and recovers when it comes back.
func TestDeletedBranchIsMissingAndRecovers(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		c := repo.Commit("live", map[string]string{"a.hcl": "2"})
		live := gitsource.Wanted{Branch: "live"}
		r := open(t, repo.URL(), kind)
		read(t, r, live)
		seen := gitsource.Seen{}.Next(resolve(t, r, live))

		repo.DeleteBranch("live")
		now := resolve(t, r, live)
		require.Equal(t, gitsource.Missing, now.State)
		require.Equal(t, `there is no branch "live"`, now.Reason)
		require.Equal(t, gitsource.Deleted, gitsource.Compare(seen, now, gitsource.Unasked))
		_, err := r.Read(bounded(t), gitsource.Resolved{Commit: now.Commit, State: now.State})
		require.ErrorContains(t, err, "no commit to read", "a missing ref has no files, not none")
		seen = seen.Next(now)
		require.Equal(t, gitsource.Unchanged, gitsource.Compare(seen, now, gitsource.Unasked))

		repo.ForcePush("live", c)
		now = resolve(t, r, live)
		require.Equal(t, gitsource.Restored, gitsource.Compare(seen, now, gitsource.Unasked))
		require.Equal(t, map[string]string{"a.hcl": "2"}, texts(read(t, r, live)))
	})
}

// F15: another URL is another remote: no commit of the old one is looked for there.
func TestAnotherURLForgetsTheOldCommits(t *testing.T) {
	s, repo := server(t)
	old := repo.Commit("main", map[string]string{"a.hcl": "old"})
	other := s.Repository("acme/other")
	other.Commit("main", map[string]string{"a.hcl": "new"})
	folder := t.TempDir()
	same := func(o *gitsource.Options) { o.Store.Folder = folder }
	read(t, open(t, repo.URL(), gitsource.Mirror, same), main)
	r := open(t, other.URL(), gitsource.Mirror, same)
	require.Equal(t, map[string]string{"a.hcl": "new"}, texts(read(t, r, main)))
	_, err := r.Read(bounded(t), gitsource.Resolved{Commit: old, State: gitsource.Found})
	require.IsType(t, &gitsource.Gone{}, err)
}

// F17: a tag that points elsewhere is told as moved, annotated or not.
func TestMovedTag(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		c1 := repo.Commit("main", map[string]string{"a.hcl": "1"})
		c2 := repo.Commit("main", map[string]string{"a.hcl": "2"})
		r := open(t, repo.URL(), kind)
		for name, move := range map[string]func(string){
			"light":     func(c string) { repo.Tag("light", c) },
			"annotated": func(c string) { repo.AnnotatedTag("annotated", c, nil) },
		} {
			w := gitsource.Wanted{Tag: name}
			move(c1)
			require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, w)))
			seen := gitsource.Seen{}.Next(resolve(t, r, w))
			move(c2)
			now := resolve(t, r, w)
			require.False(t, seen.AsksHistory(now))
			require.Equal(t, gitsource.TagMoved, gitsource.Compare(seen, now, gitsource.Unasked))
			require.Equal(t, map[string]string{"a.hcl": "2"}, texts(read(t, r, w)))
		}
	})
}

func TestRenamedRepositoryIsFollowedAndTold(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		s, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		r := open(t, repo.URL(), kind)
		refs, err := r.Refs(bounded(t))
		require.NoError(t, err)
		require.Empty(t, refs.Moved)
		s.Rename(repo, "acme/platform")
		refs, err = r.Refs(bounded(t))
		require.NoError(t, err)
		require.Equal(t, s.URL+"/acme/platform.git", refs.Moved)
		repo.Commit("main", map[string]string{"a.hcl": "2"})
		require.Equal(t, map[string]string{"a.hcl": "2"}, texts(read(t, r, main)))
	})
}

func TestNothingNewIsNoFetch(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	r := open(t, repo.URL(), gitsource.Mirror)
	at := resolve(t, r, main)
	for range 3 {
		_, err := r.Read(bounded(t), at)
		require.NoError(t, err)
	}
	require.Equal(t, 1, s.Calls("pack"), "the mirror has the commit")
	require.Equal(t, 2, s.Calls("refs"), "one list by the poll, one with the only fetch")
}

// The ref moves between the list and the fetch: the loop is told to poll again.
func TestRefMovesBetweenListAndFetch(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		c1 := repo.Make(spec("other", "x"))
		r := open(t, repo.URL(), kind)
		at := resolve(t, r, gitsource.Wanted{Branch: "other"})
		require.Equal(t, c1, at.Commit)
		repo.ForcePush("other", repo.Make(spec("", "rewritten")))
		_, err := r.Read(bounded(t), at)
		gone := &gitsource.Gone{}
		require.ErrorAs(t, err, &gone)
		require.Equal(t, c1, gone.Commit)
		require.Equal(t, map[string]string{"a.hcl": "rewritten"}, texts(read(t, r, gitsource.Wanted{Branch: "other"})))
	})
}

// A mirror knows older commits of a branch, a shallow store only what is at a ref.
func TestPinnedOlderCommit(t *testing.T) {
	_, repo := server(t)
	c1 := repo.Commit("main", map[string]string{"a.hcl": "1"})
	repo.Commit("main", map[string]string{"a.hcl": "2"})
	pinned := gitsource.Wanted{Commit: c1}
	require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, open(t, repo.URL(), gitsource.Mirror), pinned)))
	r := open(t, repo.URL(), gitsource.Shallow)
	_, err := r.Read(bounded(t), resolve(t, r, pinned))
	require.ErrorContains(t, err, `needs the store "mirror"`)
}
