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

// RedirectError is a redirect that was not followed: to another host or scheme, which must not see the credentials, or
// of a write, which would be repeated or turned into a read.
type RedirectError struct {
	From, To string // URLs without user, query and fragment
	Method   string
}

// Error says from where to where.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("apiclient: %s %s was redirected to %s, which is not followed", e.Method, e.From, e.To)
}

// ContentTypeError is a successful answer in a language that was not asked for, such as the HTML page of a proxy that
// wants somebody to log in.
type ContentTypeError struct {
	ContentType string // as the server wrote it, "" if it did not
	Body        string // its beginning, on one line
}

// Error says what came, and how it begins.
func (e *ContentTypeError) Error() string {
	if e.Body == "" {
		return fmt.Sprintf("apiclient: the answer has content type %q and no body", e.ContentType)
	}
	return fmt.Sprintf("apiclient: the answer has content type %q instead of an object's: %s", e.ContentType, e.Body)
}

// TransportError is a request that got no answer, or one that broke off or cannot be read as HTTP, as gzip, or as what the
// head of it promised. What the connection said is beneath: a *CertificateError, a syscall.Errno, io.ErrUnexpectedEOF.
// It corresponds to no type of client-go, where these errors are those of net/http.
type TransportError struct {
	Err error
}

// Error is what the connection said.
func (e *TransportError) Error() string { return quote.Short(e.Err.Error(), maxErrorText) }

// Unwrap returns what the connection said.
func (e *TransportError) Unwrap() error { return e.Err }

// asTransportError gives an error of the transport its type, once.
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

// Timeout says that it is one, as net.Error asks.
func (*headerTimeoutError) Timeout() bool { return true }

// Temporary says that trying again may help, as net.Error asks.
func (*headerTimeoutError) Temporary() bool { return true }

const (
	// maxErrorText bounds the text of an error, in bytes, without the operation. A message of a Status fits with what may
	// stand behind it.
	maxErrorText  = 1280
	maxStatusText = 1024 // the message of a Status
	maxQuotedName = 128  // a content type, the subject of a certificate
	maxQuotedURL  = 512

	maxErrorBody     = 64 << 10 // of the body of an error; a Status with many causes fits
	maxPage          = 4 << 10  // of an answer in a language that was not asked for
	beginningTimeout = 10 * time.Second
)

// completeStatus fills in what a Status from a server may lack, so that every check of apimachinery works: its code,
// its reason, and the delay that a header asks for (in seconds or as a date).
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

// unknownPath is what net/http answers where nothing is served, and so kube-apiserver for a group, a version or a
// resource that it does not have. (That an object is not there is a Status.)
const unknownPath = "404 page not found"

// statusFromText makes a Status of an answer that holds none: the text of a proxy, of a handler that http.Error wrote,
// of a server that speaks another protocol.
func statusFromText(code int, contentType string, body []byte) *metav1.Status {
	text := oneLine(contentType, body)
	s := &metav1.Status{Status: metav1.StatusFailure, Code: int32(code)}
	switch {
	case code == http.StatusNotFound && text == unknownPath:
		s.Message = "the server serves no such resource (" + text + ")"
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

// reasonOf is the reason that goes with a code. 409 stays open: it is a conflict or an existing name, and only the
// server knows which.
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

// retryAfter reads the header of that name, which is a number of seconds or a date (RFC 9110, 10.2.3). What lies in the
// past asks for no delay; what is neither asks for nothing.
func retryAfter(v string, now time.Time) (seconds int32, ok bool) {
	const most = 24 * 60 * 60
	if n, err := strconv.ParseInt(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return int32(max(0, min(n, most))), n >= 0
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	wait := min(t.Sub(now), most*time.Second) // bounded before it is rounded up, which overflows for a distant year
	return int32(max(0, (wait+time.Second-1)/time.Second)), true
}

// askedBack tells whether an answer asks to be asked again, and when: by its header, or by a Status that lost it.
func askedBack(err error, h http.Header) (time.Duration, bool) {
	_, ok := retryAfter(h.Get("Retry-After"), time.Now())
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0, ok
	}
	seconds := status.Status().Details.RetryAfterSeconds // completeStatus has put there what the header says
	return time.Duration(seconds) * time.Second, ok || seconds > 0
}

// oneLine is the beginning of a body as it may stand in an error: on one line, without control characters, and of a
// page of HTML only its title. An object of Kubernetes is not quoted.
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
	if len(lower) != len(page) { // a letter whose two cases differ in length would shift what follows
		return ""
	}
	start := strings.Index(lower, "<title>")
	end := strings.Index(lower, "</title>")
	if start < 0 || end < start {
		return ""
	}
	return fmt.Sprintf(" titled %q", strings.TrimSpace(page[start+len("<title>"):end]))
}

// bareURLError drops the URL that net/url and net/http put before an error: the operation is named already, and a URL
// may hold what nobody should read.
func bareURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// checkContentType refuses an answer that cannot hold objects, and says how it begins. Without a content type it is
// taken for JSON.
func (c *Client) checkContentType(contentType string, body io.ReadCloser) error {
	media, _, err := mime.ParseMediaType(contentType)
	if contentType == "" || err == nil && (media == codec.MediaTypeJSON || media == codec.MediaTypeProtobuf) {
		return nil
	}
	return &ContentTypeError{ContentType: quote.Short(contentType, maxQuotedName), Body: oneLine(contentType, c.credentials.sent.cleanBody(beginning(body, maxPage)))}
}

// beginning reads an answer that is only good for an error: not much of it, and not for long, for it may never end.
func beginning(answer io.ReadCloser, most int64) []byte {
	if b, ok := answer.(*body); ok {
		timer := time.AfterFunc(beginningTimeout, b.abort)
		defer timer.Stop()
	}
	b, _ := io.ReadAll(io.LimitReader(answer, most)) // what did arrive is better than nothing
	return b
}

func asHandshake(err error) (*HandshakeError, bool) {
	var answer *HandshakeError
	ok := errors.As(err, &answer)
	return answer, ok
}
