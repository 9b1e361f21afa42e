package journaltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

func TestMemoryConforms(t *testing.T) {
	journaltest.Suite(t, func(*testing.T) journaltest.Opener {
		m := journaltest.New()
		return func(*testing.T) journal.Journal { return m }
	})
}

func TestACrashAtEachSideOfACommitKeepsNothingOrAll(t *testing.T) {
	died := errors.New("died")
	key := journal.Key{Kind: "k", Name: "n"}
	for _, side := range []journaltest.Side{journaltest.Before, journaltest.After} {
		m := journaltest.New()
		l, err := m.Acquire(t.Context(), journal.Holder{ID: "a"}, time.Unix(1, 0), time.Minute)
		require.NoError(t, err)
		var seen []int
		m.Hook(func(b journaltest.Boundary) error {
			seen = append(seen, b.Commit)
			if b.Commit == 2 && b.Side == side {
				return died
			}
			return nil
		})
		batch := journal.Batch{Put: []journal.Record{{Key: key, Value: []byte("1")}}}
		require.NoError(t, m.Commit(t.Context(), l.Fence, batch))
		batch.Put[0].Value = []byte("2")
		require.ErrorIs(t, m.Commit(t.Context(), l.Fence, batch), died)
		m.Hook(nil)
		got, err := m.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, map[journaltest.Side]string{journaltest.Before: "1", journaltest.After: "2"}[side], string(got))
		require.Equal(t, 2, m.Commits())
		require.Equal(t, map[journaltest.Side][]int{journaltest.Before: {1, 1, 2}, journaltest.After: {1, 1, 2, 2}}[side], seen)
		records, intents, entries := m.Size()
		require.Equal(t, []int{1, 0, 0}, []int{records, intents, entries})
	}
}
