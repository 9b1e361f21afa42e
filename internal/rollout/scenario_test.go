package rollout_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite what the scenarios expect; review the difference")

// horizon ends scenarios that would retry for ever.
const horizon = 30 * 24 * time.Hour

func load(t *testing.T, path string) scenario {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := parseScenario(string(text))
	require.NoError(t, err)
	return s
}

func play(t *testing.T, s scenario, crash crashPlan) *world {
	t.Helper()
	w, err := s.build()
	require.NoError(t, err)
	w.crash = crash
	w.run(epoch.Add(horizon))
	return w
}

func scenarios(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func nameOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".txt") }

// transcript is everything that happened, and how things stand.
func (w *world) transcript() []string {
	lines := append([]string(nil), w.lines...)
	return append(lines, w.summary())
}

// Every scenario plays as its text says, and nothing that must never be was seen.
func TestScenarios(t *testing.T) {
	for _, path := range scenarios(t) {
		t.Run(nameOf(path), func(t *testing.T) {
			s := load(t, path)
			w := play(t, s, crashPlan{})
			got := w.transcript()
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(s.head+"  "+strings.Join(got, "\n  ")+"\n"), 0o600))
				return
			}
			assert.Equal(t, strings.Join(s.expect, "\n"), strings.Join(got, "\n"))
			assert.Empty(t, w.watch.violations)
		})
	}
}

// A runner that dies after any write or any effect, and starts anew from what is
// stored, ends with the same record, the same feed and the same world.
func TestScenariosWithACrashAtEveryBoundary(t *testing.T) {
	crashes := 0
	for _, path := range scenarios(t) {
		t.Run(nameOf(path), func(t *testing.T) {
			s := load(t, path)
			want := play(t, s, crashPlan{})
			for at := 1; at <= want.crash.seen; at++ {
				crashes++
				requireSame(t, want, play(t, s, crashPlan{at: at}), at)
			}
			requireSame(t, want, play(t, s, crashPlan{every: 1}), 0)
		})
	}
	t.Logf("%d crashes, one a run", crashes)
}

func requireSame(t *testing.T, want, got *world, at int) {
	t.Helper()
	require.JSONEq(t, string(want.stored), string(got.stored), "crash at boundary %d: record", at)
	events := func(w *world) string {
		text, err := json.MarshalIndent(w.events, "", " ")
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, events(want), events(got), "crash at boundary %d: feed", at)
	require.Equal(t, want.summary(), got.summary(), "crash at boundary %d", at)
	require.Empty(t, got.watch.violations, "crash at boundary %d", at)
}
