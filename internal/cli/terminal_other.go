//go:build !unix

package cli

import "os"

// Columns is not known here: nothing is broken into lines.
func Columns(*os.File) int { return 0 }
