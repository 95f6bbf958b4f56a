package faultplan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leatproject/leat/internal/quote"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// ErrClosed is the error of Inject after Close.
var ErrClosed = errors.New("faultplan: Active is closed")

// Active are the faults of a server that were injected from text, with the snapshots that they use.
type Active struct {
	server *testserver.Server
	seed   uint64

	mu        sync.Mutex // guards the fields below
	closed    bool
	last      int
	entries   map[int]*entry
	snapshots map[string]*testserver.Snapshot
}

// entry is a fault with its present injection.
type entry struct {
	Fault
	at        *testserver.Snapshot  // nil if the fault needs none, or waits for it
	injection *testserver.Injection // nil before the first injection
	timer     *time.Timer           // nil without times
	seen      int                   // of earlier injections
	active    bool
}

// Status is the state of a fault.
type Status struct {
	ID     int    `json:"id"`
	Fault  string `json:"fault"`
	Seen   int    `json:"seen"`   // effects that reached a client
	Active bool   `json:"active"` // false before after=, after for=, and between two of every=
	// Waiting is the name of the snapshot for which the fault waits.
	Waiting string `json:"waiting,omitempty"`
}

// NewActive returns an empty set of faults. The seed decides about faults with a probability.
func NewActive(server *testserver.Server, seed uint64) *Active {
	return &Active{server: server, seed: seed, entries: map[int]*entry{}, snapshots: map[string]*testserver.Snapshot{}}
}

// InjectAll injects faults in their order. A stale or a restore whose snapshot does not exist yet begins when the
// snapshot is taken. The error is ErrClosed, or that of a fault whose resource has another name on this server. Nothing
// is injected then.
func (a *Active) InjectAll(all []Fault) ([]Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	for _, f := range all {
		// An unknown name is no error, because a definition may come later.
		if right := a.server.MatchFor(f.Match.Resource); right != "" {
			return nil, fmt.Errorf("fault %q: %q never matches; write %s",
				quote.Short(f.String(), maxQuote), quote.Short(f.Match.Resource, maxQuote), right)
		}
	}
	var out []Status
	for _, f := range all {
		a.last++
		e := &entry{Fault: f, at: a.snapshots[f.Snapshot]}
		a.entries[a.last] = e
		// The seed of a fault depends on its number, so that equal faults of a plan decide differently.
		e.Seed = a.seed + uint64(a.last)
		if e.waiting() == "" {
			a.start(e)
		}
		out = append(out, a.status(a.last, e))
	}
	return out, nil
}

// waiting returns the name of the snapshot for which a fault waits, or an empty text.
func (e *entry) waiting() string {
	if e.at != nil {
		return ""
	}
	return e.Snapshot
}

// start injects a fault now, or after its delay. The caller holds the lock.
func (a *Active) start(e *entry) {
	if e.After > 0 {
		e.timer = time.AfterFunc(e.After, func() { a.begin(e) })
	} else {
		a.inject(e)
	}
}

// begin injects a fault when its time has come.
func (a *Active) begin(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.timer != nil {
		a.inject(e)
	}
}

// inject injects a fault now. The caller holds the lock.
func (a *Active) inject(e *entry) {
	f := e.Fault.Fault
	at := e.at
	if at == nil {
		at = a.server.Snapshot()
	}
	switch f.Effect.(type) {
	case faults.Stale:
		f.Effect = faults.Stale{At: at}
	case faults.Restore:
		f.Effect = faults.Restore{To: at}
	}
	a.finish(e)
	e.injection, e.active = a.server.Inject(f), true
	e.timer = nil
	switch {
	case e.For > 0:
		e.timer = time.AfterFunc(e.For, func() { a.pause(e) })
	case e.Every > 0:
		e.timer = time.AfterFunc(e.Every, func() { a.begin(e) })
	}
}

// pause removes a fault until its next time.
func (a *Active) pause(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.timer == nil {
		return
	}
	a.finish(e)
	e.timer = nil
	if e.Every > 0 {
		e.timer = time.AfterFunc(e.Every-e.For, func() { a.begin(e) })
	}
}

// finish removes the present injection of a fault. The caller holds the lock.
func (a *Active) finish(e *entry) {
	if e.injection != nil {
		e.injection.Remove()
		e.seen += e.injection.Seen()
	}
	e.injection, e.active = nil, false
}

// stop ends a fault. The caller holds the lock.
func (a *Active) stop(e *entry) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	a.finish(e)
}

// Remove ends a fault. It returns false if there is no such fault.
func (a *Active) Remove(id int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[id]
	if ok {
		a.stop(e)
		delete(a.entries, id)
	}
	return ok
}

// RemoveAll ends all faults.
func (a *Active) RemoveAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.entries {
		a.stop(e)
	}
	clear(a.entries)
}

// Close ends all faults, and those that would come later.
func (a *Active) Close() {
	a.RemoveAll()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// List returns the faults in the order of their injection.
func (a *Active) List() []Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []Status{}
	for _, id := range slices.Sorted(maps.Keys(a.entries)) {
		out = append(out, a.status(id, a.entries[id]))
	}
	return out
}

func (a *Active) status(id int, e *entry) Status {
	s := Status{ID: id, Fault: e.String(), Seen: e.seen, Active: e.active, Waiting: e.waiting()}
	if e.injection != nil {
		s.Seen += e.injection.Seen()
	}
	return s
}

// Plan returns the present faults and the seed. A new server with the same plan and the same requests fails in the same
// way, if no fault was removed before.
func (a *Active) Plan() Plan {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := Plan{Seed: a.seed}
	for _, id := range slices.Sorted(maps.Keys(a.entries)) {
		p.Faults = append(p.Faults, a.entries[id].Fault)
	}
	return p
}

// TakeSnapshot gives the present state a name, which stale and restore use. Faults that wait for it begin. An earlier
// snapshot of the name is replaced; faults that use it keep it.
func (a *Active) TakeSnapshot(name string) *testserver.Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.server.Snapshot()
	a.snapshots[name] = taken
	for _, id := range slices.Sorted(maps.Keys(a.entries)) {
		if e := a.entries[id]; e.waiting() == name {
			e.at = taken
			a.start(e)
		}
	}
	return taken
}

// Snapshots returns the resource versions of the snapshots by name.
func (a *Active) Snapshots() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]string{}
	for name, s := range a.snapshots {
		out[name] = s.ResourceVersion()
	}
	return out
}
