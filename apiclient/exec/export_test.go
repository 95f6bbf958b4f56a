package exec

import (
	"context"
	"os"
	"strings"
)

// Run is what a test sees of a run that it answers itself.
type Run struct {
	Info        string // KUBERNETES_EXEC_INFO
	Interactive bool
}

// Fake lets a function run instead of a process.
func (p *Plugin) Fake(run func(ctx context.Context, r Run) ([]byte, error)) {
	p.run = func(ctx context.Context, pr *process) ([]byte, error) {
		r := Run{Interactive: pr.stdin != nil}
		for _, v := range pr.env {
			if info, ok := strings.CutPrefix(v, infoVariable+"="); ok {
				r.Info = info
			}
		}
		return run(ctx, r)
	}
}

// FakeTerminal decides whether standard input is one.
func (p *Plugin) FakeTerminal(is bool) { p.isTerminal = func(*os.File) bool { return is } }

// IsTerminal is what decides otherwise.
var IsTerminal = isTerminal
