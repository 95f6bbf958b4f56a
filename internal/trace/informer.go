package trace

import (
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// Informer prints every stage of an informer: requests and their answers, batches, the cache, and the notifications of
// handlers that join with Subscribe. A handler's line follows the lines of its batch, so the lines are in the order of
// the data flow.
type Informer[T api.Object] struct {
	*informer.Informer[T]
	printer *Printer
	changes []informer.TracedChange // of the present batch

	mu        sync.Mutex    // guards printed and printedAt
	changed   sync.Cond     // on mu
	printed   time.Time     // start of the last printed batch
	printedAt time.Time     // when the last batch was printed
	first     chan struct{} // closed when the first list is printed
}

// NewInformer returns a printed informer of the objects that lw lists.
func NewInformer[T api.Object](p *Printer, lw api.ListerWatcher[T], o informer.Options[T]) *Informer[T] {
	i := &Informer[T]{printer: p, first: make(chan struct{})}
	i.changed.L = &i.mu
	i.Informer = informer.New(ListerWatcher(p, lw), o)
	i.Trace(informer.Trace{
		MayBlock: true, // p may write to a pipe
		Change:   func(c informer.TracedChange) { i.changes = append(i.changes, c) },
		Batch:    i.batch,
	})
	return i
}

// batch prints a batch, and the state of the cache after it.
func (i *Informer[T]) batch(b informer.TracedBatch) {
	plural, s := i.Resource().Plural, i.Snapshot()
	if b.Objects > 0 {
		i.printer.Line("deltafifo", plural, "%s", describeChanges(i.changes, b.Objects))
		i.changes = nil
	}
	i.printer.Line("cache", plural, "%s, version %s", count(s.Len(), "object"), s.ResourceVersion())
	i.mu.Lock()
	defer i.mu.Unlock()
	if b.InitialList {
		close(i.first)
	}
	i.printed, i.printedAt = b.Received, time.Now()
	i.changed.Broadcast()
}

// Printed returns a channel that is closed when the lines of the first list have been printed.
func (i *Informer[T]) Printed() <-chan struct{} { return i.first }

// Subscribe is informer.Informer.Subscribe for a handler whose notifications are printed.
func (i *Informer[T]) Subscribe(f func(api.Change[T]), o informer.HandlerOptions) (informer.Registration, error) {
	o.NonBlocking = false // await blocks
	return i.Informer.Subscribe(func(n api.Change[T]) {
		i.await(n)
		i.printer.Line("handler", i.Resource().Plural, "%s", notification(n))
		f(n)
	}, o)
}

// await waits until the batch of a notification is printed, which happens right after the notification was queued. A
// change carries the start of its batch, a resync the time at which its batch was handled; on fake time, batches must
// not start at the same instant. A replay to a handler that joins has no batch; it waits only for the first one.
func (i *Informer[T]) await(n api.Change[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for !i.isPrinted(n) {
		i.changed.Wait()
	}
}

func (i *Informer[T]) isPrinted(n api.Change[T]) bool {
	switch {
	case n.InitialList:
		return !i.printedAt.IsZero()
	case n.Resync:
		return !i.printedAt.Before(n.At)
	default:
		return !i.printed.Before(n.At)
	}
}
