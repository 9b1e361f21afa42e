package gitsource_test

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// spec is a commit without parents on a branch.
func spec(branch, text string) gittest.Spec {
	return gittest.Spec{Branch: branch, Parents: []string{}, Files: map[string]string{"a.hcl": text}}
}

// fork is a pull request: what its base and its head made of one commit.
type fork struct {
	files      map[string]string
	base, head gittest.Spec
}

// pullRequest sets up a fork whose head is at refs/pull/7/head only.
func (f fork) pullRequest(repo *gittest.Repository) (base, head string) {
	root := repo.Commit("main", f.files)
	f.base.Branch, f.head.Parents = "main", []string{root}
	head = repo.Make(f.head)
	repo.SetRef("refs/pull/7/head", head)
	return repo.Make(f.base), head
}

func TestMergeResultOfAPullRequest(t *testing.T) {
	ten := strings.Repeat("line\n", 4) + "five\n" + strings.Repeat("line\n", 4) + "ten\n"
	for name, c := range map[string]struct {
		fork    fork
		want    map[string]string
		refused map[string]string
	}{
		"both changed other files": {
			fork{map[string]string{"a.hcl": "1", "b.hcl": "1"}, gittest.Spec{Files: map[string]string{"a.hcl": "2"}}, gittest.Spec{Files: map[string]string{"b.hcl": "2"}}},
			map[string]string{"a.hcl": "2", "b.hcl": "2"}, nil,
		},
		"both changed one file in other lines": {
			fork{map[string]string{"a.hcl": ten}, gittest.Spec{Files: map[string]string{"a.hcl": strings.Replace(ten, "five", "5", 1)}}, gittest.Spec{Files: map[string]string{"a.hcl": strings.Replace(ten, "ten", "10", 1)}}},
			map[string]string{"a.hcl": strings.NewReplacer("five", "5", "ten", "10").Replace(ten)}, nil,
		},
		"both made the same change": {
			fork{map[string]string{"a.hcl": "1"}, gittest.Spec{Files: map[string]string{"a.hcl": "2"}}, gittest.Spec{Files: map[string]string{"a.hcl": "2"}}},
			map[string]string{"a.hcl": "2"}, nil,
		},
		"one removed, the other left alone": {
			fork{map[string]string{"a.hcl": "1", "b.hcl": "1"}, gittest.Spec{Files: map[string]string{"c.hcl": "1"}}, gittest.Spec{Remove: []string{"b.hcl"}}},
			map[string]string{"a.hcl": "1", "c.hcl": "1"}, nil,
		},
		"both removed": {
			fork{map[string]string{"a.hcl": "1", "b.hcl": "1"}, gittest.Spec{Remove: []string{"b.hcl"}}, gittest.Spec{Remove: []string{"b.hcl"}}},
			map[string]string{"a.hcl": "1"}, nil,
		},
		"only the executable bit differs": {
			fork{map[string]string{"a.hcl": "1"}, gittest.Spec{Entries: []gittest.Entry{{Path: "a.hcl", Mode: filemode.Executable, Target: "1"}}}, gittest.Spec{Files: map[string]string{"a.hcl": "2"}}},
			map[string]string{"a.hcl": "2"}, nil,
		},
		"the head turns a file into a link": {
			fork{map[string]string{"a.hcl": "1", "b.hcl": "1"}, gittest.Spec{Files: map[string]string{"c.hcl": "1"}}, gittest.Spec{Entries: []gittest.Entry{{Path: "b.hcl", Mode: filemode.Symlink, Target: "a.hcl"}}}},
			map[string]string{"a.hcl": "1", "c.hcl": "1"}, map[string]string{"b.hcl": "is a symbolic link"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
				_, repo := server(t)
				base, head := c.fork.pullRequest(repo)
				s, err := open(t, repo.URL(), kind, include("*.hcl")).Merge(bounded(t), base, head)
				require.NoError(t, err)
				require.Equal(t, c.want, texts(s))
				require.Equal(t, head, s.Commit.ID)
				if c.refused != nil {
					require.Equal(t, c.refused, reasons(s))
				}
			})
		})
	}
}

func TestMergesThatNeedAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		fork  fork
		files []string
	}{
		"both changed one line": {
			fork{map[string]string{"a.hcl": "1", "b.hcl": "1"}, gittest.Spec{Files: map[string]string{"a.hcl": "2", "b.hcl": "2"}}, gittest.Spec{Files: map[string]string{"a.hcl": "3", "b.hcl": "3"}}},
			[]string{"a.hcl", "b.hcl"},
		},
		"both added one path": {
			fork{map[string]string{"a.hcl": "1"}, gittest.Spec{Files: map[string]string{"n.hcl": "2"}}, gittest.Spec{Files: map[string]string{"n.hcl": "3"}}},
			[]string{"n.hcl"},
		},
		"one removed what the other changed": {
			fork{map[string]string{"a.hcl": "1", "b.hcl": "1"}, gittest.Spec{Remove: []string{"a.hcl"}}, gittest.Spec{Files: map[string]string{"a.hcl": "3"}}},
			[]string{"a.hcl"},
		},
		"one moved what the other changed": {
			fork{map[string]string{"a.hcl": "1"}, gittest.Spec{Remove: []string{"a.hcl"}, Files: map[string]string{"x/a.hcl": "1"}}, gittest.Spec{Files: map[string]string{"a.hcl": "3"}}},
			[]string{"a.hcl"},
		},
		"one made a folder of the other's file": {
			fork{map[string]string{"a.hcl": "1"}, gittest.Spec{Files: map[string]string{"n": "2"}}, gittest.Spec{Files: map[string]string{"n/a.hcl": "3"}}},
			[]string{"n/a.hcl"},
		},
		"one made a link of what the other changed": {
			fork{map[string]string{"a.hcl": "1"}, gittest.Spec{Entries: []gittest.Entry{{Path: "a.hcl", Mode: filemode.Symlink, Target: "b"}}}, gittest.Spec{Files: map[string]string{"a.hcl": "3"}}},
			[]string{"a.hcl"},
		},
		"no text": {
			fork{map[string]string{"a.hcl": "1\n\x00\n2\n"}, gittest.Spec{Files: map[string]string{"a.hcl": "0\n\x00\n2\n"}}, gittest.Spec{Files: map[string]string{"a.hcl": "1\n\x00\n3\n"}}},
			[]string{"a.hcl"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, repo := server(t)
			base, head := c.fork.pullRequest(repo)
			r := open(t, repo.URL(), gitsource.Mirror)
			_, err := r.Merge(bounded(t), base, head)
			conflict := &gitsource.Conflict{}
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, c.files, conflict.Files)
			_, err = r.Merge(bounded(t), head, base)
			require.ErrorAs(t, err, &conflict, "the other way round too")
			require.Equal(t, c.files, conflict.Files)
		})
	}
}

func TestMergeWithoutACommonCommit(t *testing.T) {
	_, repo := server(t)
	base, head := repo.Make(spec("main", "1")), repo.Make(spec("other", "2"))
	_, err := open(t, repo.URL(), gitsource.Shallow).Merge(bounded(t), base, head)
	conflict := &gitsource.Conflict{}
	require.ErrorAs(t, err, &conflict)
	require.ErrorContains(t, err, "they have no commit in common")
}

// Two branches that were merged into each other have two merge bases; where these give
// different results, nobody guesses.
func TestMergeOverTwoMergeBases(t *testing.T) {
	_, repo := server(t)
	root := repo.Commit("main", map[string]string{"a.hcl": "0", "b.hcl": "0"})
	a := repo.Make(gittest.Spec{Parents: []string{root}, Files: map[string]string{"a.hcl": "1"}})
	b := repo.Make(gittest.Spec{Parents: []string{root}, Files: map[string]string{"b.hcl": "1"}})
	left := repo.Make(gittest.Spec{Parents: []string{a, b}, Files: map[string]string{"a.hcl": "1", "b.hcl": "1", "left.hcl": "1"}})
	right := repo.Make(gittest.Spec{Parents: []string{b, a}, Files: map[string]string{"a.hcl": "1", "b.hcl": "1", "right.hcl": "1"}})
	back := repo.Make(gittest.Spec{Parents: []string{b, a}, Files: map[string]string{"a.hcl": "0", "b.hcl": "1"}})
	for branch, id := range map[string]string{"main": left, "right": right, "back": back} {
		repo.ForcePush(branch, id)
	}
	r := open(t, repo.URL(), gitsource.Mirror)
	s, err := r.Merge(bounded(t), left, right)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.hcl": "1", "b.hcl": "1", "left.hcl": "1", "right.hcl": "1"}, texts(s))
	_, err = r.Merge(bounded(t), left, back)
	conflict := &gitsource.Conflict{}
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"a.hcl"}, conflict.Files)
}

