package livepage

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

// buckets is the number of buckets of a histogram. The last one has everything from 2^21 µs, which is half an hour, on.
const buckets = 64

// histogram counts durations. Bucket 2n ends at 1.5 × 2^n µs, and bucket 2n+1 at 2 × 2^n µs. The browser computes
// quantiles from the differences of two answers, so the page stores no history. The zero value is empty.
type histogram [buckets]atomic.Uint64

func (h *histogram) add(d time.Duration) { h[bucketOf(d)].Add(1) }

func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	n := bits.Len64(us) - 1 // 2^n ≤ us < 2^(n+1)
	b := 2 * n
	if 2*us >= 3<<n {
		b++
	}
	return min(b, buckets-1)
}

// counts is a histogram in JSON: the counts without the empty buckets at both ends, and the index of the first.
type counts struct {
	First  int      `json:"first"`
	Counts []uint64 `json:"counts"`
}

func (h *histogram) read() counts {
	c := counts{Counts: []uint64{}}
	last := 0
	for i := range h {
		n := h[i].Load()
		if n > 0 {
			last = len(c.Counts) + 1
		} else if len(c.Counts) == 0 {
			continue
		}
		if len(c.Counts) == 0 {
			c.First = i
		}
		c.Counts = append(c.Counts, n)
	}
	c.Counts = c.Counts[:last]
	return c
}

// batchCounts measures the batches of an informer.
type batchCounts struct {
	batches, changes atomic.Uint64
	stored           histogram // from the receipt of a batch's first change to the cache
}

func (c *batchCounts) add(b informer.TracedBatch) {
	if b.Objects == 0 {
		return
	}
	c.batches.Add(1)
	c.changes.Add(uint64(b.Objects))
	c.stored.add(time.Since(b.Received))
}

// stageTimes measures the stages of reconciles.
type stageTimes struct {
	added    histogram // from the receipt of the first event to the queue
	waited   histogram // in the queue
	worked   histogram // in the reconciler
	answered histogram // from the receipt of the first event to the end of the reconcile
}

func (s *stageTimes) add(r controller.Reconciled) {
	t := r.Times()
	if !t.Received.IsZero() {
		if !t.Ready.IsZero() {
			s.added.add(t.Ready.Sub(t.Received))
		}
		s.answered.add(t.Done.Sub(t.Received))
	}
	if !t.Ready.IsZero() {
		s.waited.add(t.Started.Sub(t.Ready))
	}
	s.worked.add(t.Done.Sub(t.Started))
}
