package journal_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

func TestSQLiteConforms(t *testing.T) {
	journaltest.Suite(t, func(t *testing.T) journaltest.Opener {
		path := filepath.Join(t.TempDir(), "journal.db")
		return func(t *testing.T) journal.Journal {
			j, err := journal.OpenSQLite(path)
			require.NoError(t, err)
			return j
		}
	})
}

func TestANewFileIsItsOwnersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name ?#%20é.db")
	j, err := journal.OpenSQLite(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	require.Len(t, files, 3, "the file, its log and the log's index")
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f)
	}
}

func TestAFileThatIsNotAJournalIsRefusedAndLeftAsItIs(t *testing.T) {
	for name, content := range map[string][]byte{
		"text":             []byte("somebody's notes, far from a database of any kind\n"),
		"a damaged header": append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{0xff}, 4096)...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			require.NoError(t, os.WriteFile(path, content, 0o600))
			_, err := journal.OpenSQLite(path)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "cannot be read")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, content, after)
		})
	}
}

func TestTheEnginesStoreIsNotTakenForAJournal(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	path := filepath.Join(dir, "sluice.db")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = journal.OpenSQLite(path)
	require.ErrorContains(t, err, "not a journal")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "not a byte is changed")
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.OpenSQLite(path)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = journal.OpenSQLite(path)
	require.ErrorContains(t, err, "schema 9999")
	require.ErrorContains(t, err, "run the newer one")
}

func TestAPlaceWhereNoJournalCanBeIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := journal.OpenSQLite(filepath.Join(dir, "none", "journal.db"))
	require.ErrorContains(t, err, "its folder must exist")
	_, err = journal.OpenSQLite(dir)
	require.ErrorContains(t, err, "not a regular file")
}

func TestManyStartsOnAnEmptyFileAllFindAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() {
			var j journal.Journal
			if j, errs[i] = journal.OpenSQLite(path); errs[i] == nil {
				errs[i] = j.Close()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
