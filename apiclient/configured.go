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

// configured is the CredentialSource of what a Config says by itself: a token and a client certificate, as data or in
// files. What the files say takes over when it is whole; until then what was good serves on, for a file that is being
// replaced is no reason to stop.
type configured struct {
	token, cert, key *file // nil for none

	mu     sync.Mutex // guards the fields below, and the files
	looked time.Time
	newest Credentials
	err    error // why newest is not what the files say now; nil if it is
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

// Credentials returns what is newest, having looked at the files if that is a while ago. It does not fail.
func (s *configured) Credentials(context.Context) (Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.rotates() && now.Sub(s.looked) >= lookInterval {
		s.look(now, false)
	}
	return s.newest, nil
}

// Refused reads the files again, whatever they look like.
func (s *configured) Refused(Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotates() {
		s.look(time.Now(), true)
	}
}

// stale says why what is in use is not what the files say; nil if it is.
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

// lookAtCertificate takes certificate and key over together. Of a pair that is being replaced one may be new and the
// other old; they do not match then.
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

// asToken reads a token; blanks around it do not count.
func (f *file) asToken() (string, error) {
	text := strings.TrimSpace(string(f.content))
	switch {
	case text == "":
		return "", errors.New("the token file " + f.path + " is empty")
	case !validHeader(text):
		return "", errors.New("the token file " + f.path + " holds more than a token")
	}
	return text, nil
}

// pairOf makes a client certificate of PEM. Its errors name the field.
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

// checkKey finds what crypto/tls would blame on nobody in particular.
func checkKey(text []byte) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
			return errors.New("the private key is encrypted, and there is nobody to ask for its password")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil
		}
	}
	return errors.New("there is no private key in PEM in it")
}

// checkPEM refuses a block that is cut short, as one in a file that is being written: what stands before it would
// otherwise be taken for the whole.
func checkPEM(text []byte) error {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
	}
	if bytes.Contains(text, []byte("-----BEGIN ")) {
		return errors.New("the PEM in it is cut short or broken")
	}
	return nil
}

// sameCertificate tells whether two certificates are one, wherever they come from.
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
