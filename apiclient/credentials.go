package apiclient

import (
	"context"
	"crypto/tls"
	"encoding/json"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/secret"
)

// Secret is a credential: a token, a password, a private key. If it is printed, logged or marshalled, also as a part of
// another value, the output shows only that there is one. This is also true for an unexported field of another struct.
// NewSecret makes one. Its method Reveal returns the text, and IsZero reports that there is no credential, as in the
// zero value. client-go has no such type.
type Secret = secret.Secret

// NewSecret returns a Secret with a text. An empty text is no credential.
func NewSecret(text string) Secret { return secret.New(text) }

// Credentials authenticate a request: a bearer token, a client certificate, or both.
type Credentials struct {
	Token       Secret
	Certificate *tls.Certificate
}

// MarshalJSON reports which credentials there are, and the subject of a certificate. It is meant for logs and not for
// storage.
func (c Credentials) MarshalJSON() ([]byte, error) {
	shown := struct {
		Token       Secret `json:"token,omitzero"`
		Certificate string `json:"certificate,omitempty"`
	}{Token: c.Token}
	if leaf := auth.Leaf(c.Certificate); leaf != nil {
		shown.Certificate = leaf.Subject.String()
	}
	return json.Marshal(shown)
}

// CredentialSource returns credentials that change while a program runs. Package exec has one. It must be safe for
// concurrent use. It corresponds to the ExecProvider and the AuthProvider of client-go's rest.Config.
type CredentialSource interface {
	// Credentials returns the newest credentials. Each request calls it. It may block until ctx ends; an error fails
	// the request. If the certificate differs from that of the previous request, new connections are opened. Requests
	// in flight continue on the old connections.
	Credentials(ctx context.Context) (Credentials, error)
	// Refused reports that the server answered 401 to a request with these credentials, or refused their certificate in
	// the handshake. It must not block. After a 401, Credentials is called at once. If it returns other credentials,
	// the request is sent once more.
	Refused(c Credentials)
}

// source is a CredentialSource for the room below.
type source struct{ from CredentialSource }

// Credentials returns the newest credentials.
func (s source) Credentials(ctx context.Context) (auth.Credentials, error) {
	c, err := s.from.Credentials(ctx)
	return auth.Credentials(c), err
}

// Refused reports that the server refused credentials.
func (s source) Refused(c auth.Credentials) { s.from.Refused(Credentials(c)) }
