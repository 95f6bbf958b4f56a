package testserver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/testserver/internal/signal"
)

// Fault is a failure of the server that a test requests.
type Fault struct {
	// Match selects the affected requests, watch frames or list items. The zero Match selects all.
	Match Match
	// Skip is the number of matches that pass unharmed first.
	Skip int
	// Times is the number of matches that are affected after that. Zero means all until the injection is removed.
	Times int
	// Effect is the failure itself.
	Effect Effect
}

// Match selects what a fault affects. Every field that is set must match.
type Match struct {
	Verbs     []string // "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
	Resource  string   // "pods", "deployments.apps", each with all subresources; or one: "deployments.apps/status"
	UserAgent string   // a prefix of the User-Agent header
	// Namespace and Name are those of the object for effects on watch frames and list items. For other effects, they
	// are those of the request.
	Namespace, Name string
	// Frames are the types of the affected watch frames or list items. If it is empty, effects on frames affect all
	// frames of watches.
	Frames []FrameType
	// Func is called for requests that match Verbs, Resource and UserAgent, before Namespace, Name and Frames are
	// compared. It must be safe for concurrent use.
	Func func(Request) bool
}

// FrameType is the type of a watch frame or of a list item.
type FrameType string

// The types of watch frames, and of the items of a list.
const (
	FrameAdded            FrameType = "ADDED"
	FrameModified         FrameType = "MODIFIED"
	FrameDeleted          FrameType = "DELETED"
	FrameBookmark         FrameType = "BOOKMARK"           // a bookmark that does not end an initial list
	FrameInitialEventsEnd FrameType = "INITIAL-EVENTS-END" // the bookmark that ends an initial list
	FrameItem             FrameType = "ITEM"               // an item of a list
)

func (m Match) request(r Request) bool {
	switch {
	case len(m.Verbs) > 0 && !slices.Contains(m.Verbs, r.Verb),
		m.Resource != "" && m.Resource != r.resourceName() && m.Resource != r.resourceName()+"/"+r.Subresource,
		m.UserAgent != "" && !strings.HasPrefix(r.UserAgent, m.UserAgent):
		return false
	}
	return m.Func == nil || m.Func(r)
}

func (m Match) object(namespace, name string) bool {
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
	return m.object(f.key.Namespace, f.key.Name)
}

// Injection is an active fault. All methods may be called on any goroutine.
type Injection struct {
	fault   Fault
	faults  *faults
	removed chan struct{}

	mu        sync.Mutex // guards the fields below
	isRemoved bool
	matched   int
	applied   int
	seen      int
	changed   signal.Signal

	version uint64 // of a Compact or a Restore: the version of the server when it happened
}

// Fault returns the fault that was passed to Inject.
func (i *Injection) Fault() Fault { return i.fault }

// Seen returns the number of effects that reached a client: a failed answer, a missing frame, a 410 because of a
// compaction. It is zero if no request has met the fault yet.
func (i *Injection) Seen() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen
}

// Wait blocks until Seen is at least n. If ctx ends first, it returns the cause of ctx.
func (i *Injection) Wait(ctx context.Context, n int) error {
	for {
		i.mu.Lock()
		enough, changed := i.seen >= n, i.changed.Wait()
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

// Remove ends the fault. Stalled answers and delayed frames continue. A second call does nothing.
func (i *Injection) Remove() {
	i.mu.Lock()
	if i.isRemoved {
		i.mu.Unlock()
		return
	}
	i.isRemoved = true
	close(i.removed)
	i.mu.Unlock()
	i.faults.drop(i)
}

// countSeen counts one effect. With a nil injection it does nothing.
func (i *Injection) countSeen() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen++
	i.changed.Fire()
}

// claim counts one match and reports whether the fault affects it.
func (i *Injection) claim() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.matched++
	if i.isRemoved || i.matched <= i.fault.Skip || i.fault.Times > 0 && i.applied >= i.fault.Times {
		return false
	}
	i.applied++
	return true
}

// faults are the active injections, oldest first.
type faults struct {
	server *Server
	busy   atomic.Bool // whether a fault is active; without faults a request costs only this load

	mu      sync.Mutex // guards the fields below
	active  []*Injection
	changed signal.Signal
}

func newFaults(s *Server) *faults { return &faults{server: s} }

// Inject activates a fault. Disconnect, Compact, Restore and Outage happen during the call. It panics if the fault has
// no effect.
func (s *Server) Inject(f Fault) *Injection {
	if f.Effect == nil {
		panic("testserver: inject: Fault.Effect is nil")
	}
	i := &Injection{fault: f, faults: s.faults, removed: make(chan struct{})}
	if now, ok := f.Effect.(immediate); ok {
		now.happen(s, i)
	}
	s.faults.mu.Lock()
	s.faults.active = append(s.faults.active, i)
	s.faults.busy.Store(true)
	s.faults.changed.Fire()
	s.faults.mu.Unlock()
	return i
}

// Heal removes all faults.
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
	f.changed.Fire()
}

// list returns the active injections. The slice never changes.
func (f *faults) list() []*Injection {
	if !f.busy.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.active)
}

// changes returns a channel that closes when a fault is injected or removed.
func (f *faults) changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed.Wait()
}

// requestFault returns the first injection with an effect of type E that affects a request, or nil.
func requestFault[E Effect](f *faults, r Request) (E, *Injection) {
	return find[E](f, func(m Match) bool { return m.request(r) && m.object(r.Namespace, r.Name) })
}

// frameFault returns the first injection with an effect of type E that affects a frame or an item of a request's
// answer, or nil.
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
