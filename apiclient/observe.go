package apiclient

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
)

// Request is a request that was sent, with its answer. Config.OnRequest gets it, for metrics and traces. If a call was
// sent three times, there are three Requests, and the second and the third are retries. It corresponds to the metrics
// of client-go's tools/metrics: latency, sizes, results, retries, rate limiter.
type Request struct {
	Verb        string       // "get", "list", "watch", "create", "update", "patch", "apply", "delete", "delete all"
	Method      string       // the HTTP method
	Host        string       // the server's host, with its port if the URL has one
	Path        string       // relative to Config.Host
	Resource    api.Resource // zero for a document
	Subresource string

	Attempt  int    // 1 for the first attempt
	Code     int    // the status code of the answer; 0 if there is no answer
	Protocol string // of the answer: "HTTP/1.1", "HTTP/2.0", "WebSocket"; empty if there is no answer
	// Err is the error of the attempt: a failure, an answer that is not successful, or an incomplete body. It is nil
	// for a watch that the server or the caller ended. It does not include errors of decoding.
	Err error

	Sent     int64 // size of the request's body in bytes
	Received int64 // bytes of the answer's body before decompression; for a WebSocket, bytes of its messages

	Limited time.Duration // time of the wait for Config.Limiter, before the request
	Head    time.Duration // time from the end of Limited to the head of the answer, or to the error
	Total   time.Duration // time from the end of Limited to the end of the body
}

// observation collects the fields of a Request. A nil observation does nothing.
type observation struct {
	onRequest func(Request)
	sent      *sentSecrets // errors must not quote them
	began     time.Time

	mu       sync.Mutex // guards the fields below: a body may be closed while it is read
	reported bool
	Request
}

// observe begins an observation, or returns nil if there is no hook.
func (c *Client) observe(r request, attempt int) *observation {
	if c.onRequest == nil {
		return nil
	}
	return &observation{onRequest: c.onRequest, sent: c.credentials.sent, began: time.Now(), Request: Request{
		Verb: r.verb, Method: r.method, Host: c.base.Host, Path: r.path, Resource: r.resource, Subresource: r.subresource,
		Attempt: attempt, Sent: int64(len(r.body)),
	}}
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

// ended calls the hook, once. An earlier failure wins over err.
func (o *observation) ended(err error) {
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
	r := o.Request
	o.mu.Unlock()
	r.Err = o.sent.cleanError(r.Err)
	if !reported {
		o.onRequest(r)
	}
}

// isSuccess reports whether an answer has a status of success.
func isSuccess(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode < 300 }

// counted is a body whose bytes are counted.
type counted struct {
	io.ReadCloser
	seen *observation
}

// counted returns a body that counts its bytes, or body itself if there is no hook.
func (o *observation) counted(body io.ReadCloser) io.ReadCloser {
	if o == nil {
		return body
	}
	return counted{body, o}
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.seen.received(n)
	return n, err
}

// opened is the stream of an Opener with an observation.
type opened struct {
	io.ReadCloser
	givenUp func() error // returns the error of the watch's context
	seen    *observation
}

func (s *opened) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if givenUp := s.givenUp(); err != nil && givenUp != nil {
		err = givenUp
	}
	s.seen.received(n)
	s.seen.bodyFailed(err)
	return n, err
}

func (s *opened) Close() error {
	err := s.ReadCloser.Close()
	s.seen.ended(nil)
	return err
}
