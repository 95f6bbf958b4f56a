package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// DocumentOptions are the options of FetchDocument.
type DocumentOptions struct {
	// Accept is the Accept header: variants of application/json, the preferred one first. Empty means application/json.
	Accept string
	// ETag is that of a Document which the caller has. If the document has not changed, the server does not send it
	// again (RFC 9110, 13.1.2).
	ETag string
}

// Document is a JSON document that is not an object of a resource.
type Document struct {
	ContentType string // with its parameters
	ETag        string // empty if the server sent none
	NotModified bool   // the caller's document has not changed, and Body is empty
	Body        []byte // at most Config.MaxObjectBytes
}

// GetDocument reads a JSON document that is not an object of a resource, such as /apis or /version, into a pointer.
// path begins with a slash and is relative to Host. It blocks for the answer. It corresponds to
// RESTClient().Get().AbsPath(path) of client-go.
func (c *Client) GetDocument(ctx context.Context, path string, into any) error {
	d, err := c.FetchDocument(ctx, path, DocumentOptions{})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(d.Body, into); err != nil {
		r := c.documentRequest(path)
		return r.fail(fmt.Errorf("read the answer: %w", quote.JSON(err)))
	}
	return nil
}

// FetchDocument reads a JSON document without decoding it. It is for callers that accept several formats, or that have
// an earlier answer and its ETag. path begins with a slash and is relative to Host. It blocks for the answer. An answer
// of more than Config.MaxObjectBytes is a *codec.TooLargeError; an answer that is not JSON is a *ContentTypeError.
func (c *Client) FetchDocument(ctx context.Context, path string, o DocumentOptions) (Document, error) {
	r := c.documentRequest(path)
	if o.Accept != "" {
		r.Accept = o.Accept
	}
	r.IfNoneMatch = o.ETag
	if !strings.HasPrefix(path, "/") {
		return Document{}, r.fail(errors.New("apiclient: the path of a document must begin with a slash"))
	}
	resp, err := c.do(ctx, r)
	if o.ETag != "" && notModified(err) {
		return Document{ETag: o.ETag, NotModified: true}, nil
	}
	if err != nil {
		return Document{}, r.fail(err)
	}
	defer resp.Body.Close()
	d := Document{ContentType: resp.Header.Get("Content-Type"), ETag: resp.Header.Get("ETag")}
	if d.Body, err = c.readDocument(d.ContentType, resp.Body); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return Document{}, r.fail(err)
	}
	return d, nil
}

func (c *Client) documentRequest(path string) request {
	return request{
		client: c, verb: "get", target: path,
		Call: call.Call{Method: http.MethodGet, Path: path, Accept: codec.MediaTypeJSON},
	}
}

// notModified recognises 304 Not Modified, which arrives as an error.
func notModified(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotModified
}

func (c *Client) readDocument(contentType string, body io.ReadCloser) ([]byte, error) {
	if err := c.checkContentType(contentType, body); err != nil {
		return nil, err
	}
	if strings.HasPrefix(contentType, codec.MediaTypeProtobuf) {
		return nil, c.contentTypeError(contentType, nil)
	}
	most := min(int64(c.maxObjectBytes), math.MaxInt64-1) // MaxObjectBytes may be the largest integer
	content, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && len(content) > c.maxObjectBytes {
		err = &codec.TooLargeError{Limit: c.maxObjectBytes}
	}
	return content, err
}
