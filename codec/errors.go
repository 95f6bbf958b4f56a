package codec

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/scan"
)

// These errors match the typed errors of this package with errors.Is.
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

// MalformedError reports an answer that cannot be read further: wrong syntax, an early end (then it wraps
// io.ErrUnexpectedEOF), extra bytes after the end, or an object without a readable name. The rest of the stream is not
// reliable, so the error ends the call.
type MalformedError struct {
	Offset int64 // number of bytes before the error
	Err    error
}

// Error returns one line with the reason and the position.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("codec: malformed answer at byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error { return e.Err }

// Is reports whether target is ErrMalformed.
func (e *MalformedError) Is(target error) bool { return target == ErrMalformed }

// TooLargeError reports an object, frame or body that is larger than Options.MaxObjectBytes. It ends the call.
type TooLargeError struct {
	Limit int // bytes
}

// Error returns one line with the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("codec: object larger than the limit of %d bytes", e.Limit)
}

// Is reports whether target is ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// KindError reports an answer of another kind than requested, such as a Table or a SecretList instead of a list of
// pods. If a list, or a bookmark of a watch, has another kind, the error ends the call. If one object of a list or a
// watch has another kind, that object is undecodable. See Codec.DecodeList for the kinds that a list may have.
type KindError struct {
	Resource         api.Resource
	APIVersion, Kind string // of the answer; at most 64 bytes of each
}

// Error returns one line with both kinds.
func (e *KindError) Error() string {
	asked := cmp.Or(e.Resource.String(), "an object")
	if e.Resource.Kind != "" {
		asked = fmt.Sprintf("%s (kind %q of %q)", asked, e.Resource.Kind, e.Resource.GroupVersion())
	}
	return fmt.Sprintf("codec: asked for %s and was answered with kind %q of %q", asked, e.Kind, e.APIVersion)
}

// Is reports whether target is ErrUnexpectedKind.
func (e *KindError) Is(target error) bool { return target == ErrUnexpectedKind }

// UnknownEventError reports a watch frame whose type is not ADDED, MODIFIED, DELETED, BOOKMARK or ERROR. The reader has
// read the frame, so a caller may call Next again to skip it. Only the caller knows whether skipping is safe; client-go
// ends the watch.
type UnknownEventError struct {
	Type string // at most its first 64 bytes
}

// maxQuoted limits what an error quotes of an answer, in bytes: the name of a kind, an event or a media type. An error
// quotes nothing of an object.
const maxQuoted = 64

// Error returns one line with the type.
func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("codec: unknown event type %q", e.Type)
}

// Is reports whether target is ErrUnknownEvent.
func (e *UnknownEventError) Is(target error) bool { return target == ErrUnknownEvent }

// MediaTypeError reports a Content-Type from which the type cannot be decoded, or to which it cannot be encoded.
type MediaTypeError struct {
	MediaType string // at most 64 bytes of it
}

// Error returns one line with the media type.
func (e *MediaTypeError) Error() string {
	return fmt.Sprintf("codec: media type %q is not supported here", e.MediaType)
}

// Is reports whether target is ErrMediaType.
func (e *MediaTypeError) Is(target error) bool { return target == ErrMediaType }

// malformed returns the error of an answer that is malformed at offset.
func malformed(offset int64, format string, args ...any) error {
	return &MalformedError{Offset: offset, Err: fmt.Errorf(format, args...)}
}

// public returns an error of scan as the type of this package.
func public(err error) error {
	switch e := err.(type) {
	case *scan.Malformed:
		return (*MalformedError)(e)
	case *scan.TooLarge:
		return (*TooLargeError)(e)
	}
	return err
}
