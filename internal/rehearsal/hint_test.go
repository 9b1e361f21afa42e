package rehearsal

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a hint lists is what the README of the scenarios explains.
func TestTheHintsWordsAreExplained(t *testing.T) {
	text, err := os.ReadFile("testdata/scenarios/README.md")
	require.NoError(t, err)
	for _, word := range strings.Fields(factWords + " " + commandWords) {
		require.Regexp(t, "(?m)`"+word+"\\b|^ +"+word+":", string(text))
	}
}
