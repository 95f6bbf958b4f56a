package apiclient

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
)

// Request is one sending of a request that has ended, with its answer: what Config.OnRequest is told, for metrics and
// traces. A call that was sent three times makes three, and so do the second and third of them make two retries.
// It corresponds to the metrics of client-go's tools/metrics: latency, sizes, results, retries, rate limiter.
type Request struct {
	Verb        string       // "get", "list", "watch", "create", "update", "patch", "apply", "delete", "delete all"
	Method      string       // of HTTP
	Host        string       // of the server, with its port if it names one
	Path        string       // below the server's own
	Resource    api.Resource // zero for a document
	Subresource string

	Attempt  int    // 1 for the first
	Code     int    // of the answer; 0 without one
	Protocol string // of the answer: "HTTP/1.1", "HTTP/2.0", "WebSocket"; "" without one
	// Err is what the attempt ended with: a failure, an answer that is no success, a body that broke off. It is nil for a
	// watch that the server or the caller ended, and it says nothing of an answer that could not be decoded.
	Err error

	Sent     int64 // bytes of the request's body
	Received int64 // bytes of the answer's body as they came, compressed if they were; of a WebSocket, of its messages

	Limited time.Duration // spent waiting for Config.Limiter, before all else
	Head    time.Duration // from there to the head of the answer, or to the failure without one
	Total   time.Duration // from there to the end of the body
}

// observation is what becomes a Request. A nil one observes nothing, and costs nothing.
type observation struct {
	tell  func(Request)
	sent  *sentSecrets // which no error may quote
	began time.Time

	mu   sync.Mutex // guards the fields below: a body may be closed while it is read
	said bool
	Request
}

// observe begins an observation if anybody wants it.
func (c *Client) observe(r request, attempt int) *observation {
	if c.onRequest == nil {
		return nil
	}
	return &observation{tell: c.onRequest, sent: c.credentials.sent, began: time.Now(), Request: Request{
		Verb: r.verb, Method: r.method, Host: c.base.Host, Path: r.path, Resource: r.resource, Subresource: r.subresource,
		Attempt: attempt, Sent: int64(len(r.body)),
	}}
}

// limited notes how long the limiter took; everything else is counted from here.
func (o *observation) limited(d time.Duration) {
	if o != nil {
		o.Limited, o.began = d, time.Now()
	}
}

// answered notes the head of an answer.
func (o *observation) answered(code int, protocol string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Code, o.Protocol, o.Head = code, protocol, time.Since(o.began)
}

// came notes how much came of a body.
func (o *observation) came(n int) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Received += int64(n)
}

// broke notes what kept the rest of a body from coming, if anything did.
func (o *observation) broke(err error) {
	if o == nil || err == nil || err == io.EOF {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Err == nil {
		o.Err = err
	}
}

// failed notes what an answer came to that is no success, whatever kept a part of it from coming.
func (o *observation) failed(err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Err = err
}

// ended tells what was observed, once. A failure that was noted before is the one that counts.
func (o *observation) ended(err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	said := o.said
	o.said = true
	if o.Total = time.Since(o.began); o.Code == 0 {
		o.Head = o.Total
	}
	if o.Err == nil {
		o.Err = err
	}
	r := o.Request
	o.mu.Unlock()
	r.Err = o.sent.cleanError(r.Err)
	if !said {
		o.tell(r)
	}
}

// isSuccess tells whether an answer has what was asked for.
func isSuccess(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode < 300 }

// counted is a body whose bytes are counted.
type counted struct {
	io.ReadCloser
	seen *observation
}

// counted counts the bytes of a body, if anybody wants to know.
func (o *observation) counted(body io.ReadCloser) io.ReadCloser {
	if o == nil {
		return body
	}
	return counted{body, o}
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.seen.came(n)
	return n, err
}

// opened is the stream of an Opener, observed.
type opened struct {
	io.ReadCloser
	givenUp func() error // of the watch's context
	seen    *observation
}

func (s *opened) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if givenUp := s.givenUp(); err != nil && givenUp != nil {
		err = givenUp
	}
	s.seen.came(n)
	s.seen.broke(err)
	return n, err
}

func (s *opened) Close() error {
	err := s.ReadCloser.Close()
	s.seen.ended(nil)
	return err
}
