package apiclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/internal/quote"
)

// request is a call with its operation.
type request struct {
	client *Client
	verb   string // for errors: "list"
	target string // for errors: "pods", "pods default/web"
	call.Call

	resource    api.Resource // for Config.OnRequest, like the next field
	subresource string
}

// fail wraps an error with the operation, once. It removes credentials from its text, and shortens a long text.
func (r *request) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", r.verb, quote.Short(r.target, maxQuotedURL), limited(r.client.clean(err)))
}

// do sends a request and returns a successful answer. The caller closes the body.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	r.Observe = c.observe(r)
	return c.sender.Do(ctx, r.Call)
}

// read sends a request and returns an answer that can contain objects. The caller closes the body.
func (c *Client) read(ctx context.Context, r request) (body io.ReadCloser, mediaType string, err error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, "", err
	}
	mediaType = resp.Header.Get("Content-Type")
	if err := c.checkContentType(mediaType, resp.Body); err != nil {
		_ = resp.Body.Close()
		if ended := call.Ended(ctx); ended != nil {
			err = ended
		}
		return nil, "", err
	}
	return resp.Body, mediaType, nil
}

// discard sends a request and ignores the body of a successful answer.
func (c *Client) discard(ctx context.Context, r request) error {
	body, _, err := c.read(ctx, r)
	if err != nil {
		return r.fail(err)
	}
	// Read the body so that the connection can be used again, but not without a limit.
	_ = call.Beginning(body, maxDiscarded)
	return body.Close()
}

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

// Warning is a message of the server in the head of an answer: an API is deprecated, a field is unknown or has no
// effect. It corresponds to the arguments of rest.WarningHandler of client-go.
type Warning struct {
	Code  int    // 299 from kube-apiserver: a persistent warning of no special kind
	Agent string // the sender; "-" for the server itself
	Text  string // one line of at most 1,024 bytes
}

// observe returns the function that gets each attempt of a request; nil if there is no hook.
func (c *Client) observe(r request) func(call.Observed) {
	if c.onRequest == nil {
		return nil
	}
	o := observer{c.onRequest, Request{
		Verb: r.verb, Method: r.Method, Host: c.sender.Server().Host, Path: r.Path, Resource: r.resource, Subresource: r.subresource,
		Sent: int64(len(r.Body)),
	}}
	return o.attempt
}

// observer has the hook, and the fields of a Request that are the same for each attempt.
type observer struct {
	hook func(Request)
	Request
}

func (o observer) attempt(a call.Observed) {
	o.Attempt, o.Code, o.Protocol, o.Err, o.Received = a.Attempt, a.Code, a.Protocol, a.Err, a.Received
	o.Limited, o.Head, o.Total = a.Limited, a.Head, a.Total
	o.hook(o.Request)
}
