package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

func aChange(id string) engineclient.Change {
	step, percent := 1, 50
	return engineclient.Change{Elapsed: 90 * time.Second, After: api.Rollout{
		ID: id, EndpointID: "ep_1", State: engineclient.StateStabilizing, CurrentStep: &step, CurrentTrafficPercent: &percent,
		Status: api.RolloutStatus{TotalSteps: 3}, Sluice: &api.RolloutExtra{Phase: "SOAKING", NextEvent: "the gate of step 2"},
	}}
}

func TestAProgressLineHasTheDocumentedFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.jsonl")
	f := &progressFile{path: path}
	f.write(t.Context(), progressLineOf(aChange("rol_1"), time.Date(2026, 9, 16, 20, 39, 45, 0, time.UTC)))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"time":"2026-09-16T20:39:45Z","rollout":"rol_1","endpoint":"ep_1","step":2,"of":3,"phase":"SOAKING","percent":50,"state":"STABILIZING","next_event":"the gate of step 2","elapsed_seconds":90}`+"\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	var pending engineclient.Change
	pending.After.State = engineclient.StatePending
	line, err := json.Marshal(progressLineOf(pending, time.Now()))
	require.NoError(t, err)
	require.Contains(t, string(line), `"step":null`)
}

func TestManyRolloutsShareOneProgressFileInWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.jsonl")
	var wg sync.WaitGroup
	const writers, lines = 8, 200
	for w := range writers {
		f := &progressFile{path: path} // each as a process of its own
		wg.Go(func() {
			for range lines {
				f.write(t.Context(), progressLineOf(aChange(fmt.Sprintf("rol_%d", w)), time.Now()))
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	count := map[string]int{}
	for line := range bytes.Lines(text) {
		var l progressLine
		require.NoError(t, json.Unmarshal(line, &l), string(line))
		count[l.Rollout]++
	}
	require.Len(t, count, writers)
	for id, n := range count {
		require.Equal(t, lines, n, id)
	}
}

// A folder that is missing and a disk that is full cost one warning, and no line more
// than those that did not fit.
func TestAProgressFileThatCannotBeWrittenCostsOneWarning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	f := &progressFile{path: filepath.Join(dir, "progress.jsonl")}
	var diags diag.Diagnostics
	for range 3 {
		f.write(t.Context(), progressLineOf(aChange("rol_1"), time.Now()))
		f.warn(&diags)
	}
	require.Len(t, diags, 1)
	require.False(t, diags.HasError())
	require.Contains(t, diags[0].Detail(), "no such file or directory")
	require.NoError(t, os.Mkdir(dir, 0o700))
	f.write(t.Context(), progressLineOf(aChange("rol_1"), time.Now()))
	text, err := os.ReadFile(f.path)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte("\n")), "it is written again once the folder is there")

	if runtime.GOOS != "linux" {
		t.Skip("there is no /dev/full")
	}
	full := &progressFile{path: "/dev/full"}
	diags = nil
	for range 3 {
		full.write(t.Context(), progressLineOf(aChange("rol_1"), time.Now()))
		full.warn(&diags)
	}
	require.Len(t, diags, 1)
	require.Contains(t, diags[0].Detail(), "no space left")
}

// A line that a full disk cut off is ended before the next one.
func TestALineAfterATornOneIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"time":"20`), 0o600))
	f := &progressFile{path: path, torn: true}
	f.write(t.Context(), progressLineOf(aChange("rol_1"), time.Now()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 2)
	require.True(t, json.Valid([]byte(lines[1])))
	require.False(t, f.torn)
}
