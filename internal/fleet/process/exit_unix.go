//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
)

// reap waits for the child and ends the workers that it left in its group. The
// group keeps its name while a worker is in it; an empty one is not found.
func reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	return errors.Join(err, forceEnd(cmd.Process.Pid))
}
