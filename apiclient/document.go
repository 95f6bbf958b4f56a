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

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// DocumentOptions say how a document is asked for.
type DocumentOptions struct {
	// Accept is the Accept header: variants of application/json, the preferred one first. Empty means application/json.
	Accept string
	// ETag is that of a Document the caller has, so that one which did not change need not be sent (RFC 9110, 13.1.2).
	ETag string
}

// Document is a document of JSON that is no object of a resource.
type Document struct {
	ContentType string // as the server wrote it, parameters included
	ETag        string // "" if the server gave none
	NotModified bool   // the caller's document is still the server's, and Body is empty
	Body        []byte // of Config.MaxObjectBytes at most
}

// GetDocument reads a document of JSON that is no object of a resource, such as /apis or /version, into a pointer. path
// begins with a slash and is below the server's own path. It blocks for the answer.
// It corresponds to RESTClient().Get().AbsPath(path) of client-go.
func (c *Client) GetDocument(ctx context.Context, path string, into any) error {
	d, err := c.FetchDocument(ctx, path, DocumentOptions{})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(d.Body, into); err != nil {
		return c.documentRequest(path).fail(fmt.Errorf("read the answer: %w", quote.JSON(err)))
	}
	return nil
}

// FetchDocument reads a document of JSON as it is: for a caller who takes one of several shapes, or who has an earlier
// answer and its ETag. path begins with a slash and is below the server's own path. It blocks for the answer.
// An answer of more than Config.MaxObjectBytes is a *codec.TooLargeError, one that is not JSON a *ContentTypeError.
func (c *Client) FetchDocument(ctx context.Context, path string, o DocumentOptions) (Document, error) {
	r := c.documentRequest(path)
	if o.Accept != "" {
		r.accept = o.Accept
	}
	r.ifNoneMatch = o.ETag
	if !strings.HasPrefix(path, "/") {
		return Document{}, r.fail(errors.New("apiclient: the path of a document begins with a slash"))
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
	return request{verb: "get", target: path, method: http.MethodGet, path: path, accept: codec.MediaTypeJSON, sent: c.credentials.sent}
}

// notModified recognises the answer to a condition, which is no success.
func notModified(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotModified
}

func (c *Client) readDocument(contentType string, body io.ReadCloser) ([]byte, error) {
	if err := c.checkContentType(contentType, body); err != nil {
		return nil, err
	}
	if strings.HasPrefix(contentType, codec.MediaTypeProtobuf) {
		return nil, &ContentTypeError{ContentType: quote.Short(contentType, maxQuotedName)}
	}
	most := min(int64(c.maxObjectBytes), math.MaxInt64-1) // who wants no limit may say the largest number
	content, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && len(content) > c.maxObjectBytes {
		err = &codec.TooLargeError{Limit: c.maxObjectBytes}
	}
	return content, err
}
