//go:build unix

package exec

import (
	"os"
	osexec "os/exec"
	"syscall"
)

// ownGroup starts a process in a group of its own, which ends as a whole.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGently lets a process that has the terminal restore it first: one that reads a password has switched off the echo.
// It is killed if it is still there when output is no longer waited for.
func endGently(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
