package journal

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFullDiskKeepsAllOrNothingOfABatchAndTheJournalGoesOn(t *testing.T) {
	d, err := openSQLite(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	l, err := d.Acquire(t.Context(), Holder{ID: "a"}, time.Unix(1, 0), time.Minute)
	require.NoError(t, err)
	pages := func(query string) (n int) {
		require.NoError(t, d.write.QueryRowContext(t.Context(), "PRAGMA "+query).Scan(&n))
		return n
	}
	pages(fmt.Sprint("max_page_count = ", pages("page_count")+8))
	full := 0
	for i := range 12 {
		k := Key{Kind: "k", Name: fmt.Sprint(i)}
		err := d.Commit(t.Context(), l.Fence, Batch{Put: []Record{{Key: k, Value: []byte(strings.Repeat("x", 12_000))}}, Entries: []Entry{{Text: k.Name, Repository: k.Name}}})
		_, readErr := d.Get(t.Context(), k)
		told := 0
		for range d.History(t.Context(), Query{Repository: k.Name}) { //nolint:errcheck // counted
			told++
		}
		if err == nil {
			require.NoError(t, readErr)
			require.Equal(t, 1, told)
			continue
		}
		full++
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorIs(t, readErr, ErrNone)
		require.Zero(t, told)
	}
	require.Positive(t, full)
	require.Less(t, full, 12)
	pages("max_page_count = 1000000")
	require.NoError(t, d.Commit(t.Context(), l.Fence, Batch{Entries: []Entry{{Text: "again"}}}))
}
