package apiclient

import (
	"context"
	"fmt"
	"io"
	"net/http"

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
