//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// ownGroup puts the process into a group of its own: a signal to the server's
// terminal does not reach it, and a signal of ours reaches its workers too.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// askToEnd sends SIGTERM to the group that the process leads.
func askToEnd(pid int) error { return signalGroup(pid, syscall.SIGTERM) }

// forceEnd sends SIGKILL to the group. After the leader it reaches the workers
// that it left behind.
func forceEnd(pid int) error { return signalGroup(pid, syscall.SIGKILL) }

// signalGroup signals a group; one that is gone is no error.
func signalGroup(pid int, s syscall.Signal) error {
	if err := syscall.Kill(-pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to process group %d: %w", s, pid, err)
	}
	return nil
}

// leads reports whether the process leads its group, as replicas do and their
// workers do not.
func leads(pid int) bool {
	g, err := syscall.Getpgid(pid)
	return err == nil && g == pid
}

// lockDir holds the folder for this process; a second fleet on it would adopt and
// end the first one's replicas. The lock goes with the process, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator's folder
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a descriptor fits
		return nil, errors.Join(fmt.Errorf("another server runs the fleet in %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's folder
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
