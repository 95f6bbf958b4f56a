package scan

import (
	"fmt"
	"io"
)

// Malformed is the error of a stream that cannot be read further. Package codec returns it as a MalformedError.
type Malformed struct {
	Offset int64 // number of bytes before the error
	Err    error
}

// Error returns the reason.
func (e *Malformed) Error() string { return e.Err.Error() }

// TooLarge is the error of an object that is larger than the window may be. Package codec returns it as a
// TooLargeError.
type TooLarge struct {
	Limit int // bytes
}

// Error returns one line.
func (e *TooLarge) Error() string { return "too large" }

func isTooLarge(err error) bool {
	_, ok := err.(*TooLarge)
	return ok
}

// truncated returns the error of a stream that ends too early, at offset.
func truncated(offset int64) error {
	return &Malformed{Offset: offset, Err: fmt.Errorf("it ends too early: %w", io.ErrUnexpectedEOF)}
}

// malformed returns the error of a stream that is malformed at offset.
func malformed(offset int64, format string, args ...any) error {
	return &Malformed{Offset: offset, Err: fmt.Errorf(format, args...)}
}
