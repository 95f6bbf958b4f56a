package apiclient

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec"
)

// statusError makes an error from an answer that is not successful. It does not close the body.
func (c *Client) statusError(resp *http.Response, used Credentials) error {
	return c.statusErrorOf(resp.StatusCode, resp.Header, beginning(resp.Body, maxErrorBody), used)
}

// statusErrorOf makes an error from an answer whose body, or its beginning, was read. Its type is
// *apierrors.StatusError, wrapped if there is more information.
func (c *Client) statusErrorOf(code int, header http.Header, body []byte, used Credentials) error {
	err := completeStatus(c.statusOf(code, header, body), code, header, time.Now())
	c.credentials.sent.cleanStatus(&err.ErrStatus)
	if code == http.StatusUnauthorized {
		return c.explainUnauthorized(err, used)
	}
	return err
}

func (c *Client) statusOf(code int, header http.Header, body []byte) *metav1.Status {
	contentType := header.Get("Content-Type")
	switch media, _, _ := mime.ParseMediaType(contentType); {
	case media == codec.MediaTypeJSON, media == codec.MediaTypeProtobuf:
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")): // a Status whose content type a proxy changed
		contentType = codec.MediaTypeJSON
	default:
		return statusFromText(code, contentType, c.credentials.sent.cleanBody(body))
	}
	failure := codec.Failure{Code: code, MediaType: contentType, Body: bytes.NewReader(body)}.Error()
	if !isGeneric(failure) {
		return &failure.ErrStatus
	}
	if s := partialStatus(body); s != nil {
		return s
	}
	return statusFromText(code, contentType, c.credentials.sent.cleanBody(body))
}

// partialStatus decodes the beginning of a Status in JSON, because servers cut the answer to a failed WebSocket
// handshake. The important fields come before the details. It returns nil if the kind is missing.
func partialStatus(body []byte) *metav1.Status {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	s := &metav1.Status{}
	members := map[string]any{
		"kind": &s.Kind, "message": &s.Message, "reason": &s.Reason, "code": &s.Code, "details": &s.Details,
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		into, ok := members[name.(string)] // the decoder allows only a string here
		if !ok {
			into = &json.RawMessage{}
		}
		if d.Decode(into) != nil {
			break
		}
	}
	if s.Kind != "Status" {
		return nil
	}
	s.Status = metav1.StatusFailure
	return s
}

// isGeneric reports whether apimachinery made the Status because the answer has none.
func isGeneric(err *apierrors.StatusError) bool {
	d := err.ErrStatus.Details
	return d != nil && len(d.Causes) == 1 && d.Causes[0].Type == metav1.CauseTypeUnexpectedServerResponse
}
