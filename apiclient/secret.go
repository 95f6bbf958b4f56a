package apiclient

import (
	"encoding/json"
	"fmt"
)

const redacted = "REDACTED"

// Secret is a credential: a token, a password, a private key. Whoever prints, logs or marshals it, or anything that holds
// it, sees that there is one and not what it says. That is so even in an unexported field of somebody's struct, which
// fmt reads without asking the methods of what it finds there: the text stands behind a pointer, and there fmt shows an
// address. Only Reveal tells. The zero value is no credential. It has no counterpart in client-go.
type Secret struct{ text *string }

// NewSecret hides a text; an empty one is no credential.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text, "" for none.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero tells that there is no credential.
func (s Secret) IsZero() bool { return s.text == nil }

// String says whether there is a credential, and no more.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format is String, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// MarshalJSON writes String: it is meant for logs, not for storage.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
