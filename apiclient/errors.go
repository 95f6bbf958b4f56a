package apiclient

import (
	"errors"
	"fmt"
	"io"
	"mime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/apiclient/internal/transport"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// CertificateError says which certificate made a TLS handshake fail, and why. Its fields are Host, of the server;
// Certificate, which may be nil; Client, which is true if the server refused the client's certificate; Err, the error
// of crypto/x509 or crypto/tls, which it wraps; Stale, why a newer version of a file cannot be used.
type CertificateError = transport.CertificateError

// ProxyError is the answer of a proxy that did not connect to the server. Its fields are Proxy, with host and port;
// StatusCode, which is 407 if the proxy requires another user or password; Status, as the proxy sent it. client-go has
// no such type.
type ProxyError = transport.ProxyError

// RedirectError is a redirect that was not followed. Another host or scheme must not get the credentials, and a write
// must not be repeated or become a read. Its fields are From and To, URLs without user, query and fragment, and Method.
type RedirectError = transport.RedirectError

// TransportError is a request without a complete answer, or an answer that is not valid HTTP or gzip, or that is
// shorter than its head says. It wraps the error of the connection, its field Err: a *CertificateError, a
// syscall.Errno, io.ErrUnexpectedEOF. client-go has no such type; it returns the errors of net/http.
type TransportError = transport.Error

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

const (
	// maxErrorText is the largest length of the text of an error, in bytes, without the operation. The message of a
	// Status and its additions fit.
	maxErrorText  = 1280
	maxStatusText = 1024 // the message of a Status
	maxQuotedName = 128  // a content type
	maxQuotedURL  = 512

	maxDiscarded = 64 << 10 // of the body of a successful answer that nobody reads
	maxPage      = 4 << 10  // of an answer with an unexpected content type
)

// checkContentType returns an error with the beginning of the answer if it cannot contain objects. An answer without a
// content type is decoded as JSON.
func (c *Client) checkContentType(contentType string, body io.ReadCloser) error {
	media, _, err := mime.ParseMediaType(contentType)
	if contentType == "" || err == nil && (media == codec.MediaTypeJSON || media == codec.MediaTypeProtobuf) {
		return nil
	}
	return c.contentTypeError(contentType, call.Beginning(body, maxPage))
}

func (c *Client) contentTypeError(contentType string, body []byte) error {
	return &ContentTypeError{
		ContentType: c.sent.CleanCut(quote.Short(contentType, maxQuotedName)), Body: c.sent.Quote(contentType, body),
	}
}

// clean removes credentials from an error. A Status keeps its type, because callers need its reason; it may come from
// an event of a watch, so it is cleaned too.
func (c *Client) clean(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		c.cleanStatus(&status.ErrStatus)
		return c.sent.CleanError(err, status)
	}
	return c.sent.CleanError(err, nil)
}

// longError is an error with a shortened text. It wraps the original error.
type longError struct {
	text string
	err  error
}

// limited shortens the text of an error.
func limited(err error) error {
	if text := err.Error(); len(text) > maxErrorText {
		return &longError{text: quote.Short(text, maxErrorText), err: err}
	}
	return err
}

// Error returns the beginning of the text.
func (e *longError) Error() string { return e.text }

// Unwrap returns the error with the long text.
func (e *longError) Unwrap() error { return e.err }
