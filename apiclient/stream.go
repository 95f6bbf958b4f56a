package apiclient

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/leatproject/leat/api"
)

// acceptStream takes whatever a subresource sends. JSON stands in it because kube-apiserver settles on a language for
// the Status of a failure before it looks whether the answer is a stream, and knows none for text alone (406).
const acceptStream = "text/plain, application/json, */*"

// Stream opens a subresource that answers a GET with bytes instead of an object, such as the log of a pod:
//
//	log, err := client.Stream(ctx, pods, key, "log", &corev1.PodLogOptions{Container: "app", Follow: true})
//
// options is a pointer to the options of the subresource, which become parameters of the query, or url.Values, or nil.
// It is sent again as Retry says while the answer has not begun, and never after that. It blocks until the answer
// begins, for as long as that takes: a container that has not written yet may be silent for hours. Errors are those of
// PartialClient.Get.
//
// What is read comes as it arrives, and compressed or not. A Read that fails says so with the operation and, when ctx
// has ended, with the error of ctx; io.EOF is the end in good order. The caller closes the stream, which ends a Read in
// flight and frees the connection. It corresponds to GetLogs(…).Stream(ctx) of client-go, for any resource.
func (c *Client) Stream(ctx context.Context, resource api.Resource, key api.Key, subresource string, options any) (io.ReadCloser, error) {
	e := newEndpoint(c, resource, "")
	query, raw := options.(url.Values)
	if raw {
		options = nil
	}
	r, err := e.objectRequest("get", http.MethodGet, key, subresource, options)
	if err != nil {
		return nil, err
	}
	if raw {
		r.query = query
	}
	r.accept = acceptStream
	patient := *c
	patient.headerTimeout = 0
	resp, err := patient.do(ctx, r)
	if err != nil {
		return nil, r.fail(err)
	}
	return &stream{ReadCloser: resp.Body, fail: r.fail}, nil
}

// stream is the body of an answer whose errors say what was read.
type stream struct {
	io.ReadCloser
	fail func(error) error
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = s.fail(err)
	}
	return n, err
}
