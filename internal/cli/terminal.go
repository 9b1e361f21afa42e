package cli

import (
	"bufio"
	"fmt"
	"os"
)

// Terminal tells whether a file is one that a person looks at.
func Terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// AskOn returns how to ask the person at a terminal: the question goes to out, the answer
// is a line of in. It is nil when in is no terminal.
func AskOn(in, out *os.File) func(string) (string, error) {
	if !Terminal(in) {
		return nil
	}
	return func(question string) (string, error) {
		if _, err := fmt.Fprint(out, question); err != nil {
			return "", err
		}
		said, err := bufio.NewReader(in).ReadString('\n')
		if err != nil { // nobody has ended the line
			_, _ = fmt.Fprintln(out)
		}
		return said, err
	}
}
