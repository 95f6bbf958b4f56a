package informer

import (
	"context"
	"slices"
	"strings"

	"github.com/leatproject/leat/internal/runstate"
)

// anyInformer is the part of an Informer that does not depend on its type.
type anyInformer interface {
	Synced() <-chan struct{}
	Status() Status
}

// Synced returns a channel that is closed when the informers are synced: those that were shared before Run, and those
// that joined while the channel was open. It does not wait for an informer that has failed or was released. If Run ends
// before, the channel is never closed. It corresponds to WaitForCacheSync of client-go's SharedInformerFactory, which
// considers only the informers at the time of the call.
func (f *Factory) Synced() <-chan struct{} { return f.synced }

// Status returns the status of each shared informer, ordered by the names of their resources. It may be called on any
// goroutine, before, during and after Run.
func (f *Factory) Status() []Status {
	var all []Status
	for _, s := range f.current() {
		all = append(all, s.informer.Status())
	}
	slices.SortStableFunc(all, func(a, b Status) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
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
