package cli

import "os"

// Terminal tells whether a file is one that a person looks at.
func Terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
