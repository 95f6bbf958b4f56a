package disturb

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/wire"
)

var errCut = errors.New("testserver: a fault cut the answer")

// Disturb applies the faults that affect requests. It returns the writer for the answer, or nil if a fault has
// answered.
func (p *Plan) Disturb(w http.ResponseWriter, t Target) http.ResponseWriter {
	if !p.Busy() {
		return w
	}
	r := t.HTTP
	if e, i := Request[faults.Delay](p, t); i != nil {
		i.CountSeen()
		if !pause(r.Context(), e.For) {
			panic(http.ErrAbortHandler) // the client has gone
		}
	}
	stall, stalled := Request[faults.Stall](p, t)
	if stalled != nil && stall.After <= 0 {
		stalled.CountSeen()
		if !stalled.waitRemoved(r.Context()) {
			panic(http.ErrAbortHandler) // as above
		}
		stalled = nil
	}
	if _, i := Request[faults.Reset](p, t); i != nil {
		i.CountSeen()
		pipe.ResetRequest(r)
	}
	if e, i := Request[faults.Fail](p, t); i != nil {
		i.CountSeen()
		fail(w, t, e)
		return nil
	}
	cut, cutting := Request[faults.Cut](p, t)
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

// fail answers with an error.
func fail(w http.ResponseWriter, r Target, e faults.Fail) {
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
	stall   faults.Stall
	stalled *Injection
	cut     faults.Cut
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
		i.CountSeen()
		if !i.waitRemoved(d.r.Context()) {
			panic(http.ErrAbortHandler) // the answer must not look complete if only the request was ended
		}
		return nil
	}
	d.ended = true
	d.cutting.CountSeen()
	if d.cut.Abrupt {
		pipe.ResetRequest(d.r)
	}
	return errCut
}
