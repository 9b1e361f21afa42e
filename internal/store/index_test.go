package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsAskedForOneRolloutReadsNoWholeTable asks SQLite how it would go about it.
// One scan made ten thousand endpoints cost the square of one thousand.
func TestWhatIsAskedForOneRolloutReadsNoWholeTable(t *testing.T) {
	s, err := OpenMemory(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, query := range []string{endpointByID, deploymentByID, deploymentsOf, rolloutByID, rolloutsOf, dropSlotsBefore, forgetAnswersBefore} {
		rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, "x")
		require.NoError(t, err)
		steps := 0
		for ; rows.Next(); steps++ {
			var id, parent, unused int
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			require.NotContains(t, detail, "SCAN", query)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.Positive(t, steps)
	}
}
