package shard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leatproject/leat/api/hashrange"
)

// ErrLost is the cause of the context of work whose ranges this replica does not hold any more, and is in the error of
// a request that Fence refused.
var ErrLost = errors.New("shard: the lease of this replica is lost")

// tenure is the time from a join to the loss of the Lease. Work of one tenure is not valid in the next. The lock of the
// member guards its fields.
type tenure struct {
	deadline time.Time // start of the last successful renewal, and RenewDeadline
	lost     bool
}

// valid reads the clock, because a process that was stopped may not have noticed yet that its time is over.
func (t *tenure) valid() bool { return t != nil && !t.lost && time.Now().Before(t.deadline) }

// work is a reconcile that runs. The context of the reconcile contains it.
type work struct {
	member *Member
	tenure *tenure
	hash   uint64
	cancel context.CancelCauseFunc
	outer  *work // the work, usually of another group, whose context Begin got; or nil
}

type workKey struct{}

// Begin reports whether work on an object with a hash may begin. If so, the caller must call end when the work has
// ended, because until then no other replica gets the range. The context ends with ctx and when the lease is lost; its
// cause is ErrLost in the second case. Begin does not block. Kind.Reconciler calls it for a controller.
func (m *Member) Begin(ctx context.Context, hash uint64) (working context.Context, end func(), ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.admits(hash) {
		return ctx, func() {}, false
	}
	outer, _ := ctx.Value(workKey{}).(*work) // or nil
	w := &work{member: m, tenure: m.tenure, hash: hash, outer: outer}
	working, w.cancel = context.WithCancelCause(context.WithValue(ctx, workKey{}, w))
	m.works[w] = struct{}{}
	return working, w.end, true
}

// end records that the work has ended. If a range waits for that, Run goes on.
func (w *work) end() {
	w.cancel(nil)
	m := w.member
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, w)
	if w.tenure.lost || !m.admitted.Contains(w.hash) {
		m.wakeUp()
	}
}

// valid reports whether the work may still write.
func (w *work) valid() bool {
	w.member.mu.Lock()
	defer w.member.mu.Unlock()
	return w.member.isValid(w.tenure)
}

// busy reports whether work runs in a range. The caller holds the lock.
func (m *Member) busy(r hashrange.Range) bool {
	for w := range m.works {
		if r.Contains(w.hash) {
			return true
		}
	}
	return false
}

// Valid returns nil if the work that ctx belongs to may still write, or an error that matches ErrLost. It reads the
// clock, so it is correct even if the process was stopped and the context has not ended yet. It returns nil if ctx does
// not come from Begin. Work that began inside other work needs both leases.
func Valid(ctx context.Context) error {
	w, _ := ctx.Value(workKey{}).(*work) // or nil
	for ; w != nil; w = w.outer {
		if !w.valid() {
			return ErrLost
		}
	}
	return nil
}

// Fence returns a transport that refuses writes of work whose lease is lost; see Valid. It is for WrapTransport of
// apiclient.Config. A request whose context does not come from Begin passes, and so does a read.
func Fence(next http.RoundTripper) http.RoundTripper { return fence{next} }

type fence struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := Valid(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // a RoundTripper must close it, and the error of Valid is the one to report
			}
			return nil, fmt.Errorf("%s %s refused: %w", r.Method, r.URL.Path, err)
		}
	}
	return f.next.RoundTrip(r)
}

// owns reports whether work on an object with a hash may begin now. It reads the clock.
func (m *Member) owns(hash uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admits(hash)
}

// admits reports whether work on an object with a hash may begin now. The caller holds the lock.
func (m *Member) admits(hash uint64) bool { return m.isValid(m.tenure) && m.admitted.Contains(hash) }

// isValid reports whether a tenure is valid. If its deadline has passed, isValid ends it, also if an answer extends the
// deadline later: the key of refused work is dropped, and only a follower that gets the range again adds it. The caller
// holds the lock.
func (m *Member) isValid(t *tenure) bool {
	if t.valid() {
		return true
	}
	if t != nil && t == m.tenure {
		m.lose()
	}
	return false
}
