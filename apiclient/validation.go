package apiclient

import (
	"errors"
	"fmt"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/apiclient/internal/transport"
)

// FieldError says which field of a Config is invalid, and why. It never contains a credential.
type FieldError struct {
	Field string // "Host", "TLS.CAFile"
	Err   error
}

// Error names the field and the reason.
func (e *FieldError) Error() string { return "apiclient: Config." + e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// asFieldError returns an error of the packages below with the type of this package.
func asFieldError(err error) error {
	var field *auth.FieldError
	if errors.As(err, &field) {
		return &FieldError{Field: field.Field, Err: field.Err}
	}
	return err
}

// Validate checks the fields of the configuration. It does not read the files that they name. The error is a
// *FieldError.
func (c Config) Validate() error {
	if _, err := call.ParseServer(c.Host); err != nil {
		return &FieldError{Field: "Host", Err: err}
	}
	if err := c.auth().Validate(); err != nil {
		return asFieldError(err)
	}
	if err := transport.CheckProxy(c.ProxyURL); err != nil {
		return &FieldError{Field: "ProxyURL", Err: err}
	}
	if field, reason := c.invalid(); field != "" {
		return &FieldError{Field: field, Err: errors.New(reason)}
	}
	return nil
}

// invalid returns a field that is invalid, and the reason.
func (c Config) invalid() (field, reason string) {
	const withTransport = "it conflicts with Transport"
	switch {
	case c.TLS.Insecure && (len(c.TLS.CAData) > 0 || c.TLS.CAFile != ""):
		return "TLS.Insecure", "it conflicts with the authorities (CAData or CAFile)"
	case !auth.ValidHeader(c.UserAgent):
		return "UserAgent", "it cannot be sent in a header, because it has a control character"
	case c.MaxObjectBytes < 0:
		return "MaxObjectBytes", fmt.Sprintf("it is %d; it must not be negative", c.MaxObjectBytes)
	case c.Transport == nil:
	case !c.TLS.isZero():
		return "TLS", withTransport
	case c.ProxyURL != nil:
		return "ProxyURL", withTransport
	case c.DialContext != nil:
		return "DialContext", withTransport
	case c.WrapTransport != nil:
		return "WrapTransport", withTransport
	}
	return "", ""
}

func (t TLS) isZero() bool {
	return len(t.CAData) == 0 && t.CAFile == "" && len(t.CertData) == 0 && t.CertFile == "" &&
		t.KeyData.IsZero() && t.KeyFile == "" && t.ServerName == "" && !t.Insecure
}
