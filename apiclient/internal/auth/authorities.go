package auth

import (
	"crypto/x509"
	"errors"
	"time"
)

// Authorities are those that may sign the server's certificate: those of data or of a file, which is read again, or
// those of the system. They are not safe for concurrent use.
type Authorities struct {
	ca     *file // nil for the system's authorities
	roots  *x509.CertPool
	looked time.Time
	err    error // why roots are older than the file; nil if they are not
}

// NewAuthorities reads the authorities from data or else from the file at path. With neither, they are those of the
// system. The error is a *FieldError.
func NewAuthorities(data []byte, path string) (*Authorities, error) {
	ca, err := newFile("TLS.CA", data, path)
	a := &Authorities{ca: ca, looked: time.Now()}
	if ca == nil || err != nil {
		return a, err
	}
	if a.roots, err = parseRoots(ca.content); err != nil {
		return nil, ca.fail(err)
	}
	return a, nil
}

// Roots returns the authorities; nil means those of the system.
func (a *Authorities) Roots() *x509.CertPool { return a.roots }

// Stale returns why the authorities are older than their file; nil if they are not.
func (a *Authorities) Stale() error { return a.err }

// LookSoon makes the next Look read the file.
func (a *Authorities) LookSoon() { a.looked = time.Time{} }

// Look reads the file again if it is time, and reports whether the authorities changed. An empty, missing or broken
// file changes nothing. Without authorities, a working client would stop; with those of the system, it would trust
// servers that nobody named.
func (a *Authorities) Look(now time.Time) (changed bool) {
	if !a.ca.rotates() || now.Sub(a.looked) < lookInterval {
		return false
	}
	a.looked = now
	changed, err := a.ca.look(now, false)
	if err == nil && !changed && a.err == nil {
		return false
	}
	var roots *x509.CertPool
	if err == nil {
		roots, err = parseRoots(a.ca.content)
	}
	a.err = nil
	if err != nil {
		a.err = a.ca.fail(err)
		return false
	}
	if roots.Equal(a.roots) {
		return false
	}
	a.roots = roots
	return true
}

// parseRoots parses authorities in PEM. It ignores certificates that cannot be parsed if at least one can.
func parseRoots(text []byte) (*x509.CertPool, error) {
	if err := checkPEM(text); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("it has no certificate in PEM")
	}
	return roots, nil
}
