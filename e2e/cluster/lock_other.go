//go:build !linux && !darwin

package cluster

import "os"

// lock only creates the file, because there is no file lock here. Without wait it fails for an existing file, so that
// no folder of another process is swept.
func lock(file string, wait bool) (*os.File, error) {
	flag := os.O_CREATE | os.O_RDWR
	if !wait {
		flag |= os.O_EXCL
	}
	return os.OpenFile(file, flag, 0o600)
}
