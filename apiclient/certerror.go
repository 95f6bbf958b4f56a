package apiclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/leatproject/leat/internal/quote"
)

// CertificateError says which certificate stopped a TLS handshake, and why. What crypto/x509 says (an
// x509.UnknownAuthorityError, HostnameError, CertificateInvalidError) is wrapped.
type CertificateError struct {
	Host        string            // of the server, as it was dialled
	Certificate *x509.Certificate // the one at fault; nil where the server did not say
	Client      bool              // the server refused the client's certificate, not the client the server's
	Err         error
	Stale       error // why a file that was replaced since is not what is used; nil if there is none
}

// Error names the server, the certificate with its dates, and the reason.
func (e *CertificateError) Error() string {
	text := e.what() + ": " + quote.Short(e.Err.Error(), maxQuotedURL) // which may list all names of the certificate
	if e.Stale != nil {
		text += " (and what replaced it cannot be used: " + e.Stale.Error() + ")"
	}
	return text
}

func (e *CertificateError) what() string {
	switch {
	case e.Client && e.Certificate == nil:
		return e.Host + " wants a client certificate"
	case e.Client:
		return fmt.Sprintf("%s refused the client certificate (%s)", e.Host, describe(e.Certificate))
	case e.Certificate == nil:
		return "the certificate of " + e.Host
	}
	return fmt.Sprintf("the certificate of %s (%s)", e.Host, describe(e.Certificate))
}

// Unwrap returns what crypto/tls or crypto/x509 said.
func (e *CertificateError) Unwrap() error { return e.Err }

func describe(c *x509.Certificate) string {
	return fmt.Sprintf("subject %q, issuer %q, valid from %s to %s",
		quote.Short(c.Subject.String(), maxQuotedName), quote.Short(c.Issuer.String(), maxQuotedName), c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
}

// explainTransport says what is known about an error of the transport: which certificate it is about and why, that a
// server does not speak TLS, that the client certificate is out of date. No credential stands in what it returns.
func (c *Client) explainTransport(err error, used Credentials) error {
	return c.credentials.sent.cleanError(c.explainTLS(err, used))
}

func (c *Client) explainTLS(err error, used Credentials) error {
	var typed *CertificateError // of a proxy
	if errors.As(err, &typed) {
		return err
	}
	if cert, ok := serverCertificate(err); ok {
		c.transports.lookSoon()
		return &CertificateError{Host: c.base.Host, Certificate: cert, Err: bareTLSError(err), Stale: c.transports.stale()}
	}
	if alert, ok := clientCertificateAlert(err, c.transports.asked.Load() && used.Certificate == nil); ok {
		c.credentials.source.Refused(used)
		return &CertificateError{
			Host: c.base.Host, Certificate: leafOf(used.Certificate), Client: true, Err: alert, Stale: c.credentials.stale(),
		}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%w (%s speaks plain HTTP: the URL begins with http://)", err, c.base.Host)
	}
	// From TLS 1.3 on a server refuses a certificate after the handshake, and what it says may be lost in a reset.
	return withValidity(err, used)
}

// explainUnauthorized adds to an answer of 401 what the client knows: that its certificate is out of date, or that a
// file with newer credentials cannot be used.
func (c *Client) explainUnauthorized(err error, used Credentials) error {
	err = withValidity(err, used)
	if stale := c.credentials.stale(); stale != nil {
		err = fmt.Errorf("%w (and what replaced the credentials cannot be used: %w)", err, stale)
	}
	return err
}

func withValidity(err error, used Credentials) error {
	leaf, now := leafOf(used.Certificate), time.Now()
	switch {
	case leaf == nil:
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%w (the client certificate has expired: %s)", err, describe(leaf))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%w (the client certificate is not valid yet: %s)", err, describe(leaf))
	}
	return err
}

// leafOf returns the certificate that says who it is; nil where there is none that can be read.
func leafOf(c *tls.Certificate) *x509.Certificate {
	switch {
	case c == nil || len(c.Certificate) == 0:
		return nil
	case c.Leaf != nil:
		return c.Leaf
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// serverCertificate finds the certificate that an error of the handshake is about. It need not be the first of the
// chain: an intermediate can have expired too.
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

// bareTLSError drops the words "tls: failed to verify certificate" where what they introduce can stand alone.
func bareTLSError(err error) error {
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) {
		return verify.Err
	}
	return err
}

// clientCertificateAlert finds what the other side says of the client's certificate, or of the lack of one, for which
// TLS 1.2 has no better words than that the handshake failed. The text of an alert is all that crypto/tls exports of it
// over TCP.
func clientCertificateAlert(err error, lacking bool) (*net.OpError, bool) {
	var op *net.OpError
	for errors.As(err, &op) {
		text := op.Err.Error()
		if op.Op == "remote error" {
			return op, strings.Contains(text, "certificate") || strings.Contains(text, "access denied") ||
				lacking && strings.Contains(text, "handshake failure")
		}
		err = op.Err // what a proxy leads to is wrapped in another
	}
	return nil, false
}
