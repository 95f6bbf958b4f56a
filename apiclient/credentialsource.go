package apiclient

import (
	"context"
	"crypto/tls"
	"encoding/json"
)

// Credentials prove who asks, for as long as they are good: a bearer token, a client certificate, or both.
type Credentials struct {
	Token       Secret
	Certificate *tls.Certificate
}

// MarshalJSON shows that there are credentials, and of a certificate whose it is: it is meant for logs, not for storage.
func (c Credentials) MarshalJSON() ([]byte, error) {
	shown := struct {
		Token       Secret `json:"token,omitzero"`
		Certificate string `json:"certificate,omitempty"`
	}{Token: c.Token}
	if leaf := leafOf(c.Certificate); leaf != nil {
		shown.Certificate = leaf.Subject.String()
	}
	return json.Marshal(shown)
}

// CredentialSource says who asks where that changes while a program runs. Package exec has one. It must be safe for
// concurrent use. It corresponds to the ExecProvider and the AuthProvider of client-go's rest.Config.
type CredentialSource interface {
	// Credentials returns what is newest. It is called for each request, and may block until ctx ends; an error fails the
	// request. Another certificate than that of the request before opens connections of its own; what is in flight on
	// the old ones goes on.
	Credentials(ctx context.Context) (Credentials, error)
	// Refused is told that the server answered 401 to a request with these credentials, or refused their certificate in
	// the handshake. It must not block. After a 401 Credentials is called at once, and if it then returns others the
	// request is sent once more.
	Refused(c Credentials)
}
