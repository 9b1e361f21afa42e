package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// events is a run in which one test passed, one was skipped for a reason and one failed.
const events = `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:30: query needs terraform 1.14; this is 1.11.4\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p","Test":"TestC"}
`

const behaviours = "# Page\n\n| behaviour | tests |\n| --- | --- |\n| it lives | `TestA`, `TestC` |\n| it asks | `TestB`, `TestD` |\n"

func TestTheTallyPrintsEachBehaviourWithItsResults(t *testing.T) {
	dir := t.TempDir()
	run, page, out := filepath.Join(dir, "run.json"), filepath.Join(dir, "page.md"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(run, []byte(events), 0o600))
	require.NoError(t, os.WriteFile(page, []byte(behaviours), 0o600))
	f, err := os.Create(out) //nolint:gosec // a folder of this test
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = f
	ok, err := read(run, []string{page})
	os.Stdout = stdout
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.False(t, ok, "a test failed")
	text, err := os.ReadFile(out) //nolint:gosec // a folder of this test
	require.NoError(t, err)
	require.Contains(t, string(text), "skipped  p TestB: query needs terraform 1.14; this is 1.11.4\n")
	require.Contains(t, string(text), "  it lives\n    passed           TestA\n    FAILED           TestC\n  it asks\n    skipped          TestB\n    not in this run  TestD\n")
	require.Contains(t, string(text), "1 passed, 1 failed, 1 skipped\n")
}
