//go:build !linux

package cluster

import "syscall"

// diesWithUs returns nil, because only Linux has a parent-death signal. On other systems, the servers of a killed test
// process stay.
func diesWithUs() *syscall.SysProcAttr { return nil }
