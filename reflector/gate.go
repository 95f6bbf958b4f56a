package reflector

import (
	"context"
	"fmt"
	"time"
)

// Gate bounds the lists that several reflectors have in progress. Probes pass without it. Informers that a Factory
// shares need a Gate that can be compared, such as a pointer.
//
// After a wait of half a minute, the next list is a consistent read that reuses nothing, because the server may have
// been restored meanwhile.
type Gate interface {
	// Enter blocks until a list may begin, or until ctx ends. A reflector calls it before a list and before a
	// WatchList. It calls leave once: when the state is complete, when a request has failed, or when the reflector
	// ends. A page that has failed enters again. leave is never nil.
	Enter(ctx context.Context) (leave func())
}

// MaxLists returns a Gate that lets n lists be in progress at once. It panics if n is not positive.
func MaxLists(n int) Gate {
	if n < 1 {
		panic(fmt.Sprintf("reflector: MaxLists(%d) would let no list begin", n))
	}
	return maxLists(make(chan struct{}, n))
}

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

// enterGate waits until a list may begin. A list keeps its turn from page to page. enterGate returns false if ctx has
// ended.
func (r *Reflector[T]) enterGate(ctx context.Context, s *state) bool {
	if r.o.Gate == nil || r.leave != nil {
		return true
	}
	r.status.phase(Queued)
	began := time.Now()
	r.leave = r.o.Gate.Enter(ctx)
	r.limits.waited(s, began, time.Now())
	return ctx.Err() == nil
}

// waited notes a pause before a list. A restore can hide behind it, as behind an outage.
func (l *limits) waited(s *state, began, now time.Time) {
	passed := now.Sub(began)
	if passed < time.Second {
		return
	}
	l.distrustPages(s, passed)
	if !hasOrder(s.version) {
		return
	}
	s.confirm.pause(began, now)
	if s.list.token == "" && l.tooLate(&s.confirm, 0) {
		s.list.need = acceptRollback
	}
}

// leaveGate lets another list begin.
func (r *Reflector[T]) leaveGate() {
	if leave := r.leave; leave != nil {
		r.leave = nil
		leave()
	}
}
