package informer

import (
	"context"
	"slices"
	"strings"
)

// progress is what a factory asks an informer of any type.
type progress interface {
	Synced() <-chan struct{}
	Status() Status
}

// Synced is closed once every informer that was shared when Run began, or came before the others were ready, holds its
// first list. One that has failed, or was released, is not waited for. It is never closed if Run ends before.
// It corresponds to WaitForCacheSync of client-go's SharedInformerFactory, which says it for the informers of a moment.
func (f *Factory) Synced() <-chan struct{} { return f.synced }

// Status is how the informers fare that are shared now, in the order of their resources' names. It may be called from
// anywhere, before, during and after Run.
func (f *Factory) Status() []Status {
	var all []Status
	for _, s := range f.current() {
		all = append(all, s.informer.Status())
	}
	slices.SortStableFunc(all, func(a, b Status) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return all
}

// current returns the informers that are shared now.
func (f *Factory) current() []*sharedInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*sharedInformer
	for _, s := range f.shared {
		all = append(all, s)
	}
	return all
}

// awaitInformers closes synced when the time has come.
func (f *Factory) awaitInformers(ctx context.Context) {
	for ctx.Err() == nil {
		late := slices.DeleteFunc(f.current(), func(s *sharedInformer) bool { return isClosed(s.informer.Synced()) })
		if len(late) == 0 {
			close(f.synced)
			return
		}
		select {
		case <-late[0].informer.Synced():
		case <-late[0].done: // and forgotten
		case <-ctx.Done():
			return
		}
	}
}
