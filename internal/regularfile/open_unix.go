//go:build unix

package regularfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// open opens a file without blocking. The open of a FIFO without O_NONBLOCK waits for a writer, and some files that
// say they are regular, such as /proc/kmsg, block in a read.
func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) }

// openNoLink opens a file for reading and writing, without blocking. It fails if the path is a symbolic link.
func openNoLink(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// checkAccess refuses a file of another user, and a file that others can use.
func checkAccess(info fs.FileInfo) error {
	if status, ok := info.Sys().(*syscall.Stat_t); !ok || int(status.Uid) != os.Geteuid() {
		return errors.New("another user owns it")
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("others can use it, because its mode is %s", info.Mode())
	}
	return nil
}
