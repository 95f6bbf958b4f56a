package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"time"
)

// configured is the CredentialSource of a Config with credentials of its own: a token and a client certificate, as data
// or in files. New content of a file is used when it is complete. Until then the old content stays in use, because a
// file that is being replaced must not stop the client.
type configured struct {
	token, cert, key *file // nil for none

	mu     sync.Mutex // guards the fields below, and the files
	looked time.Time
	newest Credentials
	err    error // why newest is older than the files; nil if it is not
}

// newConfigured reads the files. Its errors name the field.
func newConfigured(c Config) (*configured, error) {
	s := &configured{looked: time.Now(), newest: Credentials{Token: c.BearerToken}}
	var err error
	if s.cert, err = newFile("TLS.Cert", c.TLS.CertData, c.TLS.CertFile); err != nil {
		return nil, err
	}
	if s.key, err = newFile("TLS.Key", []byte(c.TLS.KeyData.Reveal()), c.TLS.KeyFile); err != nil {
		return nil, err
	}
	if s.cert != nil {
		if s.newest.Certificate, err = pairOf(s.cert, s.key); err != nil {
			return nil, err
		}
	}
	if c.BearerTokenFile == "" {
		return s, nil
	}
	s.token = &file{field: "BearerTokenFile", path: c.BearerTokenFile}
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
		s.newest.Token = NewSecret(text)
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
	case !validHeader(text):
		return "", errors.New("the token file " + f.path + " has more than a token")
	}
	return text, nil
}

// pairOf makes a client certificate from PEM. Its errors name the field.
func pairOf(cert, key *file) (*tls.Certificate, error) {
	if err := checkPEM(cert.content); err != nil {
		return nil, cert.fail(err)
	}
	if err := checkKey(key.content); err != nil {
		return nil, key.fail(err)
	}
	pair, err := tls.X509KeyPair(cert.content, key.content)
	if err != nil {
		return nil, cert.fail(err)
	}
	return &pair, nil
}

// checkKey finds faults for which crypto/tls has no clear error.
func checkKey(text []byte) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
			return errors.New("the private key is encrypted, which is not supported")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil
		}
	}
	return errors.New("it has no private key in PEM")
}

// checkPEM refuses a block that is cut, because the file may be half written. Otherwise the blocks before it would be
// taken for the whole file.
func checkPEM(text []byte) error {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
	}
	if bytes.Contains(text, []byte("-----BEGIN ")) {
		return errors.New("it has PEM that is cut or invalid")
	}
	return nil
}

// sameCertificate reports whether two certificates are equal.
func sameCertificate(a, b *tls.Certificate) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || len(a.Certificate) != len(b.Certificate) {
		return false
	}
	for i := range a.Certificate {
		if !bytes.Equal(a.Certificate[i], b.Certificate[i]) {
			return false
		}
	}
	return true
}
