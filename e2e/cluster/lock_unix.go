//go:build linux || darwin

package cluster

import (
	"os"
	"syscall"
)

// lock takes the lock of a file, which it makes if need be. The kernel releases it when the file is closed, and so when
// the process ends, however it does. Without wait it fails if somebody holds it.
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
