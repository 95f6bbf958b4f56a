package controlplane

import "sync"

// tasks counts what must end before the process does.
type tasks struct {
	mu    sync.Mutex // guards the fields below
	ended bool
	all   sync.WaitGroup
}

// begin adds a task. It returns false after wait was called.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.all.Add(1)
	}
	return !t.ended
}

func (t *tasks) end() { t.all.Done() }

// wait waits for all tasks.
func (t *tasks) wait() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.all.Wait()
}
