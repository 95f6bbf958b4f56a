package apiclient

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/leatproject/leat/api"
)

// acceptStream accepts all content types. It names JSON because kube-apiserver chooses a content type for the Status of
// a failure before it checks whether the answer is a stream, and answers 406 if text is the only choice.
const acceptStream = "text/plain, application/json, */*"

// Stream opens a subresource that answers a GET with bytes instead of an object, such as the log of a pod:
//
//	log, err := client.Stream(ctx, pods, key, "log", &corev1.PodLogOptions{Container: "app", Follow: true})
//
// options is nil, or url.Values, or a pointer to the options of the subresource, which become query parameters. Stream
// blocks until the answer begins, without a time limit, because a container may write nothing for hours. Until then the
// request is repeated as Retry says. Errors are those of PartialClient.Get.
//
// Read returns bytes as they arrive, decompressed. Its errors have the name of the operation, and are the error of ctx
// if ctx has ended; io.EOF is the regular end. The caller closes the stream. Close ends a running Read and releases the
// connection. It corresponds to GetLogs(…).Stream(ctx) of client-go, for any resource.
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
		r.Query = query
	}
	r.Accept = acceptStream
	r.Patient = true
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, r.fail(err)
	}
	return &stream{ReadCloser: resp.Body, fail: r.fail}, nil
}

// stream is the body of an answer. Its errors name the operation.
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
