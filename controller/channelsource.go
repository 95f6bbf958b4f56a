package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leatproject/leat/workqueue"
)

// ChannelSource is a Source of events that come from elsewhere than an informer: see Channel. Its methods return it with
// something added, and leave the one they are called on as it is; all of them read the one channel.
// It corresponds to TypedChannel of controller-runtime's package source.
type ChannelSource[E any, K comparable] struct {
	name   string
	hub    *hub[E]
	keys   func(E) []K
	filter filter[E]
}

// Channel returns a source that adds the keys which f finds for each event that comes from a channel. The name stands in
// errors, logs and causes. Every controller that watches the source is told of every event that comes meanwhile; to make
// two sources of one channel divides its events among them.
//
// Nothing is stored between the channel and the queues, where keys merge: whoever sends waits, beyond the room of the
// channel itself, while no controller watches, and while the predicates and functions of all who do are called with the
// event before, one after the other. They must not send to the channel themselves. When it is closed the source has no
// more keys; what was watched goes on without it. A panic of f is counted and logged, and that event adds no keys to
// that controller.
func Channel[E any, K comparable](name string, events <-chan E, f func(E) []K) ChannelSource[E, K] {
	if events == nil || f == nil {
		panic("controller: Channel needs a channel and a function")
	}
	return ChannelSource[E, K]{name: name, hub: newHub(events), keys: f}
}

// When adds predicates that must all pass an event. One that panics counts as passing; that is counted and logged.
func (s ChannelSource[E, K]) When(predicates ...func(E) bool) ChannelSource[E, K] {
	s.filter = s.filter.when(predicates)
	return s
}

// Unless adds predicates none of which may pass an event. One that panics counts as not passing.
func (s ChannelSource[E, K]) Unless(predicates ...func(E) bool) ChannelSource[E, K] {
	s.filter = s.filter.unless(predicates)
	return s
}

// WhenAny adds predicates one of which must pass an event. Without any, nothing passes.
func (s ChannelSource[E, K]) WhenAny(predicates ...func(E) bool) ChannelSource[E, K] {
	s.filter = s.filter.whenAny(predicates)
	return s
}

// String returns the name of the source.
func (s ChannelSource[E, K]) String() string { return s.name }

// NotSynced knows nothing: the source is synced as it begins.
func (s ChannelSource[E, K]) NotSynced() error { return nil }

// Run tells the sink of what comes from the channel until ctx ends or the channel is closed; see Source.
func (s ChannelSource[E, K]) Run(ctx context.Context, sink *Sink[K]) error {
	x := &examiner[E, K]{filter: s.filter, sink: sink, describe: func(E) string { return "" }}
	l := &listener[E]{tell: func(e E) {
		if x.passes(e) {
			s.add(e, sink)
		}
	}}
	s.hub.join(l)
	defer s.hub.leave(l)
	sink.Synced()
	s.hub.read(ctx)
	return nil
}

// add adds the keys of an event, each once.
func (s ChannelSource[E, K]) add(e E, sink *Sink[K]) {
	for _, key := range distinct(s.find(e, sink)) {
		sink.Add(key, workqueue.Item{Cause: workqueue.Cause{
			Source: s.name, Event: eventEvent, Object: formatKey(key), At: time.Now(),
		}})
	}
}

// find returns the keys of an event; none if f panics, and once the source is removed it is not asked. They are copies,
// for the slice is the user's.
func (s ChannelSource[E, K]) find(e E, sink *Sink[K]) (keys []K) {
	if sink.Removed() {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			sink.contained("map function", "", recovered(p))
		}
	}()
	return slices.Clone(s.keys(e))
}

// hub tells all who listen what comes from a channel. It has no goroutine: one of the listeners' reads for all of them,
// and when it leaves another takes its turn.
type hub[E any] struct {
	events <-chan E
	turn   chan struct{} // has one element while somebody reads

	mu        sync.Mutex // guards the field below
	listeners []*listener[E]
}

type listener[E any] struct {
	tell  func(E)
	calls sync.WaitGroup // of tell, in flight or about to be
}

func newHub[E any](events <-chan E) *hub[E] {
	return &hub[E]{events: events, turn: make(chan struct{}, 1)}
}

func (h *hub[E]) join(l *listener[E]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, l)
}

// leave returns when the listener is not told of anything any more.
func (h *hub[E]) leave(l *listener[E]) {
	h.mu.Lock()
	h.listeners = slices.DeleteFunc(h.listeners, func(other *listener[E]) bool { return other == l })
	h.mu.Unlock()
	l.calls.Wait()
}

// read returns when ctx has ended or the channel is closed. In its turn it tells everybody of what comes.
func (h *hub[E]) read(ctx context.Context) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-h.turn }()
	for ctx.Err() == nil {
		select {
		case e, open := <-h.events:
			if !open {
				return // and so will the next one
			}
			h.tell(e)
		case <-ctx.Done():
		}
	}
}

func (h *hub[E]) tell(e E) {
	for _, l := range h.audience() {
		l.hear(e)
	}
}

// audience returns those who will be told, and makes leave wait for it.
func (h *hub[E]) audience() []*listener[E] {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.listeners {
		l.calls.Add(1)
	}
	return slices.Clone(h.listeners)
}

func (l *listener[E]) hear(e E) {
	defer l.calls.Done()
	l.tell(e)
}
