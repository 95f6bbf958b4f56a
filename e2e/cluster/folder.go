package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const folderPrefix = "leat-e2e-"

// workingFolder creates a folder under parent, and removes the folders of killed processes. release unlocks the folder
// and, unless keep is true, removes it.
func workingFolder(parent string, keep bool) (dir string, release func(), err error) {
	// This lock is held while folders are created or swept. Without it, a process could sweep a new folder that is not
	// locked yet.
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
			_ = os.RemoveAll(dir) // the next run sweeps the rest
		}
		_ = held.Close()
	}
	return dir, release, nil
}

// sweep removes the folders that are not locked.
func sweep(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*", "lock"))
	if err != nil {
		return err
	}
	for _, file := range dirs {
		held, err := lock(file, false)
		if err != nil {
			continue // locked by another process, or not accessible
		}
		err = os.RemoveAll(filepath.Dir(file))
		_ = held.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// freePorts returns free loopback ports.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // close all at the end, so that each port is different
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
