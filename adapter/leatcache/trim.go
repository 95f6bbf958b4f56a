package leatcache

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// trimDelay is the time from a first list until the cache returns memory. Handlers process the list meanwhile, and
	// informers that start one after the other cause one garbage collection together.
	trimDelay = 5 * time.Second
	// trimBytes is what the process must have allocated since the last time. Less is not worth a garbage collection.
	trimBytes = 32 << 20
)

// trimAfter waits for the first list of a collection. If no other collection waits for its own, trimAfter returns the
// memory of dead objects to the operating system. Packed objects are a fraction of what decoding their list needs, so
// without this the process would keep twice its live heap from the start. The price is one garbage collection, and
// page faults when the heap grows again.
func (c *Cache) trimAfter(ctx context.Context, of *collection) {
	err := of.wait(ctx)
	if err == nil {
		select {
		case <-time.After(trimDelay):
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing--
	if c.listing > 0 || c.ctx.Err() != nil {
		return
	}
	if allocated := allocatedBytes(); allocated-c.trimmed >= trimBytes {
		c.trimmed = allocated
		c.running.Go(debug.FreeOSMemory)
	}
}

// allocatedBytes returns what the process has allocated on the heap since its start.
func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
