package deltafifo

import "time"

const (
	// quiet is the time without a change after which the next change counts as a single one.
	quiet = 200 * time.Microsecond
	// fewObjects is the largest number of changed objects that Flush processes itself.
	fewObjects = 16
)

// Flush makes sure that the changes so far are processed soon. A producer calls it before it waits for its next change,
// and more is true then. From there on, Put, Delete, DeleteKey and Bookmark do not wake the consumer, so the producer
// must call Flush before every wait, until a call with false ends this.
//
// Rule: if the changes came after a pause, and nobody processes a batch, Flush processes them itself. Otherwise it
// wakes the consumer. Reason: to wake a goroutine costs more than to process one change, but in a busy stream the
// consumer takes many changes at once, while the producer decodes the next ones. Price: the producer receives nothing
// while it processes, so process must not block. If it may block, use nil, which always leaves the changes to the
// consumer.
//
// Only the producer may call it.
func (q *DeltaFIFO[T]) Flush(process func(Batch[T]), more bool) {
	q.flushes = more
	q.mu.Lock()
	dirty, single := q.dirty, q.since.Sub(q.flushed) >= quiet && len(q.buffer.objects) <= fewObjects
	q.mu.Unlock()
	if !dirty {
		return
	}
	if single && process != nil && q.processing.TryLock() {
		q.pop(process)
	} else {
		q.signal()
	}
	q.flushed = time.Now()
}

// Close waits until no batch is processed. No later Flush or Pop processes one, and Pop must not be called any more.
func (q *DeltaFIFO[T]) Close() { q.processing.Lock() }
