package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// ownGroup does nothing: there are no process groups.
func ownGroup(*exec.Cmd) {}

// askToEnd ends the process; Windows has no way to ask.
func askToEnd(pid int) error { return forceEnd(pid) }

// forceEnd ends the process; one that is gone is no error.
func forceEnd(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil //nolint:nilerr // it is gone
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// leads is true: every process stands for itself.
func leads(int) bool { return true }

// lockDir opens the lock file without holding it.
func lockDir(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
}

// syncDir does nothing: folders cannot be synced.
func syncDir(string) error { return nil }

// reap waits for the child.
func reap(cmd *exec.Cmd) error { return cmd.Wait() }
