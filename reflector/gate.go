package reflector

import "context"

// Gate bounds the lists that several reflectors have in progress.
type Gate interface {
	// Enter blocks until a list may begin, or until ctx ends. A reflector calls it before a list and before a
	// WatchList. It calls leave once: when the state is complete, when a request has failed, or when the reflector
	// ends. leave is never nil.
	Enter(ctx context.Context) (leave func())
}

// MaxLists returns a Gate that lets n lists be in progress at once.
func MaxLists(n int) Gate { return maxLists(make(chan struct{}, n)) }

// maxLists has an element for each list in progress.
type maxLists chan struct{}

func (m maxLists) Enter(ctx context.Context) (leave func()) {
	select {
	case m <- struct{}{}:
		return func() { <-m }
	case <-ctx.Done():
		return func() {}
	}
}

// enterGate waits until a list may begin. A list keeps its turn from page to page.
func (r *Reflector[T]) enterGate(ctx context.Context) {
	if r.o.Gate != nil && r.leave == nil {
		r.leave = r.o.Gate.Enter(ctx)
	}
}

// leaveGate lets another list begin.
func (r *Reflector[T]) leaveGate() {
	if leave := r.leave; leave != nil {
		r.leave = nil
		leave()
	}
}
