package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// authority signs client certificates. All are valid at every time that the clock of a synctest bubble may show.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority() *authority {
	a := &authority{pool: x509.NewCertPool()}
	template := certificate(pkix.Name{CommonName: "leat clients"})
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	a.key, a.cert = signed(template, template, nil)
	a.pool.AddCert(a.cert)
	return a
}

// Certificate returns a new client certificate of a user: the name is its common name, and the groups are its
// organizations. UID and extra do not count. It panics if the system has no random numbers.
func (i *Identity) Certificate(of registry.User) tls.Certificate {
	template := certificate(pkix.Name{CommonName: of.Name, Organization: of.Groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	key, cert := signed(template, i.authority.cert, i.authority.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func certificate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// signed returns a certificate and its new key. Without a signer, it signs itself.
func signed(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("identity: generate a key: %v", err))
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		panic(fmt.Sprintf("identity: sign a certificate: %v", err))
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(fmt.Sprintf("identity: parse a certificate: %v", err))
	}
	return key, cert
}
