package rehearsal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rehearsal"
)

// A scenario file with a few digits too many must not take the machine's memory.
func TestAWorldTooLargeToPlayIsRefused(t *testing.T) {
	const file = "# x\ngiven\n  source: 1 ready\n  target: stopped\n  rollout: canary 100\n  FACT\nwhen\n  +0:00 start\n"
	for fact, want := range map[string]string{
		"copies: 100000000":    `"100000000" is not a whole number from 1 to 100`,
		"copies: -1":           `"-1" is not a whole number from 1 to 100`,
		"endpoints: 100000000": `"100000000" is not a whole number from 1 to 1000`,
		"endpoints: many":      `"many" is not a whole number from 1 to 1000`,
	} {
		_, err := PlayScenario(t.Context(), strings.Replace(file, "FACT", fact, 1))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "line 6")
	}
	played, err := PlayScenario(t.Context(), strings.Replace(file, "FACT", "copies: 100", 1))
	require.NoError(t, err)
	require.True(t, played.Holds)
}
