package main

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/reconcile/await"
)

// waitProgress prints what a command still waits for.
type waitProgress struct {
	name  string
	timer *time.Timer

	mu     sync.Mutex // guards the fields below
	stderr io.Writer
	states map[waitTarget]string
	last   string // the last line
	ended  bool
}

// progressAfter is the time before the first line, and the shortest time between two lines.
const progressAfter = 2 * time.Second

func newWaitProgress(stderr io.Writer, name string) *waitProgress {
	p := &waitProgress{name: name, stderr: stderr, states: map[waitTarget]string{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(progressAfter, p.tell)
	return p
}

func (p *waitProgress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
}

func (p *waitProgress) set(t waitTarget, state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == "" {
		delete(p.states, t)
		return
	}
	p.states[t] = state
}

func (p *waitProgress) waiting(t waitTarget, waiting []await.Waiting) {
	p.set(t, cmp.Or(await.List(waiting), "the first of them"))
}

func (p *waitProgress) failed(t waitTarget, err error) { p.set(t, oneLine(err)) }

func (p *waitProgress) over(t waitTarget) { p.set(t, "") }

// tell writes a line if it differs from the last one.
func (p *waitProgress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	var lines []string
	for t, state := range p.states {
		lines = append(lines, t.found.String()+": "+state)
	}
	slices.Sort(lines)
	if text := strings.Join(lines, "; "); text != p.last {
		p.last = text
		_, _ = visible.Fprintf(p.stderr, "leat: waiting for %s: %s\n", p.name, text) // an error of this write has no place to go
	}
	p.timer.Reset(progressAfter)
}
