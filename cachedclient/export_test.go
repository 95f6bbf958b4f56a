package cachedclient

import "github.com/leatproject/leat/api"

// Newer returns the newer one of two versions.
var Newer = newer

// Waiters returns the number of keys that wait for a client's cache.
func Waiters[T api.Object](p *Partial[T]) int {
	p.source.current().target.mu.Lock()
	defer p.source.current().target.mu.Unlock()
	return len(p.source.current().target.waiters)
}

// OverlayEntries returns the number of entries of an overlay, as the reads without a lock see it.
func OverlayEntries[T api.Object](p *Partial[T]) int {
	return int(p.source.current().overlay.count.Load())
}
