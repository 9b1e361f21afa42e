package testacc

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOfficialNpmClient drives the engine with the unchanged together-ai client
// through every verb; what it asserts stands in client/drive.mjs.
func TestOfficialNpmClient(t *testing.T) {
	t.Parallel()
	_, err := os.Stat("client/node_modules/together-ai")
	require.NoError(t, err, "the client is not installed: make client")
	for _, base := range []string{"", "/v1", "/v2"} {
		t.Run("base"+base, func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, fastEngine)
			cmd := exec.CommandContext(t.Context(), "node", "drive.mjs")
			cmd.Dir = "client"
			cmd.Env = append(os.Environ(), "TOGETHER_API_KEY="+e.Key, "TOGETHER_BASE_URL="+e.APIURL+base, "TOGETHER_PROJECT_ID=proj_test", "GATEWAY="+e.GatewayURL)
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			require.NoError(t, err)
		})
	}
}
