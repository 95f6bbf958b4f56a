package testserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/pipe"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

var errCut = errors.New("testserver: a fault cut the answer")

// disturb applies the faults that affect requests. It returns the writer for the answer, or nil if a fault has
// answered.
func (s *Server) disturb(w http.ResponseWriter, r *http.Request, request Request) http.ResponseWriter {
	if !s.faults.busy.Load() {
		return w
	}
	if e, i := requestFault[Delay](s.faults, request); i != nil {
		i.countSeen()
		if !pause(r.Context(), e.For) {
			panic(http.ErrAbortHandler) // the client has gone
		}
	}
	stall, stalled := requestFault[Stall](s.faults, request)
	if stalled != nil && stall.After <= 0 {
		stalled.countSeen()
		if !stalled.waitRemoved(r.Context()) {
			panic(http.ErrAbortHandler) // as above
		}
		stalled = nil
	}
	if _, i := requestFault[Reset](s.faults, request); i != nil {
		i.countSeen()
		pipe.ResetRequest(r)
	}
	if e, i := requestFault[Fail](s.faults, request); i != nil {
		i.countSeen()
		e.answer(w, request)
		return nil
	}
	cut, cutting := requestFault[Cut](s.faults, request)
	if stalled == nil && cutting == nil {
		return w
	}
	return &disturbedWriter{ResponseWriter: w, r: r, stall: stall, stalled: stalled, cut: cut, cutting: cutting}
}

