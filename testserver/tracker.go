package testserver

import "sync"

// tracker counts goroutines and waits until all have ended. Unlike sync.WaitGroup, it allows add during wait; HTTP/2
// connections that end need this.
type tracker struct {
	mu    sync.Mutex // guards count
	count int
	zero  sync.Cond
}

func (t *tracker) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count += n
	if t.count == 0 && t.zero.L != nil {
		t.zero.Broadcast()
	}
}

func (t *tracker) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.zero.L = &t.mu
	for t.count > 0 {
		t.zero.Wait()
	}
}
