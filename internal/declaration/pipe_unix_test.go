//go:build unix

package declaration

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPipeInTheFolderIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "main.tf"), 0o600))
	_, ds := Load(dir, Options{})
	require.ErrorContains(t, ds.Err(), "not a regular file")
}
