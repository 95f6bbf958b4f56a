package testserver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Fault is a way in which the server misbehaves on demand.
type Fault struct {
	// Match picks the requests, watch frames or list items that are affected; the zero Match picks all of them.
	Match Match
	// Skip lets so many of them through first.
	Skip int
	// Times is how many are affected after that. Zero means all of them until the injection is removed.
	Times int
	// Effect is what happens to them.
	Effect Effect
}

// Match picks what a fault affects. Every field that is set must agree.
type Match struct {
	Verbs     []string // "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
	Resource  string   // "pods", "deployments.apps"
	UserAgent string   // how the User-Agent begins
	// Namespace and Name are the object's for effects on watch frames and list items, and the request's otherwise.
	Namespace, Name string
	// Frames picks watch frames, or list items, by what they are. Effects on frames pick all frames of watches when it
	// is empty.
	Frames []FrameType
	// Func is asked last.
	Func func(Request) bool
}

// FrameType is what a frame of a watch is.
type FrameType string

// The frames of a watch, and the items of a list.
const (
	FrameAdded            FrameType = "ADDED"
	FrameModified         FrameType = "MODIFIED"
	FrameDeleted          FrameType = "DELETED"
	FrameBookmark         FrameType = "BOOKMARK"           // one that does not end an initial list
	FrameInitialEventsEnd FrameType = "INITIAL-EVENTS-END" // the bookmark that does
	FrameItem             FrameType = "ITEM"               // of a list
)

func (m Match) request(r Request) bool {
	switch {
	case len(m.Verbs) > 0 && !slices.Contains(m.Verbs, r.Verb),
		m.Resource != "" && m.Resource != r.resourceName(),
		m.UserAgent != "" && !strings.HasPrefix(r.UserAgent, m.UserAgent):
		return false
	}
	return m.Func == nil || m.Func(r)
}

func (m Match) place(namespace, name string) bool {
	return (m.Namespace == "" || m.Namespace == namespace) && (m.Name == "" || m.Name == name)
}

func (m Match) frame(f frame) bool {
	if len(m.Frames) == 0 {
		if f.kind == FrameItem {
			return false
		}
	} else if !slices.Contains(m.Frames, f.kind) {
		return false
	}
	return m.place(f.key.Namespace, f.key.Name)
}

// Injection is a fault at work.
type Injection struct {
	fault   Fault
	faults  *faults
	removed chan struct{}

	mu      sync.Mutex // guards the fields below
	gone    bool
	matched int
	applied int
	seen    int
	changed signal

	version uint64 // of a Compact or a Restore: the server's when it happened
}

// Fault returns what was injected.
func (i *Injection) Fault() Fault { return i.fault }

// Seen counts the effects that clients were really exposed to: an answer that failed, a frame that was dropped, a 410
// because of a compaction. A fault that nothing has met yet counts zero.
func (i *Injection) Seen() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen
}

// Wait blocks until Seen is at least n; it returns the cause of ctx if that ends first.
func (i *Injection) Wait(ctx context.Context, n int) error {
	for {
		i.mu.Lock()
		enough, changed := i.seen >= n, i.changed.wait()
		i.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Remove ends the fault: what it stalled or held back goes on. Removing twice does nothing.
func (i *Injection) Remove() {
	i.mu.Lock()
	if i.gone {
		i.mu.Unlock()
		return
	}
	i.gone = true
	close(i.removed)
	i.mu.Unlock()
	i.faults.drop(i)
}

// see counts one effect; a nil injection counts nothing.
func (i *Injection) see() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen++
	i.changed.fire()
}

// claim tells whether the fault affects one more thing that it matches.
func (i *Injection) claim() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.matched++
	if i.gone || i.matched <= i.fault.Skip || i.fault.Times > 0 && i.applied >= i.fault.Times {
		return false
	}
	i.applied++
	return true
}

// faults are the injections at work, oldest first.
type faults struct {
	server *Server
	busy   atomic.Bool // whether there is any: the common case costs one load

	mu      sync.Mutex // guards the fields below
	active  []*Injection
	changed signal
}

func newFaults(s *Server) *faults { return &faults{server: s} }

// Inject starts a fault, and for Disconnect, Compact, Restore and Outage makes it happen at once. It panics if the
// fault has no effect.
func (s *Server) Inject(f Fault) *Injection {
	if f.Effect == nil {
		panic("testserver: inject: a fault needs an effect")
	}
	i := &Injection{fault: f, faults: s.faults, removed: make(chan struct{})}
	if now, ok := f.Effect.(immediate); ok {
		now.happen(s, i)
	}
	s.faults.mu.Lock()
	s.faults.active = append(s.faults.active, i)
	s.faults.busy.Store(true)
	s.faults.changed.fire()
	s.faults.mu.Unlock()
	return i
}

// Heal removes every fault.
func (s *Server) Heal() {
	for _, i := range s.faults.list() {
		i.Remove()
	}
}

func (f *faults) drop(i *Injection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = slices.DeleteFunc(slices.Clone(f.active), func(o *Injection) bool { return o == i })
	f.busy.Store(len(f.active) > 0)
	f.changed.fire()
}

// list returns the injections at work. The slice is never changed in place.
func (f *faults) list() []*Injection {
	if !f.busy.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.active)
}

// changes returns a channel that closes when an injection comes or goes.
func (f *faults) changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed.wait()
}

// requestFault finds the first injection with an effect of type E that affects a request.
func requestFault[E Effect](f *faults, r Request) (E, *Injection) {
	return find[E](f, func(m Match) bool { return m.request(r) && m.place(r.Namespace, r.Name) })
}

// frameFault finds the first injection with an effect of type E that affects a frame of a request's answer.
func frameFault[E Effect](f *faults, r Request, fr frame) (E, *Injection) {
	return find[E](f, func(m Match) bool { return m.request(r) && m.frame(fr) })
}

func find[E Effect](f *faults, matches func(Match) bool) (E, *Injection) {
	for _, i := range f.list() {
		if e, ok := i.fault.Effect.(E); ok && matches(i.fault.Match) && i.claim() {
			return e, i
		}
	}
	var none E
	return none, nil
}
