package gitsource_test

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// F13: links in a tree that lead to .git, out of the repository and in circles are
// refused by name, and nothing is written or followed.
func TestLinksOutOfTheTreeAreRefusedByName(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		repo.Make(gittest.Spec{Branch: "main", Files: map[string]string{"stacks/a.hcl": "1"}, Entries: []gittest.Entry{
			{Path: "stacks/git.hcl", Mode: filemode.Symlink, Target: ".git"},
			{Path: "stacks/passwd.hcl", Mode: filemode.Symlink, Target: "/etc/passwd"},
			{Path: "stacks/up.hcl", Mode: filemode.Symlink, Target: "../../x"},
			{Path: "stacks/loop.hcl", Mode: filemode.Symlink, Target: "loop.hcl"},
			{Path: "stacks/prod", Mode: filemode.Symlink, Target: "../../prod"},
			{Path: "stacks/module", Mode: filemode.Submodule, Target: strings.Repeat("a", 40)},
			{Path: "docs/link.md", Mode: filemode.Symlink, Target: "x"},
		}})
		s := read(t, open(t, repo.URL(), kind, include("stacks/**/*.hcl")), main)
		require.Equal(t, map[string]string{"stacks/a.hcl": "1"}, texts(s))
		const link = "is a symbolic link"
		require.Equal(t, map[string]string{
			"stacks/git.hcl": link, "stacks/passwd.hcl": link, "stacks/up.hcl": link, "stacks/loop.hcl": link,
			"stacks/prod": link, "stacks/module": "is a submodule",
		}, reasons(s), "also a link that may hide a folder of watched files; what is not watched is not told")
	})
}

func TestHostileNamesAreRefusedAndNeverLookRemoved(t *testing.T) {
	_, repo := server(t)
	blob := repo.Blob("x")
	file := func(name string) object.TreeEntry {
		return object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: blob}
	}
	inside := plumbing.NewHash(repo.Tree(file("a.hcl")))
	folder := func(name string) object.TreeEntry {
		return object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: inside}
	}
	root := repo.Tree(file("good.hcl"), file("Case.hcl"), file("case.hcl"), file("\xff.hcl"), file("a\x1b[2J.hcl"), file("b\u202elch.hcl"),
		folder(".."), folder(".GIT"), folder("git~1"), folder("ok"), folder("twice"), file("back\\slash.hcl"), file("new\nline.hcl"))
	repo.Make(gittest.Spec{Branch: "main", Tree: root})
	s := read(t, open(t, repo.URL(), gitsource.Mirror, include("**/*.hcl")), main)
	require.Equal(t, map[string]string{"good.hcl": "x", "ok/a.hcl": "x", "twice/a.hcl": "x"}, texts(s))
	require.Equal(t, map[string]string{
		"Case.hcl":          "differs from case.hcl by upper and lower case only",
		"case.hcl":          "differs from Case.hcl by upper and lower case only",
		`\xff.hcl`:          "has a name that is not UTF-8",
		`a\u001b[2J.hcl`:    "has a control character in its name",
		`new\u000aline.hcl`: "has a control character in its name",
		`b\u202elch.hcl`:    "has an invisible or unknown character in its name",
		"..":                "has the name .., which leads out of its folder",
		".GIT":              "has the name of Git's own folder",
		"git~1":             "has the name of Git's own folder",
		`back\slash.hcl`:    "has a slash or backslash in its name",
	}, reasons(s))
}

func TestFilesOverALimitAreRefusedByName(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		repo.Commit("main", map[string]string{
			"a.hcl": "small", "big.hcl": strings.Repeat("x", 101), "c.hcl": "123", "d.hcl": "12345", "lfs.hcl": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
			"z.hcl": "1", "zz.hcl": "2",
		})
		s := read(t, open(t, repo.URL(), kind, func(o *gitsource.Options) {
			o.Limits = gitsource.Limits{FileBytes: 100, Files: 3, TotalBytes: 12}
		}), main)
		require.Equal(t, map[string]string{"a.hcl": "small", "c.hcl": "123", "z.hcl": "1"}, texts(s))
		require.Equal(t, map[string]string{
			"big.hcl": "has 101 bytes, more than 100 bytes",
			"d.hcl":   "would bring the watched files to more than 12 bytes",
			"lfs.hcl": "would bring the watched files to more than 12 bytes",
			"zz.hcl":  "comes after the first 3 watched files, which is the limit",
		}, reasons(s))
		s = read(t, open(t, repo.URL(), kind, include("lfs.hcl")), main)
		require.Equal(t, map[string]string{"lfs.hcl": "is a Git LFS pointer"}, reasons(s))
	})
}

