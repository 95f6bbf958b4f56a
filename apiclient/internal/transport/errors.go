package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/internal/quote"
)

const (
	maxErrorText  = 1280 // bytes of the text of an Error
	maxQuoted     = 512  // bytes of a URL, or of the reason why a certificate is not accepted
	maxQuotedName = 128  // bytes of the subject of a certificate
)

// Error is a request without a complete answer, or an answer that is not valid HTTP or gzip, or that is shorter than
// its head says. It wraps the error of the connection: a *CertificateError, a syscall.Errno, io.ErrUnexpectedEOF.
type Error struct {
	Err error
}

// Error is the text of the wrapped error.
func (e *Error) Error() string { return quote.Short(e.Err.Error(), maxErrorText) }

// Unwrap returns the error of the connection.
func (e *Error) Unwrap() error { return e.Err }

// AsError wraps err in an Error, unless it has one.
func AsError(err error) error {
	var typed *Error
	if errors.As(err, &typed) {
		return err
	}
	return &Error{Err: err}
}

// HeaderTimeoutError is a read whose answer did not begin in time. It is a net.Error.
type HeaderTimeoutError struct{ after time.Duration }

// Error has the time limit.
func (e *HeaderTimeoutError) Error() string {
	return fmt.Sprintf("apiclient: no answer within %v", e.after)
}

// Timeout is true. It is part of net.Error.
func (*HeaderTimeoutError) Timeout() bool { return true }

// Temporary is true. It is part of net.Error.
func (*HeaderTimeoutError) Temporary() bool { return true }
