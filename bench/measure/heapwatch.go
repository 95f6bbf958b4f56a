package measure

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// HeapWatch keeps the highest heap in use that it sees: objects that live, and those that are dead and not swept yet.
type HeapWatch struct {
	peak atomic.Uint64
}

// Run looks every ten milliseconds until ctx ends. It does not allocate while it does, and returns nil.
func (w *HeapWatch) Run(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		metrics.Read(sample)
		w.peak.Store(max(w.peak.Load(), sample[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Peak is the highest heap in use, in bytes.
func (w *HeapWatch) Peak() uint64 { return w.peak.Load() }
