package measure

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// HeapWatch records the highest heap in use: live objects, and dead ones that are not swept yet.
type HeapWatch struct {
	peak atomic.Uint64
}

// Run samples every ten milliseconds until ctx ends, and returns nil. It does not allocate meanwhile.
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

// Peak returns the highest heap in use, in bytes.
func (w *HeapWatch) Peak() uint64 { return w.peak.Load() }
