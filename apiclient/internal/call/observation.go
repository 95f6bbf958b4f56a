package call

import (
	"io"
	"sync"
	"time"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

// Observed is an attempt that has ended.
type Observed struct {
	Attempt  int    // 1 for the first attempt
	Code     int    // the status code of the answer; 0 if there is no answer
	Protocol string // of the answer; empty if there is no answer
	Err      error  // a failure, an answer that is not successful, or an incomplete body; nil if the caller ended the body

	Received int64 // bytes of the answer's body before decompression

	Limited time.Duration // time of the limiter's wait
	Head    time.Duration // time from the end of Limited to the head of the answer, or to the error
	Total   time.Duration // time from the end of Limited to the end of the body
}

// observation collects what is Observed. A nil observation does nothing.
type observation struct {
	report func(Observed)
	sent   *secret.Sent // errors must not quote them
	began  time.Time
	body   io.ReadCloser // set before it is read

	mu       sync.Mutex // guards the fields below: a body may be closed while it is read
	reported bool
	Observed
}

// observe begins an observation, or returns nil if there is no hook.
func (s *Sender) observe(c Call, attempt int) *observation {
	if c.Observe == nil {
		return nil
	}
	return &observation{report: c.Observe, sent: s.sent, began: time.Now(), Observed: Observed{Attempt: attempt}}
}

// limited records the duration of the limiter's wait. The other durations begin after it.
func (o *observation) limited(d time.Duration) {
	if o != nil {
		o.Limited, o.began = d, time.Now()
	}
}

// answered records the head of an answer.
func (o *observation) answered(code int, protocol string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Code, o.Protocol, o.Head = code, protocol, time.Since(o.began)
}

// received records bytes of a body.
func (o *observation) received(n int) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Received += int64(n)
}

// bodyFailed records why the body is incomplete.
func (o *observation) bodyFailed(err error) {
	if o == nil || err == nil || err == io.EOF {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Err == nil {
		o.Err = err
	}
}

// failed records the error of an answer that is not successful. It replaces an error of reading the body.
func (o *observation) failed(err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Err = err
}

// end calls the hook, once. An earlier failure wins over err.
func (o *observation) end(err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	reported := o.reported
	o.reported = true
	if o.Total = time.Since(o.began); o.Code == 0 {
		o.Head = o.Total
	}
	if o.Err == nil {
		o.Err = err
	}
	seen := o.Observed
	o.mu.Unlock()
	seen.Err = o.sent.CleanError(seen.Err, nil)
	if !reported {
		o.report(seen)
	}
}

// counted is an observation as the body whose bytes it counts.
type counted observation

// counted returns a body that counts its bytes, or body itself if there is no hook.
func (o *observation) counted(body io.ReadCloser) io.ReadCloser {
	if o == nil {
		return body
	}
	o.body = body
	return (*counted)(o)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	(*observation)(c).received(n)
	return n, err
}

func (c *counted) Close() error { return c.body.Close() }

// opened is the stream of an Opener with an observation.
type opened struct {
	io.ReadCloser
	ended func() error // returns why the caller's context has ended
	seen  *observation
}

func (s *opened) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if ended := s.ended(); err != nil && ended != nil {
		err = ended
	}
	s.seen.received(n)
	s.seen.bodyFailed(err)
	return n, err
}

func (s *opened) Close() error {
	err := s.ReadCloser.Close()
	s.seen.end(nil)
	return err
}
