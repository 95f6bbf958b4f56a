package apiclient

import "github.com/leatproject/leat/internal/quote"

// longError is an error whose text was cut. What is beneath is still there.
type longError struct {
	text string
	err  error
}

// limited bounds the text of an error.
func limited(err error) error {
	if text := err.Error(); len(text) > maxErrorText {
		return &longError{text: quote.Short(text, maxErrorText), err: err}
	}
	return err
}

// Error returns the beginning of the text.
func (e *longError) Error() string { return e.text }

// Unwrap returns the error whose text was too long.
func (e *longError) Unwrap() error { return e.err }
