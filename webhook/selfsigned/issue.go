package selfsigned

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

// clockSkew is how far the clock of an API server may be behind.
const clockSkew = time.Hour

// pair is a serving certificate with its key and the certificate of its authority, in PEM. Each pair has an authority
// of its own, whose key is not stored: it signs only this certificate.
type pair struct{ cert, key, ca []byte }

// issue makes a pair for hosts, which are names or IP addresses.
func issue(hosts []string, now time.Time, lifetime time.Duration) (pair, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	authority := template("webhook authority of "+now.UTC().Format(time.RFC3339), now, lifetime)
	authority.IsCA, authority.MaxPathLenZero, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	if err != nil {
		return pair{}, err
	}
	if authority, err = x509.ParseCertificate(ca); err != nil {
		return pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	serving := template(hosts[0], now, lifetime)
	serving.KeyUsage, serving.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			serving.IPAddresses = append(serving.IPAddresses, ip)
		} else {
			serving.DNSNames = append(serving.DNSNames, host)
		}
	}
	cert, err := x509.CreateCertificate(rand.Reader, serving, authority, key.Public(), caKey)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{inPEM("CERTIFICATE", cert), inPEM("PRIVATE KEY", der), inPEM("CERTIFICATE", ca)}, nil
}

func template(name string, now time.Time, lifetime time.Duration) *x509.Certificate {
	const longestName = 64 // of a common name (RFC 5280, appendix A.1)
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: name[:min(len(name), longestName)]},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime), BasicConstraintsValid: true,
	}
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certificatesIn returns the certificates of a PEM text. It skips everything else.
func certificatesIn(text []byte) (all []*x509.Certificate) {
	for len(text) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, cert)
		}
	}
	return all
}

// check parses the pair and returns why an API server that trusts its authority would refuse it.
func (p pair) check(hosts []string, now time.Time) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ca)
	for _, host := range hosts {
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now}); err != nil {
			return nil, fmt.Errorf("for %s: %w", host, err)
		}
	}
	return &c, nil
}

// usable reports whether check finds nothing wrong.
func (p pair) usable(hosts []string, now time.Time) bool {
	_, err := p.check(hosts, now)
	return err == nil
}
