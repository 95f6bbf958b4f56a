package demo

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/observe/livepage"
)

// stepper holds work back between two stages of the demonstration. The methods of a nil stepper do nothing.
type stepper struct {
	ended <-chan struct{} // closed when the demonstration ends

	mu      sync.Mutex    // guards the fields below
	resumed chan struct{} // closed when nothing needs to wait any more; nil if all stages run
	slow    time.Duration // the pause of each stage
	held    []*heldWork   // what waits, the longest first
}

// heldWork waits in front of a stage.
type heldWork struct {
	livepage.Held
	released chan struct{} // closed by next
}

func newStepper(ended <-chan struct{}) *stepper { return &stepper{ended: ended} }

// wait blocks while the stages are paused, or for the time of slow motion. It returns when the demonstration ends, or
// when gone is closed.
func (s *stepper) wait(stage, what string, gone <-chan struct{}) {
	if s == nil {
		return
	}
	s.mu.Lock()
	resumed, slow := s.resumed, s.slow
	if resumed == nil && slow == 0 {
		s.mu.Unlock()
		return
	}
	work := &heldWork{livepage.Held{Stage: stage, What: what, Since: time.Now()}, make(chan struct{})}
	s.held = append(s.held, work)
	s.mu.Unlock()
	defer s.forget(work)
	var over <-chan time.Time
	if resumed == nil {
		over = time.After(slow)
	}
	select {
	case <-work.released:
	case <-resumed:
	case <-over:
	case <-gone:
	case <-s.ended:
	}
}

func (s *stepper) forget(work *heldWork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(other *heldWork) bool { return other == work })
}

// pause makes all work wait in front of its next stage until next or resume.
func (s *stepper) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		s.resumed = make(chan struct{})
	}
}

// paused reports whether work waits for next or resume.
func (s *stepper) paused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumed != nil
}

// resume ends a pause, and sets the pause of each stage from now on.
func (s *stepper) resume(slow time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed != nil {
		close(s.resumed)
		s.resumed = nil
	}
	s.slow = slow
}

// next lets the work go on that waits the longest, and says which it was.
func (s *stepper) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) == 0 {
		return "nothing waits"
	}
	first := s.held[0]
	s.held = s.held[1:]
	close(first.released)
	return first.What
}

// waiting returns the work that waits, the longest first.
func (s *stepper) waiting() []livepage.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []livepage.Held
	for _, work := range s.held {
		all = append(all, work.Held)
	}
	return all
}

// stepped returns a source whose watch events wait in front of DeltaFIFO.
func stepped[T api.Object](s *stepper, lw api.ListerWatcher[T]) api.ListerWatcher[T] {
	if s == nil {
		return lw
	}
	return steppedSource[T]{api.Wrapper[T]{ListerWatcher: lw}, s}
}

type steppedSource[T api.Object] struct {
	api.Wrapper[T]
	steps *stepper
}

// Watch yields each event after its wait. Bookmarks and the objects of an initial list do not wait.
func (l steppedSource[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return func(yield func(api.Event[T], error) bool) {
		initial := o.SendInitialEvents != nil && *o.SendInitialEvents
		for event, err := range l.ListerWatcher.Watch(ctx, o) {
			switch {
			case err != nil:
			case event.InitialEventsEnd:
				initial = false
			case !initial && event.Type != watch.Bookmark:
				what := fmt.Sprintf("the event %s of %s %s", event.Type, l.Collection().Resource.Plural, api.FormatKey(api.KeyOf(event.Object)))
				if o.OnWait != nil {
					o.OnWait() // the event before this one must not wait too
				}
				l.steps.wait(livepage.StageFIFO, what, ctx.Done())
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// batches are the batches of one informer that wait in front of the handlers. They are in the cache already.
type batches struct {
	steps *stepper

	mu      sync.Mutex    // guards the fields below
	passed  time.Time     // start of the last batch that has waited
	changed chan struct{} // closed when passed changes
}

// newBatches returns nil for a nil stepper. The methods of a nil batches do nothing.
func newBatches(s *stepper) *batches {
	if s == nil {
		return nil
	}
	return &batches{steps: s, changed: make(chan struct{})}
}

// trace makes the batches of an informer wait, except the first list. version returns its version.
func (b *batches) trace(what string, version func() string) informer.Trace {
	return informer.Trace{MayBlock: true, Batch: func(batch informer.TracedBatch) {
		if batch.Objects > 0 && !batch.InitialList {
			b.pass(batch.Received, what+" at version "+version())
		}
	}}
}

// pass makes a batch wait. It runs on the informer's goroutine, so the next batch waits too.
func (b *batches) pass(since time.Time, what string) {
	if b == nil {
		return
	}
	b.steps.wait(livepage.StageHandlers, what, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed = since
	close(b.changed)
	b.changed = make(chan struct{})
}

// await blocks a handler until the batch that began at a time has waited. The informer has called pass, or will do so,
// because it appends to backlogs first. It returns when gone is closed.
func (b *batches) await(since time.Time, gone <-chan struct{}) {
	for {
		b.mu.Lock()
		passed, changed := !b.passed.Before(since), b.changed
		b.mu.Unlock()
		if passed {
			return
		}
		select {
		case <-changed:
		case <-gone:
			return
		case <-b.steps.ended:
			return
		}
	}
}

// hold returns a predicate that passes each change, after its wait in front of the workqueue.
func hold[T api.Object](b *batches, plural string, gone <-chan struct{}) func(api.Change[T]) bool {
	return func(c api.Change[T]) bool {
		if !c.InitialList && !c.Resync {
			b.await(c.At, gone)
		}
		what := fmt.Sprintf("the change %s of %s %s", c.Type, plural, api.FormatKey(api.KeyOf(c.Object)))
		b.steps.wait(livepage.StageWorkqueue, what, gone)
		return true
	}
}
