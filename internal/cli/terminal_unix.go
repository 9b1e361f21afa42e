//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// Columns is how wide the terminal behind a file is; 0 for a file that is none.
func Columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ) //nolint:gosec // a file descriptor fits
	if err != nil {
		return 0
	}
	return int(size.Col)
}
