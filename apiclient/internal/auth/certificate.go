package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
)

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

// SameCertificate reports whether two certificates are equal.
func SameCertificate(a, b *tls.Certificate) bool {
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

// Leaf returns the leaf certificate, or nil if it is missing or cannot be parsed.
func Leaf(c *tls.Certificate) *x509.Certificate {
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
