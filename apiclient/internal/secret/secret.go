package secret

import (
	"encoding/json"
	"fmt"
)

// Redacted is shown instead of a secret.
const Redacted = "REDACTED"

// Secret is a credential: a token, a password, a private key. If it is printed, logged or marshalled, also as a part of
// another value, the output shows only that there is one. This is also true for an unexported field of another struct.
// fmt does not call methods for such a field, but the text is behind a pointer, and fmt prints its address. Only Reveal
// returns the text. The zero value is no credential. client-go has no such type.
type Secret struct{ text *string }

// New returns a Secret with a text. An empty text is no credential.
func New(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text, or "" if there is no credential.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports that there is no credential.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns "REDACTED", or "" if there is no credential.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return Redacted
}

// GoString returns String.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// MarshalJSON writes String. It is meant for logs and not for storage.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
