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
)

// CertificateError says which certificate stopped a TLS handshake, and why. What crypto/x509 says (an
// x509.UnknownAuthorityError, HostnameError, CertificateInvalidError) is wrapped.
type CertificateError struct {
	Host        string            // of the server, as it was dialled
	Certificate *x509.Certificate // the one at fault; nil where the server did not say
	Client      bool              // the server refused the client's certificate, not the client the server's
	Err         error
}

// Error names the server, the certificate with its dates, and the reason.
func (e *CertificateError) Error() string {
	if e.Client {
		if e.Certificate == nil {
			return fmt.Sprintf("%s wants a client certificate: %v", e.Host, e.Err)
		}
		return fmt.Sprintf("%s refused the client certificate (%s): %v", e.Host, describe(e.Certificate), e.Err)
	}
	if e.Certificate == nil {
		return fmt.Sprintf("the certificate of %s: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("the certificate of %s (%s): %v", e.Host, describe(e.Certificate), e.Err)
}

// Unwrap returns what crypto/tls or crypto/x509 said.
func (e *CertificateError) Unwrap() error { return e.Err }

func describe(c *x509.Certificate) string {
	return fmt.Sprintf("subject %q, issuer %q, valid from %s to %s",
		c.Subject, c.Issuer, c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
}

// explainTLS gives an error of the transport a name where it is about a certificate, or about speaking TLS at all.
// Anything else is returned as it is.
func (c *Client) explainTLS(err error) error {
	if cert, ok := serverCertificate(err); ok {
		return &CertificateError{Host: c.base.Host, Certificate: cert, Err: bareTLSError(err)}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" && isClientCertificateAlert(op.Err.Error()) {
		return &CertificateError{Host: c.base.Host, Certificate: c.clientCert, Client: true, Err: op}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%w (%s speaks plain HTTP: the URL begins with http://)", err, c.base.Host)
	}
	return err
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

// isClientCertificateAlert tells from the text of an alert, which is all that crypto/tls exports of it over TCP,
// whether it is about the client's certificate.
func isClientCertificateAlert(alert string) bool {
	return strings.Contains(alert, "certificate") || strings.Contains(alert, "unknown authority")
}
