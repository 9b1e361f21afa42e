package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each complaint that docs/complaints.md lists has a test that exists, or a sentence
// that stands in a page which exists.
func TestEveryComplaintHasItsAnswer(t *testing.T) {
	tests := testNames(t)
	text, err := os.ReadFile("docs/complaints.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	sentence := regexp.MustCompile(`\]\(([^)]+)\): "([^"]+)"`)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		n, err := strconv.Atoi(strings.Trim(cells[0], "| "))
		if err != nil {
			continue
		}
		rows++
		require.Equal(t, rows, n)
		require.Len(t, cells, 4, line)
		proofs := named.FindAllStringSubmatch(cells[3], -1)
		for _, p := range proofs {
			require.Contains(t, tests, p[1], "complaint %d names a test that does not exist", n)
		}
		for _, p := range sentence.FindAllStringSubmatch(cells[3], -1) {
			page, err := os.ReadFile(filepath.Join("docs", p[1]))
			require.NoError(t, err)
			require.Contains(t, string(page), p[2], "complaint %d", n)
			proofs = append(proofs, p)
		}
		require.NotEmpty(t, proofs, "complaint %d has no proof", n)
	}
	require.Equal(t, 87, rows)
}

// Each test that docs/acceptance.md lists exists, and each one that runs terraform is in it.
func TestEveryBehaviourOfTheProviderHasItsTest(t *testing.T) {
	tests := testNames(t)
	listed := map[string]bool{}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	for line := range strings.Lines(page(t, "docs/acceptance.md")) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | "); cells[0] != "behaviour" && cells[0] != "---" {
			require.Len(t, cells, 2, line)
			require.NotEmpty(t, named.FindString(cells[1]), "%s has no test", cells[0])
		}
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			require.True(t, tests[m[1]], "docs/acceptance.md lists %s, which does not exist", m[1])
			listed[m[1]] = true
		}
	}
	files, err := filepath.Glob("testacc/terraform_*_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(page(t, f), -1) {
			require.True(t, listed[m[1]], "docs/acceptance.md has no row with %s: say which behaviour it shows", m[1])
		}
	}
}

// testNames are the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
		for _, m := range name.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
		return err
	}))
	return found
}
