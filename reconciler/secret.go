package reconciler

import (
	"fmt"
	"os"
	"strings"
)

// Read is the secret as it stands now; empty when none is given. A file's last line break
// is not part of it.
func (s Secret) Read(getenv func(string) string) (string, error) {
	switch {
	case s.File != "":
		b, err := os.ReadFile(s.File)
		if err != nil {
			return "", err
		}
		if text := strings.TrimRight(string(b), "\r\n"); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("%s is empty", s.File)
	case s.Env != "":
		if text := getenv(s.Env); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the environment variable %s is not set", s.Env)
	}
	return "", nil
}