// Ten folders in each of ten levels, all of one object: 10^10 paths in 11 objects.
func TestBombOfTreesEndsAtItsLimit(t *testing.T) {
	_, repo := server(t)
	id := repo.Tree(object.TreeEntry{Name: "a.hcl", Mode: filemode.Regular, Hash: repo.Blob("x")})
	for range 10 {
		var entries []object.TreeEntry
		for name := range strings.SplitSeq("abcdefghij", "") {
			entries = append(entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: plumbing.NewHash(id)})
		}
		id = repo.Tree(entries...)
	}
	repo.Make(gittest.Spec{Branch: "main", Tree: id})
	r := open(t, repo.URL(), gitsource.Shallow, func(o *gitsource.Options) { o.Limits.Entries = 5000 })
	_, err := r.Read(bounded(t), resolve(t, r, main))
	over := &gitsource.TooMuch{}
	require.ErrorAs(t, err, &over)
	require.Equal(t, "the trees of the commit: more than the limit of 5000 entries; watch fewer folders", err.Error())
}

func TestFoldersWithoutEndAreRefused(t *testing.T) {
	_, repo := server(t)
	repo.Commit("main", map[string]string{strings.Repeat("d/", 70) + "a.hcl": "x", "a.hcl": "1"})
	s := read(t, open(t, repo.URL(), gitsource.Shallow), main)
	require.Equal(t, map[string]string{"a.hcl": "1"}, texts(s))
	require.Len(t, s.Refused, 1)
	require.Contains(t, s.Refused[0].Reason, "is more than 64 folders deep")
}

func TestWatchedPaths(t *testing.T) {
	_, repo := server(t)
	all := map[string]string{"a.hcl": "", "stacks/a.hcl": "", "stacks/x/b.hcl": "", "stacks/x/c.md": "", "stacks/old/x/d.hcl": "", "modules/e.hcl": ""}
	repo.Commit("main", all)
	for name, c := range map[string]struct {
		include, exclude []string
		want             string
	}{
		"all":                {nil, nil, "a.hcl modules/e.hcl stacks/a.hcl stacks/old/x/d.hcl stacks/x/b.hcl stacks/x/c.md"},
		"one folder":         {[]string{"stacks/*"}, nil, "stacks/a.hcl"},
		"below a folder":     {[]string{"stacks/**/*.hcl"}, nil, "stacks/a.hcl stacks/old/x/d.hcl stacks/x/b.hcl"},
		"without a subtree":  {[]string{"stacks/**"}, []string{"stacks/old/**"}, "stacks/a.hcl stacks/x/b.hcl stacks/x/c.md"},
		"exclude one level":  {[]string{"stacks/**"}, []string{"stacks/*"}, "stacks/old/x/d.hcl stacks/x/b.hcl stacks/x/c.md"},
		"exclude by ending":  {[]string{"**"}, []string{"**/*.hcl"}, "stacks/x/c.md"},
		"either":             {[]string{"{modules,stacks/x}/*.hcl"}, nil, "modules/e.hcl stacks/x/b.hcl"},
		"exclude in between": {[]string{"**/*.hcl"}, []string{"stacks/*/x/**"}, "a.hcl modules/e.hcl stacks/a.hcl stacks/x/b.hcl"},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, open(t, repo.URL(), gitsource.Shallow, include(c.include...), func(o *gitsource.Options) { o.Exclude = c.exclude }), main)
			var got []string
			for _, f := range s.Files {
				got = append(got, f.Path)
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}
