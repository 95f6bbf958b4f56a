package client

import "github.com/leatproject/leat/api"

// Newer is newer.
var Newer = newer

// Listeners is how many ledgers a client's cache is to poke.
func Listeners[T api.Object](p *Projection[T]) int {
	p.held.now().origin.mu.Lock()
	defer p.held.now().origin.mu.Unlock()
	return len(p.held.now().origin.waiters)
}

// Remembered is how much an overlay has to show.
func Remembered[T api.Object](p *Projection[T]) int { return int(p.held.now().overlay.count.Load()) }
