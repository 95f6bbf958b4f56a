package apiclient

import "github.com/leatproject/leat/internal/quote"

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
