package front

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateIn reads the certificate in a folder and its key, or makes both if both are missing.
func certificateIn(folder, address string) (certificate, key []byte, err error) {
	files := [2]string{filepath.Join(folder, "apiserver.crt"), filepath.Join(folder, "apiserver.key")}
	certificate, err = os.ReadFile(files[0])
	key, failed := os.ReadFile(files[1])
	if errors.Is(err, os.ErrNotExist) && errors.Is(failed, os.ErrNotExist) {
		if certificate, key, err = newCertificate(address); err == nil {
			err = cmp.Or(os.MkdirAll(folder, 0o755), os.WriteFile(files[0], certificate, 0o644), os.WriteFile(files[1], key, 0o600))
		}
	} else if err = cmp.Or(err, failed); err != nil {
		err = fmt.Errorf("%w; a certificate needs its key, and a key its certificate", err)
	}
	if err != nil {
		err = fmt.Errorf("--cert-dir: %w", err)
	}
	return certificate, key, err
}

// newCertificate returns a certificate for an address and for loopback, which is its own authority.
func newCertificate(address string) (certificate, key []byte, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host + "@leat-server"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.ParseIP(host), net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), err
}

// ReadPool reads certificates.
func ReadPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM", path)
	}
	return pool, nil
}