// The head of a pull request is at no branch; the mirror fetches it when it is asked
// for and follows it from then on.
func TestHeadOfAPullRequestIsFetchedWhenItIsAskedFor(t *testing.T) {
	for _, ref := range []string{"refs/pull/7/head", "refs/merge-requests/7/head"} {
		s, repo := server(t)
		base := repo.Commit("main", map[string]string{"a.hcl": "1"})
		head := repo.Make(gittest.Spec{Parents: []string{base}, Files: map[string]string{"a.hcl": "2"}})
		repo.SetRef(ref, head)
		r := open(t, repo.URL(), gitsource.Mirror)
		read(t, r, main)
		merged, err := r.Merge(bounded(t), base, head)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a.hcl": "2"}, texts(merged))
		require.Equal(t, 2, s.Calls(gittest.Pack))

		pushed := repo.Make(gittest.Spec{Parents: []string{head}, Files: map[string]string{"a.hcl": "3"}})
		repo.SetRef(ref, pushed)
		merged, err = r.Merge(bounded(t), base, pushed)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a.hcl": "3"}, texts(merged))
		repo.DeleteRef(ref)
		repo.Commit("main", map[string]string{"b.hcl": "1"})
		read(t, r, main) // the ref is pruned with this fetch
		_, err = r.Merge(bounded(t), base, pushed)
		require.IsType(t, &gitsource.Gone{}, err)
	}
}

func TestHistoryBetweenTwoCommits(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		var ids []string
		for _, text := range []string{"1", "2", "3", "4", "5"} {
			ids = append(ids, repo.Make(gittest.Spec{Branch: "main", Files: map[string]string{"a.hcl": text}, Message: "commit " + text + "\n\nmore"}))
		}
		r := open(t, repo.URL(), kind)
		log := func(from, to string, most int) (subjects []string, l gitsource.Log) {
			l, err := r.Log(bounded(t), from, to, most)
			require.NoError(t, err)
			for _, c := range l.Commits {
				subjects = append(subjects, c.Subject)
			}
			return subjects, l
		}
		got, l := log(ids[1], ids[4], 10)
		require.Equal(t, []string{"commit 3", "commit 4", "commit 5"}, got)
		require.False(t, l.Rewritten || l.Cut)
		require.Equal(t, "Ada Example <ada@example.com>", l.Commits[0].Author)
		require.Equal(t, "2026-01-01T00:03:00Z", l.Commits[0].At.Format("2006-01-02T15:04:05Z07:00"))
		got, l = log(ids[1], ids[4], 2)
		require.Equal(t, []string{"commit 4", "commit 5"}, got, "the newest, oldest first")
		require.True(t, l.Cut)
		got, l = log(ids[4], ids[4], 10)
		require.Empty(t, got)
		require.False(t, l.Rewritten)
		got, l = log("", ids[4], 10)
		require.Len(t, got, 5)
		require.False(t, l.Rewritten)

		repo.ForcePush("main", ids[2])
		got, l = log(ids[4], ids[2], 10)
		require.True(t, l.Rewritten)
		if kind == gitsource.Mirror { // it still has what was rewritten
			require.Empty(t, got)
		}
		side := repo.Make(gittest.Spec{Branch: "main", Parents: []string{ids[2]}, Message: "side"})
		got, l = log(ids[4], side, 10)
		require.True(t, l.Rewritten)
		require.Equal(t, "side", got[len(got)-1])
		_, err := r.Log(bounded(t), ids[0], ids[4], 10)
		require.IsType(t, &gitsource.Gone{}, err)
	})
}

// A merge brings in older commits of its second parent, and clocks may be wrong.
func TestHistoryOfMergesAndWrongClocks(t *testing.T) {
	_, repo := server(t)
	root := repo.Commit("main", map[string]string{"a.hcl": "1"})
	wild := repo.Make(gittest.Spec{Parents: []string{root}, Message: "wild", At: root0.AddDate(-20, 0, 0)})
	tame := repo.Make(gittest.Spec{Parents: []string{root}, Message: "tame", At: root0.AddDate(20, 0, 0)})
	merge := repo.Make(gittest.Spec{Branch: "main", Parents: []string{tame, wild}, Message: "merge"})
	r := open(t, repo.URL(), gitsource.Mirror)
	l, err := r.Log(bounded(t), root, merge, 10)
	require.NoError(t, err)
	require.False(t, l.Rewritten)
	var got []string
	for _, c := range l.Commits {
		got = append(got, c.Subject)
	}
	require.ElementsMatch(t, []string{"wild", "tame", "merge"}, got)
	l, err = r.Log(bounded(t), wild, merge, 10)
	require.NoError(t, err)
	require.False(t, l.Rewritten, "it is an ancestor although its date says otherwise")
}
