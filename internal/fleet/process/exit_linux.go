package process

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// reap waits for the child. It first waits without reaping, so that the pid, and
// with it the name of the group, still belongs to the child when the workers that
// it left behind are ended: a model server's workers hold the GPU's memory.
func reap(cmd *exec.Cmd) error {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return cmd.Wait() // somebody else reaped it; the group's name is not ours any more
		}
	}
	return errors.Join(forceEnd(cmd.Process.Pid), cmd.Wait())
}
