package call

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/apiclient/internal/transport"
)

// beginningTimeout bounds the time in which Beginning reads.
const beginningTimeout = 10 * time.Second

// body is the body of an answer. Its Close also releases the request's context.
type body struct {
	io.ReadCloser
	ended   func() error // returns why the caller's context has ended
	lease   transport.Lease
	closed  atomic.Bool
	aborted atomic.Bool
	seen    *observation
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil { // even io.EOF: a connection that the context closed may look like one that ended
		if ended := b.ended(); ended != nil {
			err = ended
		} else if err != io.EOF {
			err = transport.AsError(err)
		}
	}
	if !b.aborted.Load() { // after an abort, the error is not the server's
		b.seen.bodyFailed(err)
	}
	return n, err
}

// abort ends a running Read. Close is still needed.
func (b *body) abort() {
	b.aborted.Store(true)
	b.lease.Cancel()
}

func (b *body) Close() error {
	b.lease.Cancel()
	err := b.ReadCloser.Close()
	if !b.closed.Swap(true) {
		b.lease.Release()
		b.seen.end(nil)
	}
	return err
}

// Beginning reads at most limit bytes of an answer. It stops after a time limit, because the answer may never end.
func Beginning(answer io.ReadCloser, limit int64) []byte {
	if b, ok := answer.(*body); ok {
		timer := time.AfterFunc(beginningTimeout, b.abort)
		defer timer.Stop()
	}
	b, _ := io.ReadAll(io.LimitReader(answer, limit)) // a partial body is still useful
	return b
}
