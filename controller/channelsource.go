package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

// ChannelSource is a Source of events from a channel: see Channel. Its methods return a changed copy; all copies read
// the same channel. It corresponds to TypedChannel of controller-runtime's package source.
type ChannelSource[E any, K comparable] struct {
	name        string
	broadcaster *broadcaster[E]
	keys        func(E) []K
	filter      filter[E]
}

// Channel returns a source that adds the keys that f returns for each event of a channel. Errors, logs and causes
// contain the name. Every controller that watches the source gets every event that arrives meanwhile. Two sources of
// one channel would divide its events between them.
//
// The source stores no events between the channel and the queues, where keys coalesce. So a sender waits when the
// channel's own buffer is full. The buffer empties only while a controller watches. For each event, one goroutine calls
// the predicates and functions of all watching controllers, one after the other. These functions must not send to the
// channel. When the channel is closed, the source adds no more keys, and the controller runs on. A panic of f is
// counted and logged; the event then adds no keys to that controller.
func Channel[E any, K comparable](name string, events <-chan E, f func(E) []K) ChannelSource[E, K] {
	if events == nil || f == nil {
		panic("controller: Channel needs a channel and a function")
	}
	return ChannelSource[E, K]{name: name, broadcaster: newBroadcaster(events), keys: f}
}

// When adds predicates that must all pass an event. A predicate that panics counts as passing; the panic is counted and
// logged.
func (s ChannelSource[E, K]) When(predicates ...func(E) bool) ChannelSource[E, K] {
	s.filter = s.filter.when(predicates)
	return s
}

// Unless adds predicates; an event must pass none of them. A predicate that panics counts as not passing.
func (s ChannelSource[E, K]) Unless(predicates ...func(E) bool) ChannelSource[E, K] {
	s.filter = s.filter.unless(predicates)
	return s
}

// WhenAny adds predicates; an event must pass at least one of them. WhenAny without predicates drops every event.
func (s ChannelSource[E, K]) WhenAny(predicates ...func(E) bool) ChannelSource[E, K] {
	s.filter = s.filter.whenAny(predicates)
	return s
}

// String returns the name of the source.
func (s ChannelSource[E, K]) String() string { return s.name }

// NotSynced returns nil, because the source is synced as soon as it begins.
func (s ChannelSource[E, K]) NotSynced() error { return nil }

// Run adds the keys of the channel's events to the sink until ctx ends or the channel is closed; see Source.
func (s ChannelSource[E, K]) Run(ctx context.Context, sink *Sink[K]) error {
	x := &filterRunner[E, K]{filter: s.filter, sink: sink, describe: func(E) string { return "" }}
	l := &listener[E]{tell: func(e E) {
		if x.passes(e) {
			s.add(e, sink)
		}
	}}
	s.broadcaster.join(l)
	defer s.broadcaster.leave(l)
	sink.Synced()
	s.broadcaster.read(ctx)
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

// find returns the keys of an event. It returns no keys if f panics, and does not call f if the source was removed. The
// keys are copies, because the user owns the slice of f.
func (s ChannelSource[E, K]) find(e E, sink *Sink[K]) (keys []K) {
	if sink.Removed() {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			sink.contained("map function", "", api.Recovered(p))
		}
	}()
	return slices.Clone(s.keys(e))
}

// broadcaster distributes the events of a channel to its listeners. It has no goroutine: one listener at a time reads
// the channel for all. When it leaves, another takes over.
type broadcaster[E any] struct {
	events <-chan E
	turn   chan struct{} // has one element while a listener reads

	mu        sync.Mutex // guards the field below
	listeners []*listener[E]
}

type listener[E any] struct {
	tell  func(E)
	calls sync.WaitGroup // of tell, in flight or about to begin
}

func newBroadcaster[E any](events <-chan E) *broadcaster[E] {
	return &broadcaster[E]{events: events, turn: make(chan struct{}, 1)}
}

func (h *broadcaster[E]) join(l *listener[E]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, l)
}

// leave removes a listener. It returns when no call of the listener's function is in flight.
func (h *broadcaster[E]) leave(l *listener[E]) {
	h.mu.Lock()
	h.listeners = slices.DeleteFunc(h.listeners, func(other *listener[E]) bool { return other == l })
	h.mu.Unlock()
	l.calls.Wait()
}

// read returns when ctx has ended or the channel is closed. During its turn it distributes the events.
func (h *broadcaster[E]) read(ctx context.Context) {
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
				return // the next reader will return here too
			}
			h.tell(e)
		case <-ctx.Done():
		}
	}
}

func (h *broadcaster[E]) tell(e E) {
	for _, l := range h.audience() {
		l.hear(e)
	}
}

// audience returns the listeners that get the next event, and makes leave wait for these calls.
func (h *broadcaster[E]) audience() []*listener[E] {
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
