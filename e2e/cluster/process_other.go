//go:build !linux

package cluster

import "syscall"

// diesWithUs has nothing to ask for: only Linux has a parent-death signal. A test process that is killed elsewhere
// leaves its servers running.
func diesWithUs() *syscall.SysProcAttr { return nil }
