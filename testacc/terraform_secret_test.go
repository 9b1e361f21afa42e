package testacc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// With everything logged that can be, the key is in no line, nor in an error.
func TestTerraformTraceNeverShowsTheKey(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	log := filepath.Join(w.dir, "trace.log")
	w.env = append(w.env, "TF_LOG=TRACE", "TF_LOG_PATH="+log)
	out := w.apply(t)
	for i, kv := range w.env {
		if strings.HasPrefix(kv, "SLUICE_API_KEY=") {
			w.env[i] = "SLUICE_API_KEY=" + e.Key + "-wrong"
		}
	}
	refused, code := w.run(t, "plan", "-no-color")
	require.Equal(t, 1, code, refused)
	raw, err := os.ReadFile(log)
	require.NoError(t, err)
	said := string(raw)
	require.Contains(t, said, "the engine that is used")
	require.Contains(t, said, "event-stream", "the capabilities stand in the log")
	for _, text := range []string{out, refused, said} {
		require.NotContains(t, text, e.Key)
	}
}
