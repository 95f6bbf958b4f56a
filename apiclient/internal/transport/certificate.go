package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/internal/quote"
)

// CertificateError says which certificate made a TLS handshake fail, and why. It wraps the error of crypto/x509: an
// x509.UnknownAuthorityError, HostnameError or CertificateInvalidError.
type CertificateError struct {
	Host        string            // of the server, as it was dialled
	Certificate *x509.Certificate // the invalid or refused one; nil if it is unknown
	Client      bool              // the server refused the client's certificate; otherwise the client refused the server's
	Err         error
	Stale       error // why a newer version of a file cannot be used; may be nil
}

// Error names the server, the certificate with its dates, and the reason.
func (e *CertificateError) Error() string {
	text := e.subject() + ": " + quote.Short(e.Err.Error(), maxQuoted) // may list all names of the certificate
	if e.Stale != nil {
		text += " (the newer version of the file cannot be used: " + e.Stale.Error() + ")"
	}
	return text
}

func (e *CertificateError) subject() string {
	switch {
	case e.Client && e.Certificate == nil:
		return e.Host + " requires a client certificate"
	case e.Client:
		return fmt.Sprintf("%s refused the client certificate (%s)", e.Host, describe(e.Certificate))
	case e.Certificate == nil:
		return "the certificate of " + e.Host
	}
	return fmt.Sprintf("the certificate of %s (%s)", e.Host, describe(e.Certificate))
}

// Unwrap returns the error of crypto/tls or crypto/x509.
func (e *CertificateError) Unwrap() error { return e.Err }

func describe(c *x509.Certificate) string {
	return fmt.Sprintf("subject %q, issuer %q, valid from %s to %s",
		quote.Short(c.Subject.String(), maxQuotedName), quote.Short(c.Issuer.String(), maxQuotedName),
		c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
}

// Explain adds the cause to an error of a transport: the certificate and why it was refused, a server that does not
// speak TLS, or a client certificate that is not valid now. host is the server's. It reports a refused client
// certificate to the user. The error has no credentials.
func (ts *Transports) Explain(err error, host string, user *auth.User, used auth.Credentials) error {
	return ts.sent.CleanError(ts.explain(err, host, user, used), nil)
}

func (ts *Transports) explain(err error, host string, user *auth.User, used auth.Credentials) error {
	var typed *CertificateError // of a proxy
	if errors.As(err, &typed) {
		return err
	}
	if cert, ok := serverCertificate(err); ok {
		return &CertificateError{Host: host, Certificate: cert, Err: bareTLSError(err), Stale: ts.lookSoon()}
	}
	if alert, ok := clientCertificateAlert(err, ts.asked.Load() && used.Certificate == nil); ok {
		user.ReportRefused(used)
		return &CertificateError{Host: host, Certificate: auth.Leaf(used.Certificate), Client: true, Err: alert, Stale: user.Stale()}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%w (%s speaks plain HTTP; write http:// in the URL)", err, host)
	}
	// With TLS 1.3, a server refuses a certificate after the handshake, and a reset of the connection may lose its
	// alert.
	return withValidity(err, used)
}

// ExplainUnauthorized adds possible causes to an answer of 401: a client certificate that is not valid now, or a file
// with newer credentials that cannot be used.
func ExplainUnauthorized(err error, user *auth.User, used auth.Credentials) error {
	err = withValidity(err, used)
	if stale := user.Stale(); stale != nil {
		err = fmt.Errorf("%w (the newer version of the credentials cannot be used: %w)", err, stale)
	}
	return err
}

func withValidity(err error, used auth.Credentials) error {
	leaf, now := auth.Leaf(used.Certificate), time.Now()
	switch {
	case leaf == nil:
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%w (the client certificate has expired: %s)", err, describe(leaf))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%w (the client certificate is not valid yet: %s)", err, describe(leaf))
	}
	return err
}

// serverCertificate returns the certificate that an error of the handshake is about. It may be an intermediate of the
// chain.
func serverCertificate(err error) (*x509.Certificate, bool) {
	var (
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &authority):
		return authority.Cert, true
	case errors.As(err, &invalid):
		return invalid.Cert, true
	case errors.As(err, &host):
		return host.Certificate, true
	case errors.As(err, &verify):
		if len(verify.UnverifiedCertificates) > 0 {
			return verify.UnverifiedCertificates[0], true
		}
		return nil, true
	}
	return nil, false
}

// bareTLSError returns the cause of a verification error, without the words "tls: failed to verify certificate".
func bareTLSError(err error) error {
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) {
		return verify.Err
	}
	return err
}

// clientCertificateAlert returns the alert of the server about the client's certificate, or about the lack of one. If
// lacking is true, a general handshake failure counts too, because TLS 1.2 has no alert for a missing certificate. The
// code compares texts, because crypto/tls exports no type for an alert over TCP.
func clientCertificateAlert(err error, lacking bool) (*net.OpError, bool) {
	var op *net.OpError
	for errors.As(err, &op) {
		text := op.Err.Error()
		if op.Op == "remote error" {
			return op, strings.Contains(text, "certificate") || strings.Contains(text, "access denied") ||
				lacking && strings.Contains(text, "handshake failure")
		}
		err = op.Err // a proxy wraps the error of the connection behind it
	}
	return nil, false
}
