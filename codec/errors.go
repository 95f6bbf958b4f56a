package codec

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/leatproject/leat/api"
)

// What the typed errors of this package match.
var (
	// ErrMalformed matches every *MalformedError.
	ErrMalformed = errors.New("codec: malformed answer")
	// ErrTooLarge matches every *TooLargeError.
	ErrTooLarge = errors.New("codec: object too large")
	// ErrUnexpectedKind matches every *KindError.
	ErrUnexpectedKind = errors.New("codec: unexpected kind")
	// ErrUnknownEvent matches every *UnknownEventError.
	ErrUnknownEvent = errors.New("codec: unknown event type")
	// ErrMediaType matches every *MediaTypeError.
	ErrMediaType = errors.New("codec: unsupported media type")
)

// MalformedError is an answer whose framing is broken: bad syntax, an end in the middle (it then wraps
// io.ErrUnexpectedEOF), something after the end, or an object of which not even the name can be read. What follows it
// in a stream cannot be trusted, so it ends the call.
type MalformedError struct {
	Offset int64 // bytes before the place where the answer stopped making sense
	Err    error
}

// Error says what is wrong, and at which byte.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("codec: malformed answer at byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns what is wrong.
func (e *MalformedError) Unwrap() error { return e.Err }

// Is matches ErrMalformed.
func (e *MalformedError) Is(target error) bool { return target == ErrMalformed }

// TooLargeError is an object, frame or body that is larger than Options.MaxObjectBytes. It ends the call.
type TooLargeError struct {
	Limit int // bytes
}

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("codec: object larger than the limit of %d bytes", e.Limit)
}

// Is matches ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// KindError is an answer of another kind than was asked for, such as a Table where a list was expected. As the answer to
// a list it ends the call; around one object of a list or a watch it is what makes the object undecodable.
type KindError struct {
	Resource         api.Resource
	APIVersion, Kind string // what the answer says it is
}

// Error names the kind that was asked for and the one that came.
func (e *KindError) Error() string {
	return fmt.Sprintf("codec: asked for %s and was answered with kind %q of %q", cmp.Or(e.Resource.String(), "an object"), e.Kind, e.APIVersion)
}

// Is matches ErrUnexpectedKind.
func (e *KindError) Is(target error) bool { return target == ErrUnexpectedKind }

// UnknownEventError is a watch frame of a type that is none of ADDED, MODIFIED, DELETED, BOOKMARK and ERROR. The reader
// stands behind the frame, so a caller may skip it by calling Next again. Whether that is safe only the caller knows:
// client-go ends the watch.
type UnknownEventError struct {
	Type string // at most 64 bytes of it
}

// Error names the type.
func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("codec: unknown event type %q", e.Type)
}

// Is matches ErrUnknownEvent.
func (e *UnknownEventError) Is(target error) bool { return target == ErrUnknownEvent }

// MediaTypeError is a Content-Type that cannot be decoded into the type, or encoded from it.
type MediaTypeError struct {
	MediaType string
}

// Error names the media type.
func (e *MediaTypeError) Error() string {
	return fmt.Sprintf("codec: media type %q is not supported here", e.MediaType)
}

// Is matches ErrMediaType.
func (e *MediaTypeError) Is(target error) bool { return target == ErrMediaType }

// truncated is the error of an answer that ends at offset, inside something.
func truncated(offset int64) error {
	return &MalformedError{Offset: offset, Err: fmt.Errorf("it ends too early: %w", io.ErrUnexpectedEOF)}
}

// malformed is the error of an answer that stops making sense at offset.
func malformed(offset int64, format string, args ...any) error {
	return &MalformedError{Offset: offset, Err: fmt.Errorf(format, args...)}
}
