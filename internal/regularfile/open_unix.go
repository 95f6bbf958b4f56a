//go:build unix

package regularfile

import (
	"os"
	"syscall"
)

// open opens a file without blocking. The open of a FIFO without O_NONBLOCK waits for a writer, and some files that
// say they are regular, such as /proc/kmsg, block in a read.
func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) }
