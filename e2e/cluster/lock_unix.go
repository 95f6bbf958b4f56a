//go:build linux || darwin

package cluster

import (
	"os"
	"syscall"
)

// lock locks a file and creates it if needed. The kernel releases the lock when the file is closed or the process ends.
// Without wait, lock fails if the file is locked.
func lock(file string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: file, Err: err}
	}
	return f, nil
}
