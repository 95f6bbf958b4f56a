package pipe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certificate is the identity of a server: a self-signed certificate that is its own authority.
type Certificate struct {
	Pair tls.Certificate
	Pool *x509.CertPool // has only this certificate
	PEM  []byte
}

// NewCertificate creates a certificate for the server in memory and for loopback. It is valid at every time that the
// clock of a synctest bubble may show.
func NewCertificate() *Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("testserver: generate a key: %v", err))
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: Host},
		DNSNames:              []string{Host, "localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:             time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(fmt.Sprintf("testserver: sign a certificate: %v", err))
	}
	c := &Certificate{
		Pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		Pool: x509.NewCertPool(),
		PEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
	c.Pool.AppendCertsFromPEM(c.PEM)
	return c
}
