package apiclient

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// RedirectError is a redirect that was not followed. Another host or scheme must not get the credentials, and a write
// must not be repeated or become a read.
type RedirectError struct {
	From, To string // URLs without user, query and fragment
	Method   string
}

// Error names the method and both URLs.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("apiclient: %s %s was redirected to %s, which the client does not follow", e.Method, e.From, e.To)
}

// ContentTypeError is a successful answer with a content type that the client cannot decode, such as the login page of
// a proxy.
type ContentTypeError struct {
	ContentType string // empty if the server sent none
	Body        string // its beginning, on one line
}

// Error names the content type and quotes the beginning of the body.
func (e *ContentTypeError) Error() string {
	if e.Body == "" {
		return fmt.Sprintf("apiclient: the answer has the content type %q and no body", e.ContentType)
	}
	return fmt.Sprintf("apiclient: the answer has the content type %q, which cannot contain objects: %s", e.ContentType, e.Body)
}

// TransportError is a request without a complete answer, or an answer that is not valid HTTP or gzip, or that is
// shorter than its head says. It wraps the error of the connection: a *CertificateError, a syscall.Errno,
// io.ErrUnexpectedEOF. client-go has no such type; it returns the errors of net/http.
type TransportError struct {
	Err error
}

// Error is the text of the wrapped error.
func (e *TransportError) Error() string { return quote.Short(e.Err.Error(), maxErrorText) }

// Unwrap returns the error of the connection.
func (e *TransportError) Unwrap() error { return e.Err }

// asTransportError wraps err in a TransportError, unless it has one.
func asTransportError(err error) error {
	var typed *TransportError
	if errors.As(err, &typed) {
		return err
	}
	return &TransportError{Err: err}
}

// headerTimeoutError is a read whose answer did not begin in time. It is a net.Error.
type headerTimeoutError struct{ after time.Duration }

func (e *headerTimeoutError) Error() string {
	return fmt.Sprintf("apiclient: no answer within %v", e.after)
}

// Timeout is true. It is part of net.Error.
func (*headerTimeoutError) Timeout() bool { return true }

// Temporary is true. It is part of net.Error.
func (*headerTimeoutError) Temporary() bool { return true }

const (
	// maxErrorText is the largest length of the text of an error, in bytes, without the operation. The message of a
	// Status and its additions fit.
	maxErrorText  = 1280
	maxStatusText = 1024 // the message of a Status
	maxQuotedName = 128  // a content type, the subject of a certificate
	maxQuotedURL  = 512

	maxErrorBody     = 64 << 10 // of the body of an error; a Status with many causes fits
	maxPage          = 4 << 10  // of an answer with an unexpected content type
	beginningTimeout = 10 * time.Second
)

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
	if seconds, _ := retryAfter(h.Get("Retry-After"), now); seconds > 0 {
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
func statusFromText(code int, contentType string, body []byte) *metav1.Status {
	text := oneLine(contentType, body)
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

// retryAfter parses the header Retry-After, which is a number of seconds or a date (RFC 9110, 10.2.3). A date in the
// past means no delay. ok is false if the value is invalid.
func retryAfter(v string, now time.Time) (seconds int32, ok bool) {
	const most = 24 * 60 * 60
	if n, err := strconv.ParseInt(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return int32(max(0, min(n, most))), n >= 0
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	wait := min(t.Sub(now), most*time.Second) // bounded before it is rounded up, because a distant year would overflow
	return int32(max(0, (wait+time.Second-1)/time.Second)), true
}

// retryRequested returns the delay after which the server wants the request again, from the header or from a Status, in
// case a proxy removed the header. ok is false if the server does not want it again.
func retryRequested(err error, h http.Header) (time.Duration, bool) {
	_, ok := retryAfter(h.Get("Retry-After"), time.Now())
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0, ok
	}
	seconds := status.Status().Details.RetryAfterSeconds // completeStatus has added the delay of the header
	return time.Duration(seconds) * time.Second, ok || seconds > 0
}

// oneLine returns the beginning of a body for an error: one line without control characters. It returns only the title
// of an HTML page, and does not quote an object of Kubernetes.
func oneLine(contentType string, body []byte) string {
	const most = 256
	if quote.IsObject(body) {
		return "an object of Kubernetes, which is not shown"
	}
	text := string(body)
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "text/html" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "<!doctype html") {
		text = "a page of HTML" + title(text)
	}
	fields := strings.FieldsFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
	text = strings.Join(fields, " ")
	return quote.Short(text, most)
}

func title(page string) string {
	lower := strings.ToLower(page)
	if len(lower) != len(page) { // a letter whose two cases differ in length would move the indexes
		return ""
	}
	start := strings.Index(lower, "<title>")
	end := strings.Index(lower, "</title>")
	if start < 0 || end < start {
		return ""
	}
	return fmt.Sprintf(" titled %q", strings.TrimSpace(page[start+len("<title>"):end]))
}

// bareURLError removes the URL that net/url and net/http add to an error. The operation is already named, and a URL may
// have a secret.
func bareURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// checkContentType returns an error with the beginning of the answer if it cannot contain objects. An answer without a
// content type is decoded as JSON.
func (c *Client) checkContentType(contentType string, body io.ReadCloser) error {
	media, _, err := mime.ParseMediaType(contentType)
	if contentType == "" || err == nil && (media == codec.MediaTypeJSON || media == codec.MediaTypeProtobuf) {
		return nil
	}
	return &ContentTypeError{ContentType: quote.Short(contentType, maxQuotedName), Body: oneLine(contentType, c.credentials.sent.cleanBody(beginning(body, maxPage)))}
}

// beginning reads at most limit bytes of an answer for an error. It stops after a time limit, because the answer may
// never end.
func beginning(answer io.ReadCloser, limit int64) []byte {
	if b, ok := answer.(*body); ok {
		timer := time.AfterFunc(beginningTimeout, b.abort)
		defer timer.Stop()
	}
	b, _ := io.ReadAll(io.LimitReader(answer, limit)) // a partial body is still useful
	return b
}

func asHandshake(err error) (*HandshakeError, bool) {
	var answer *HandshakeError
	ok := errors.As(err, &answer)
	return answer, ok
}
