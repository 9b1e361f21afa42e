package rehearsal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func scenarios(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func load(t *testing.T, path string) Script {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := ParseScript(string(text))
	require.NoError(t, err)
	return s
}

// Every scenario plays on the real engine as its text says, and nothing that must never
// be was seen.
func TestScenarios(t *testing.T) {
	d := disk(t)
	for _, path := range scenarios(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := load(t, path)
			got, err := Play(t.Context(), s, Setup{Disk: d, Reads: Decoded})
			require.NoError(t, err)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(s.Head+"  "+strings.Join(got.Lines, "\n  ")+"\n"), 0o600))
			} else {
				assert.Equal(t, strings.Join(s.Expect, "\n"), strings.Join(got.Lines, "\n"))
			}
			assert.Empty(t, got.Violations)
		})
	}
}
