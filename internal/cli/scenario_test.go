package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
)

// Every scenario that the house keeps holds from a user's view too.
func TestEveryScenarioHoldsAtTheVerb(t *testing.T) {
	paths, err := filepath.Glob("../rehearsal/testdata/scenarios/*.txt")
	require.NoError(t, err)
	require.Greater(t, len(paths), 50)
	s := shell{t, map[string]string{}}
	for _, path := range paths {
		s.run("rehearse", "--scenario", path).exits(cli.ExitOK, " end ")
	}
}

func TestABrokenScenarioNamesTheLine(t *testing.T) {
	s := shell{t, map[string]string{}}
	for text, says := range map[string][]string{
		"given\n  source: 3 redy\nwhen\n  +0:00 start\n":                {`line 2: "source: 3 redy"`, `"3 redy" is not known of a side`, "given has a fact and a colon"},
		"given\n  source\nwhen\n":                                       {`line 2: "source"`, `wants "what: how"`, "rollout"},
		"# a head\ngiven\n  source: 1 ready\nwhen\n  +0:00 begin\nthen": {`line 5: "+0:00 begin"`, `"begin" is not a command`, "a command (again,", "start"},
		"given\n  source: 1 ready\nwhen\n  soon start\n":                {`line 4: "soon start"`, "wants +M:SS", "when has a moment"},
		"given\n  weights: 3 1 1\n":                                     {"line 2:", "3 weights for 2 deployments"},
		"given\n  source: 1 ready\nwhen\n  +0:00 looks target maybe\n":  {"line 4:", `"maybe" is not what a look comes to: pass, fail, err or nodata`},
		"source: 1 ready\n":                                             {"line 1:", "before the heading given"},
	} {
		path := filepath.Join(t.TempDir(), "broken.txt")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s.run("rehearse", "--scenario", path).exits(cli.ExitFailed, append(says, path)...)
	}
}
