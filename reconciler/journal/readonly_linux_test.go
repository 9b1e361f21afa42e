package journal_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// unprivileged has the test's thread open files as somebody whom modes bind: they do not
// bind root.
func unprivileged(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	_, err := unix.SetfsuidRetUid(65534)
	require.NoError(t, err)
}

// openDir is a folder that anybody may reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	return dir
}

func TestAFolderThatCannotBeWrittenIsRefused(t *testing.T) {
	dir := openDir(t)
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Run("", func(t *testing.T) {
		unprivileged(t)
		_, err := journal.OpenSQLite(filepath.Join(dir, "journal.db"))
		require.ErrorIs(t, err, os.ErrPermission)
		require.ErrorContains(t, err, "writable")
	})
}

func TestAJournalOnAReadOnlyFolderIsRefusedAndNotChanged(t *testing.T) {
	dir := openDir(t)
	path := filepath.Join(dir, "journal.db")
	j, err := journal.OpenSQLite(path)
	require.NoError(t, err)
	_, err = j.Acquire(t.Context(), journal.Holder{ID: "a"}, time.Unix(1, 0), time.Minute)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, os.Chmod(path, 0o444))
	require.NoError(t, os.Chmod(dir, 0o555))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Run("", func(t *testing.T) {
		unprivileged(t)
		_, err := journal.OpenSQLite(path)
		require.ErrorContains(t, err, path)
	})
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
