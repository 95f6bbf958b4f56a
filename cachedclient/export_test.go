package cachedclient

import "github.com/leatproject/leat/api"

// Newer is newer.
var Newer = newer

// Listeners is how many sets of unseen writes subscribe to a client's cache.
func Listeners[T api.Object](p *Partial[T]) int {
	p.held.now().target.mu.Lock()
	defer p.held.now().target.mu.Unlock()
	return len(p.held.now().target.waiters)
}

// Remembered is how much an overlay has to show.
func Remembered[T api.Object](p *Partial[T]) int { return int(p.held.now().overlay.count.Load()) }
