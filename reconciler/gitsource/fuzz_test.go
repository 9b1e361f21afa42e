package gitsource

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func FuzzAllowedSigners(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHzqlPyJdfV4GrGcZKcdGcJKTjqGBmJMlTg3cPvSmVGz"
	for _, seed := range []string{
		"ada@example.com " + key, "# comment\n\nada@example.com,*@example.com namespaces=\"git,file\" " + key + " laptop",
		"ada valid-after=\"20260101\",valid-before=\"20270101Z\" " + key, "* cert-authority " + key, "\"ada example\" " + key,
		"ada valid-before=\"2026\" " + key, "ada namespaces=\"", "ada", "ada ssh-ed25519", "ada from=\"x\" " + key,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		signers, err := parseAllowedSigners(text)
		if err != nil {
			require.Regexp(t, `^allowed signers, line \d+: `, err.Error())
			require.Empty(t, signers, "half a file allows nobody")
			return
		}
		for _, s := range signers {
			require.NotNil(t, s.key)
			require.NotEmpty(t, s.principals)
			_, _ = find(signers, s.key, time.Unix(0, 0))
		}
		require.LessOrEqual(t, len(signers), bytes.Count(text, []byte("\n"))+1)
	})
}

func FuzzTreeNames(f *testing.F) {
	for _, seed := range []string{"a.hcl", "..", ".git", ".GIT ", "git~1", ".git::$INDEX_ALLOCATION", ".g\u200cit", "a/b", "a\\b", "\xff", "", "a\x00b", "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		why := hostile(name)
		require.Equal(t, why, hostile(name))
		shown := printable(name)
		require.True(t, utf8.ValidString(shown))
		require.False(t, strings.ContainsAny(shown, "\x00\n\r\x1b"))
		if why != "" {
			return
		}
		require.Equal(t, shown, name, "a name that passes is shown as it is")
		require.NotContains(t, name, "/")
		require.NotEqual(t, ".git", strings.ToLower(strings.TrimRight(name, " .")))
	})
}

func FuzzCommits(f *testing.F) {
	const tree = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	const people = "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
	for _, seed := range []string{
		tree + people + "\nx\n", tree + "parent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n" + people + "gpgsig a\n b\n c\n\nx\n",
		tree + people + tree + people + "\nx\n", tree + people + "gpgsig-sha256 a\n b\n\nx", tree + tree + people + "\n", people + "\n", "\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseCommit(raw)
		if err != nil {
			return
		}
		require.True(t, bytes.HasPrefix(c.payload, []byte("tree "+c.tree.String()+"\n")), "the tree that is read is the one that is signed")
		head, _, _ := strings.Cut(string(c.payload), "\n\n")
		for _, once := range []string{"\ngpgsig ", "\ntree "} {
			require.NotContains(t, head, once)
		}
		_, _ = parseTag(raw)
	})
}
