package apiclient

import (
	"context"
	"crypto/tls"
	"encoding/json"
)

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
	if leaf := leafOf(c.Certificate); leaf != nil {
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
