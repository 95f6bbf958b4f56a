//go:build !unix

package exec

import (
	"os"
	osexec "os/exec"
)

// ownGroup changes nothing: there are no groups of processes here, and the process alone is ended.
func ownGroup(*osexec.Cmd) {}

func endGently(p *os.Process) error { return p.Kill() }
