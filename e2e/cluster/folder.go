package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const folderPrefix = "leat-e2e-"

// workingFolder makes a folder under parent, and removes those that a process which was killed left there. release
// gives it back and, unless keep, removes it.
func workingFolder(parent string, keep bool) (dir string, release func(), err error) {
	// Whoever makes or sweeps folders holds this lock, so that nobody sweeps one that is not locked yet.
	guard, err := lock(filepath.Join(parent, folderPrefix+"lock"), true)
	if err != nil {
		return "", nil, err
	}
	defer guard.Close()
	if err := sweep(parent); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(parent, folderPrefix); err != nil {
		return "", nil, err
	}
	held, err := lock(filepath.Join(dir, "lock"), false)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	release = func() {
		if keep {
			_ = os.Remove(held.Name()) // a folder without a lock is never swept
		} else {
			_ = os.RemoveAll(dir) // what stays is swept by the next run
		}
		_ = held.Close()
	}
	return dir, release, nil
}

// sweep removes the folders whose lock nobody holds.
func sweep(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*", "lock"))
	if err != nil {
		return err
	}
	for _, file := range dirs {
		held, err := lock(file, false)
		if err != nil {
			continue // somebody's, or not ours to open
		}
		err = os.RemoveAll(filepath.Dir(file))
		_ = held.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// freePorts returns ports of loopback that nobody listens on.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // all at the end, so that no port is found twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
