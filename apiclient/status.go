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

// statusError makes an error of an answer that is no success, and closes nothing.
func (c *Client) statusError(resp *http.Response, used Credentials) error {
	return c.statusErrorOf(resp.StatusCode, resp.Header, beginning(resp.Body, maxErrorBody), used)
}

// statusErrorOf makes an error of an answer whose body was read already, cut or not. Its type is
// *apierrors.StatusError, wrapped where there is more to say.
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
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")): // a Status that a proxy relabelled
		contentType = codec.MediaTypeJSON
	default:
		return statusFromText(code, contentType, c.credentials.sent.cleanBody(body))
	}
	failure := codec.Failure{Code: code, MediaType: contentType, Body: bytes.NewReader(body)}.Error()
	if !isGeneric(failure) {
		return &failure.ErrStatus
	}
	if s := salvage(body); s != nil {
		return s
	}
	return statusFromText(code, contentType, c.credentials.sent.cleanBody(body))
}

// salvage reads a Status of JSON that was cut, as far as it goes: servers cut the answer to a failed WebSocket handshake
// short, and what counts stands before the details. It returns nil if not even its kind is there.
func salvage(body []byte) *metav1.Status {
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
		into, ok := members[name.(string)] // the decoder lets nothing but a string stand here
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

// isGeneric tells whether a Status was made up for want of one in the answer.
func isGeneric(err *apierrors.StatusError) bool {
	d := err.ErrStatus.Details
	return d != nil && len(d.Causes) == 1 && d.Causes[0].Type == metav1.CauseTypeUnexpectedServerResponse
}