// pause waits for the duration d and returns true, or returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// waitRemoved waits until the injection is removed and returns true, or returns false if ctx ends first.
func (i *Injection) waitRemoved(ctx context.Context) bool {
	select {
	case <-i.removed:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e Fail) answer(w http.ResponseWriter, r Request) {
	code := cmp.Or(e.Code, http.StatusInternalServerError)
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	seconds := int(e.RetryAfter / time.Second)
	if e.Body != nil {
		if seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
		w.WriteHeader(code)
		_, _ = w.Write(e.Body) // an error means that the client has gone
		return
	}
	status := apierrors.NewGenericServerResponse(code, r.Verb, schema.GroupResource{Group: r.Group, Resource: r.Resource},
		r.Name, cmp.Or(e.Message, "a fault was injected"), seconds, true).Status()
	if e.Message != "" {
		status.Message = e.Message
	}
	if e.Reason != "" {
		status.Reason = e.Reason
	}
	wire.WriteStatus(w, status)
}

// disturbedWriter stalls or cuts an answer at a byte.
type disturbedWriter struct {
	http.ResponseWriter
	r       *http.Request
	written int
	stall   Stall
	stalled *Injection
	cut     Cut
	cutting *Injection
	ended   bool
}

// Unwrap gives http.ResponseController access to the connection.
func (d *disturbedWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// Hijack returns the connection for a WebSocket. Only faults that affect frames apply to it.
func (d *disturbedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(d.ResponseWriter).Hijack()
}

func (d *disturbedWriter) Write(p []byte) (int, error) {
	total := 0
	for {
		if d.ended {
			return total, errCut
		}
		next := len(p)
		if d.stalled != nil {
			next = min(next, max(d.stall.After-d.written, 0))
		}
		if d.cutting != nil {
			next = min(next, max(d.cut.After-d.written, 0))
		}
		n, err := d.ResponseWriter.Write(p[:next])
		d.written += n
		total += n
		p = p[n:]
		if err != nil || len(p) == 0 {
			return total, err
		}
		if err := d.applyFault(); err != nil {
			return total, err
		}
	}
}

// applyFault applies the fault whose byte was reached.
func (d *disturbedWriter) applyFault() error {
	_ = http.NewResponseController(d.ResponseWriter).Flush() // the bytes before the fault must arrive
	if d.stalled != nil && d.written >= d.stall.After {
		i := d.stalled
		d.stalled = nil
		i.countSeen()
		if !i.waitRemoved(d.r.Context()) {
			d.ended = true
		}
		return nil
	}
	d.ended = true
	d.cutting.countSeen()
	if d.cut.Abrupt {
		pipe.ResetRequest(d.r)
	}
	return errCut
}

// refuses reports whether an Outage refuses connections.
func (f *faults) refuses() bool {
	_, i := find[Outage](f, func(Match) bool { return true })
	i.countSeen()
	return i != nil
}

// stale returns the old state that a Stale fault prescribes for a request. It decides once for each request.
func (f *faults) stale(x *call) (store.View, bool) {
	if !x.staleDecided {
		x.staleDecided = true
		e, i := requestFault[Stale](f, x.request)
		if i != nil && e.At != nil {
			x.stale = i
			f.server.store.Lock()
			if e.At.state.Version() < f.server.store.Version() {
				i.countSeen()
			}
			f.server.store.Unlock()
		}
	}
	if x.stale == nil {
		return store.View{}, false
	}
	select {
	case <-x.stale.removed:
		return store.View{}, false
	default:
	}
	return x.stale.fault.Effect.(Stale).At.state.View(x.def.GroupResource()), true
}

// newestVisible returns the newest version that a watch may send.
func (f *faults) newestVisible(x *call) uint64 {
	if v, ok := f.stale(x); ok {
		return v.Version
	}
	return math.MaxUint64
}

func (f *faults) refusesWatchList(x *call, o metav1.ListOptions) bool {
	if o.SendInitialEvents == nil {
		return false
	}
	_, i := requestFault[RefuseWatchList](f, x.request)
	i.countSeen()
	return i != nil
}

func (f *faults) ignoresLimit(x *call) bool {
	_, i := requestFault[IgnoreLimit](f, x.request)
	i.countSeen()
	return i != nil
}

func (f *faults) endless(x *call, items int) bool {
	if items == 0 {
		return false
	}
	_, i := requestFault[EndlessList](f, x.request)
	i.countSeen()
	return i != nil
}

// countExpired counts a 410 for the compactions that caused it.
func (f *faults) countExpired(version uint64) {
	for _, i := range f.list() {
		if _, ok := i.fault.Effect.(Compact); ok && version < i.version {
			i.countSeen()
		}
	}
}

// countPast counts a read of a version that is older than one that the server had before a Restore.
func (f *faults) countPast(version uint64) {
	for _, i := range f.list() {
		if _, ok := i.fault.Effect.(Restore); ok && version < i.version {
			i.countSeen()
		}
	}
}

// items returns the items that replace an item of a list: usually the item itself.
func (f *faults) items(x *call, key api.Key, item []byte) [][]byte {
	one := [][]byte{item}
	if !f.busy.Load() {
		return one
	}
	fr := frame{kind: FrameItem, key: key}
	if _, i := frameFault[DropEvent](f, x.request, fr); i != nil {
		i.countSeen()
		return nil
	}
	if mangled, i := f.malformed(x.request, fr, item); i != nil {
		i.countSeen()
		one[0] = mangled
	}
	if _, i := frameFault[DuplicateEvent](f, x.request, fr); i != nil {
		i.countSeen()
		return [][]byte{one[0], one[0]}
	}
	return one
}

// malformed returns the JSON of an object after a Malform fault, or unchanged.
func (f *faults) malformed(r Request, fr frame, body []byte) ([]byte, *Injection) {
	e, i := find[Malform](f, func(m Match) bool {
		if len(m.Frames) == 0 {
			switch fr.kind {
			case FrameBookmark, FrameInitialEventsEnd:
				return false
			}
			return m.request(r) && m.object(fr.key.Namespace, fr.key.Name)
		}
		return m.request(r) && m.frame(fr)
	})
	if i == nil {
		return body, nil
	}
	if e.Mangle != nil {
		return e.Mangle(bytes.Clone(body)), i
	}
	return mangle(body), i
}

// mangle gives every field of an object a wrong type, except kind, apiVersion and metadata.
func mangle(body []byte) []byte {
	tree, err := object.Decode(body)
	if err != nil {
		return body
	}
	for name, value := range tree {
		switch name {
		case "kind", "apiVersion", "metadata":
			continue
		}
		if _, ok := value.(int64); ok {
			tree[name] = "malformed"
		} else {
			tree[name] = int64(7)
		}
	}
	object.SetDefault(tree, "spec", int64(7))
	out, err := json.Marshal(tree)
	if err != nil {
		return body
	}
	return out
}
