package apiclient

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// fail makes an error of an answer that is not successful. Its type is *apierrors.StatusError.
func (c *Client) fail(a call.Answer) call.Failure {
	err := completeStatus(c.statusOf(a), a.Code, a.Header, time.Now())
	c.cleanStatus(&err.ErrStatus)
	f := call.Failure{Err: err, Final: apierrors.HasStatusCause(err, disruptionBudget), NotBegun: notBegun(&err.ErrStatus)}
	_, f.Asked = call.RetryAfter(a.Header.Get("Retry-After"), time.Now())
	if d := err.ErrStatus.Details; d != nil && d.RetryAfterSeconds > 0 { // has the delay of the header, which a proxy may have removed
		f.RetryAfter, f.Asked = time.Duration(d.RetryAfterSeconds)*time.Second, true
	}
	return f
}

func (c *Client) statusOf(a call.Answer) *metav1.Status {
	contentType := a.Header.Get("Content-Type")
	switch media, _, _ := mime.ParseMediaType(contentType); {
	case media == codec.MediaTypeJSON, media == codec.MediaTypeProtobuf:
	case bytes.HasPrefix(bytes.TrimSpace(a.Body), []byte("{")): // a Status whose content type a proxy changed
		contentType = codec.MediaTypeJSON
	default:
		return statusFromText(a.Code, c.sent.Quote(contentType, a.Body))
	}
	failure := codec.Failure{Code: a.Code, MediaType: contentType, Body: bytes.NewReader(a.Body)}.Error()
	if !isGeneric(failure) {
		return &failure.ErrStatus
	}
	if s := partialStatus(a.Body); s != nil {
		return s
	}
	return statusFromText(a.Code, c.sent.Quote(contentType, a.Body))
}

// cleanStatus removes credentials from a Status, because the error page of a proxy may quote the request.
func (c *Client) cleanStatus(status *metav1.Status) {
	status.Message = c.sent.CleanCut(status.Message)
	status.Reason = metav1.StatusReason(c.sent.Clean(string(status.Reason)))
	if status.Details == nil {
		return
	}
	status.Details.Name = c.sent.Clean(status.Details.Name)
	for i := range status.Details.Causes {
		cause := &status.Details.Causes[i]
		cause.Message, cause.Field = c.sent.Clean(cause.Message), c.sent.Clean(cause.Field)
	}
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

// completeStatus adds the code, the reason and the delay of Retry-After (in seconds or as a date) to a Status that
// lacks them, so that all checks of apimachinery work.
func completeStatus(s *metav1.Status, code int, h http.Header, now time.Time) *apierrors.StatusError {
	if s.Code == 0 {
		s.Code = int32(code)
	}
	if s.Reason == metav1.StatusReasonUnknown {
		s.Reason = reasonOf(int(s.Code))
	}
	if s.Message == "" {
		s.Message = "the server answered " + statusLine(int(s.Code)) + " without a reason"
	}
	s.Message = quote.Short(s.Message, maxStatusText)
	if seconds, _ := call.RetryAfter(h.Get("Retry-After"), now); seconds > 0 {
		if s.Details == nil {
			s.Details = &metav1.StatusDetails{}
		}
		if s.Details.RetryAfterSeconds == 0 {
			s.Details.RetryAfterSeconds = seconds
		}
	}
	return &apierrors.StatusError{ErrStatus: *s}
}

// unknownPath is the answer of net/http for unknown paths. kube-apiserver sends it for an unknown group, version or
// resource. For an unknown object it sends a Status.
const unknownPath = "404 page not found"

// statusFromText makes a Status of an answer without one: the text of a proxy, of http.Error, or of a server of another
// protocol.
func statusFromText(code int, text string) *metav1.Status {
	s := &metav1.Status{Status: metav1.StatusFailure, Code: int32(code)}
	switch {
	case code == http.StatusNotFound && text == unknownPath:
		s.Message = "the server does not serve this resource (" + text + ")"
	case text != "":
		s.Message = "the server answered " + statusLine(code) + ": " + text
	}
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Type:    metav1.CauseTypeUnexpectedServerResponse,
		Message: text,
	}}}
	return s
}

func statusLine(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

// reasonOf returns the reason that belongs to a code. 409 has none, because it may be a conflict or an existing name.
func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusBadRequest:
		return metav1.StatusReasonBadRequest
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusMethodNotAllowed:
		return metav1.StatusReasonMethodNotAllowed
	case http.StatusNotAcceptable:
		return metav1.StatusReasonNotAcceptable
	case http.StatusGone:
		return metav1.StatusReasonGone
	case http.StatusRequestEntityTooLarge:
		return metav1.StatusReasonRequestEntityTooLarge
	case http.StatusUnsupportedMediaType:
		return metav1.StatusReasonUnsupportedMediaType
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError, http.StatusBadGateway:
		return metav1.StatusReasonInternalError
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	}
	return metav1.StatusReasonUnknown
}
