package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines of the log ended in endpoint="" rollout="" commit="".
func TestALogLineForPeopleLeavesEmptyAttributesAway(t *testing.T) {
	for format, want := range map[string]string{"text": "msg=here stack=models/prod\n", "json": `"stack":"models/prod","rollout":""}`} {
		var out bytes.Buffer
		log, err := (&app{Env: Env{Err: &out}}).logger("info", format)
		require.NoError(t, err)
		log.Info("here", "stack", "models/prod", "rollout", "")
		require.Contains(t, out.String(), want)
	}
}
