package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

// Credentials authenticate a request: a bearer token, a client certificate, or both.
type Credentials struct {
	Token       secret.Secret
	Certificate *tls.Certificate
}

// Source returns credentials that change while a program runs. It must be safe for concurrent use.
type Source interface {
	// Credentials returns the newest credentials. It may block until ctx ends.
	Credentials(ctx context.Context) (Credentials, error)
	// Refused reports that the server refused credentials. It must not block.
	Refused(c Credentials)
}

// configured is the Source of Options with credentials of their own: a token and a client certificate, as data or in
// files. New content of a file is used when it is complete. Until then the old content stays in use, because a
// file that is being replaced must not stop the client.
type configured struct {
	token, cert, key *file // nil for none

	mu     sync.Mutex // guards the fields below, and the files
	looked time.Time
	newest Credentials
	err    error // why newest is older than the files; nil if it is not
}

// newConfigured reads the files. Its errors name the field.
func newConfigured(o Options) (*configured, error) {
	s := &configured{looked: time.Now(), newest: Credentials{Token: o.Token}}
	var err error
	if s.cert, err = newFile("TLS.Cert", o.CertData, o.CertFile); err != nil {
		return nil, err
	}
	if s.key, err = newFile("TLS.Key", []byte(o.KeyData.Reveal()), o.KeyFile); err != nil {
		return nil, err
	}
	if s.cert != nil {
		if s.newest.Certificate, err = pairOf(s.cert, s.key); err != nil {
			return nil, err
		}
	}
	if o.TokenFile == "" {
		return s, nil
	}
	s.token = &file{field: "BearerTokenFile", path: o.TokenFile}
	if s.err = s.lookAtToken(s.looked, true); s.newest.Token.IsZero() {
		return nil, s.err
	}
	return s, nil
}

// Credentials returns the newest credentials. It checks the files if the last check was some time ago. It does not
// fail.
func (s *configured) Credentials(context.Context) (Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.rotates() && now.Sub(s.looked) >= lookInterval {
		s.look(now, false)
	}
	return s.newest, nil
}

// Refused reads the files again, even if they seem unchanged.
func (s *configured) Refused(Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotates() {
		s.look(time.Now(), true)
	}
}

// stale returns why the credentials in use are older than the files; nil if they are not.
func (s *configured) stale() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *configured) rotates() bool {
	return s.token.rotates() || s.cert.rotates() || s.key.rotates()
}

func (s *configured) look(now time.Time, must bool) {
	s.looked = now
	s.err = errors.Join(s.lookAtToken(now, must), s.lookAtCertificate(now, must))
}

func (s *configured) lookAtToken(now time.Time, must bool) error {
	if !s.token.rotates() {
		return nil
	}
	if _, err := s.token.look(now, must); err != nil {
		return s.token.fail(err)
	}
	text, err := s.token.asToken()
	if err != nil {
		return s.token.fail(err)
	}
	if text != s.newest.Token.Reveal() {
		s.newest.Token = secret.New(text)
	}
	return nil
}

// lookAtCertificate replaces the certificate and the key together. While a pair is being replaced, one may be new and
// the other old; they do not match then.
func (s *configured) lookAtCertificate(now time.Time, must bool) error {
	if s.cert == nil {
		return nil
	}
	newCert, err := s.cert.look(now, must)
	if err != nil {
		return s.cert.fail(err)
	}
	newKey, err := s.key.look(now, must)
	if err != nil {
		return s.key.fail(err)
	}
	if !newCert && !newKey && s.err == nil {
		return nil
	}
	pair, err := pairOf(s.cert, s.key)
	if err != nil {
		return err
	}
	s.newest.Certificate = pair
	return nil
}

// asToken returns the token in a file, without the space around it.
func (f *file) asToken() (string, error) {
	text := strings.TrimSpace(string(f.content))
	switch {
	case text == "":
		return "", errors.New("the token file " + f.path + " is empty")
	case !ValidHeader(text):
		return "", errors.New("the token file " + f.path + " has more than a token")
	}
	return text, nil
}
