package factory

import (
	"context"
	"slices"
	"strings"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

var _ informer.Any = (*Share[api.Object])(nil)

// ObserveInformers calls f with every shared informer: at once with the present ones, and later with each new one. f
// must not use the factory. It is for metrics. The returned function ends the calls.
func (f *Factory) ObserveInformers(observe func(informer.Any)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shared {
		observe(s.informer)
	}
	return f.observers.Add(observe)
}

// Synced returns a channel that is closed when the informers are synced: those that were shared before Run, and those
// that joined while the channel was open. It does not wait for an informer that has failed or was released. If Run ends
// before, the channel is never closed. It corresponds to WaitForCacheSync of client-go's SharedInformerFactory, which
// considers only the informers at the time of the call.
func (f *Factory) Synced() <-chan struct{} { return f.synced }

// Status returns the status of each shared informer, ordered by name. It may be called on any goroutine, before, during
// and after Run.
func (f *Factory) Status() []informer.Status {
	var all []informer.Status
	for _, s := range f.current() {
		all = append(all, s.informer.Status())
	}
	slices.SortStableFunc(all, func(a, b informer.Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// current returns the shared informers.
func (f *Factory) current() []*sharedInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*sharedInformer
	for _, s := range f.shared {
		all = append(all, s)
	}
	return all
}

// awaitInformers closes synced when no informer is left to wait for.
func (f *Factory) awaitInformers(ctx context.Context) {
	for ctx.Err() == nil {
		unsynced := slices.DeleteFunc(f.current(), func(s *sharedInformer) bool { return runstate.IsClosed(s.informer.Synced()) })
		if len(unsynced) == 0 {
			close(f.synced)
			return
		}
		select {
		case <-unsynced[0].informer.Synced():
		case <-unsynced[0].done: // it is not in f.shared any more
		case <-ctx.Done():
			return
		}
	}
}
