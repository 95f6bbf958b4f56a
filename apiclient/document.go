package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/leatproject/leat/codec"
)

// GetDocument reads a document of JSON that is no object of a resource, such as /apis or /version, into a pointer. path
// begins with a slash and is below the server's own path. It is one request, and nothing is tried again.
// It corresponds to RESTClient().Get().AbsPath(path) of client-go.
func (c *Client) GetDocument(ctx context.Context, path string, into any) error {
	r := request{verb: "get", target: path, method: http.MethodGet, path: path, accept: codec.MediaTypeJSON}
	if !strings.HasPrefix(path, "/") {
		return r.fail(errors.New("apiclient: the path of a document begins with a slash"))
	}
	body, mediaType, err := c.read(ctx, r)
	if err != nil {
		return r.fail(err)
	}
	defer body.Close()
	if strings.HasPrefix(mediaType, codec.MediaTypeProtobuf) {
		return r.fail(&ContentTypeError{ContentType: mediaType})
	}
	content, err := io.ReadAll(io.LimitReader(body, codec.DefaultMaxObjectBytes+1))
	if err != nil {
		return r.fail(err)
	}
	if len(content) > codec.DefaultMaxObjectBytes {
		return r.fail(&codec.TooLargeError{Limit: codec.DefaultMaxObjectBytes})
	}
	if err := json.Unmarshal(content, into); err != nil {
		return r.fail(fmt.Errorf("read the answer: %w", err))
	}
	return nil
}
