package cluster

import "syscall"

// diesWithUs asks the kernel to kill a child when the thread that started it ends.
func diesWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
