package trace

import (
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer"
)

// Informer is an informer whose every stage is printed: requests and what comes back, batches, the cache, and what the
// handlers are told that join with Subscribe. A handler's line comes after those of the batch that it is told of, so that
// the lines read in the order in which the data flows.
type Informer[T api.Object] struct {
	*informer.Informer[T]
	printer *Printer

	mu      sync.Mutex    // guards printed
	changed sync.Cond     // on mu
	printed time.Time     // when the last batch that was printed began
	first   chan struct{} // closed once the first list is printed
}

// NewInformer returns a printed informer of what lw lists.
func NewInformer[T api.Object](p *Printer, lw api.ListerWatcher[T], o informer.Options[T]) *Informer[T] {
	i := &Informer[T]{printer: p, first: make(chan struct{})}
	i.changed.L = &i.mu
	next := o.OnBatch
	o.OnBatch = func(b deltafifo.Batch[T], s *cache.Snapshot[T]) {
		i.batch(b, s)
		if next != nil {
			next(b, s)
		}
	}
	i.Informer = informer.New(ListerWatcher(p, lw), o)
	return i
}

// batch prints what was taken from the queue, and what the cache holds then.
func (i *Informer[T]) batch(b deltafifo.Batch[T], s *cache.Snapshot[T]) {
	plural := i.Resource().Plural
	if len(b.Objects) > 0 {
		i.printer.Line("deltafifo", plural, "%s", deltas(b))
	}
	i.printer.Line("cache", plural, "%s, version %s", count(s.Len(), "object"), s.ResourceVersion())
	i.mu.Lock()
	defer i.mu.Unlock()
	if b.InitialList {
		close(i.first)
	}
	i.printed = b.Since
	i.changed.Broadcast()
}

// Printed is closed when the lines of the first list have been printed.
func (i *Informer[T]) Printed() <-chan struct{} { return i.first }

// Subscribe is that of informer.Informer, for a handler that is printed.
func (i *Informer[T]) Subscribe(f func(informer.Notification[T]), o informer.HandlerOptions) (*informer.Registration, error) {
	return i.Informer.Subscribe(func(n informer.Notification[T]) {
		i.await(n)
		i.printer.Line("handler", i.Resource().Plural, "%s", notification(n))
		f(n)
	}, o)
}

// await waits until the batch that a notification comes from is printed, which happens right after it was told. What is
// replayed comes from no batch, but is not told before there was one.
func (i *Informer[T]) await(n informer.Notification[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	replayed := n.InitialList || n.Resync
	for i.printed.IsZero() || !replayed && i.printed.Before(n.At) {
		i.changed.Wait()
	}
}
