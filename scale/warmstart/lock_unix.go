//go:build unix

package warmstart

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile locks a file until the returned function is called or the process ends. It follows no symbolic link, and
// does not wait for the other end of a FIFO.
func lockFile(path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: another process uses the file: %w", path, err)
	}
	return file.Close, nil
}
