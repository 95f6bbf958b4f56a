package cluster

import (
	"context"
	"fmt"
	"path/filepath"
)

// RunProgram runs a client of the server, such as kube-controller-manager, and appends its output to the file log. When
// ctx ends, RunProgram kills it and returns nil. If it ends before, the error has the end of its log.
func RunProgram(ctx context.Context, path, log string, args ...string) error {
	p, err := startProcess(path, log, args)
	if err != nil {
		return fmt.Errorf("cluster: start %s: %w", filepath.Base(path), err)
	}
	select {
	case <-ctx.Done():
		p.kill()
		return nil
	case <-p.done:
		return fmt.Errorf("cluster: %s ended: %s; its log ends with\n%s", p.name, p.cmd.ProcessState, tail(log, logTail))
	}
}
