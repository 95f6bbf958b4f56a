package cluster

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
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// WebhookInstallOptions are webhook configurations that Start installs, and the address where the test serves the
// webhooks. In the configurations, and in definitions with a conversion webhook, Start replaces a service by a url with
// this address and the path of the service, unless Options.WebhookService resolves services. An existing cluster cannot
// call that function. A url stays as it is, and gets LocalServingCAData if it has no caBundle.
type WebhookInstallOptions struct {
	// Paths are files and directories. Objects of other kinds are ignored, and subdirectories are not read. After
	// Start, MutatingWebhooks and ValidatingWebhooks have what was installed.
	Paths              []string
	MutatingWebhooks   []*admissionregistrationv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionregistrationv1.ValidatingWebhookConfiguration
	// IgnoreErrorIfPathMissing skips a path that does not exist. Otherwise it is an error.
	IgnoreErrorIfPathMissing bool
	// IgnoreSchemeConvertible gives every definition with several versions a conversion webhook, and not only those
	// that name one or whose types are convertible.
	IgnoreSchemeConvertible bool

	// LocalServingHost and LocalServingPort are where the test listens. Empty and zero mean 127.0.0.1 and a free port,
	// which Start finds.
	LocalServingHost string
	LocalServingPort int
	// LocalServingHostExternalName is the name by which the server reaches the webhooks, if it is not the host.
	LocalServingHostExternalName string
	// LocalServingCertDir has the certificate of the webhook server in tls.crt and its key in tls.key.
	// LocalServingCAData is its authority. If both are empty, Start makes a certificate in a new directory, which Stop
	// removes. If LocalServingCAData is set, the test has a certificate of its own, and may listen before Start.
	LocalServingCertDir string
	LocalServingCAData  []byte

	// MaxTime limits the requests that install the configurations in an existing cluster. Zero means 10 s.
	MaxTime time.Duration

	temporary string // the directory that Start made
}

// manifests returns copies of the configurations, and sets the fields to these copies.
func (o *WebhookInstallOptions) manifests() ([]manifest, error) {
	out, err := webhookReader.read(o.Paths, o.IgnoreErrorIfPathMissing)
	if err != nil {
		return nil, err
	}
	for _, path := range o.Paths { // a directory may have other kinds only, but a path of a file without effect is wrong
		of := func(m manifest) bool { return m.file == path }
		if info, err := os.Stat(path); err == nil && !info.IsDir() && !slices.ContainsFunc(out, of) {
			return nil, fmt.Errorf("cluster: %s has no %s and no %s", path, mutatingResource.Kind, validatingResource.Kind)
		}
	}
	for _, c := range o.MutatingWebhooks {
		out = append(out, manifest{resource: mutatingResource, object: c.DeepCopy()})
	}
	for _, c := range o.ValidatingWebhooks {
		out = append(out, manifest{resource: validatingResource, object: c.DeepCopy()})
	}
	out = lastOfEach(out)
	o.MutatingWebhooks, o.ValidatingWebhooks = nil, nil
	for _, m := range out {
		switch c := m.object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			o.MutatingWebhooks = append(o.MutatingWebhooks, c)
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			o.ValidatingWebhooks = append(o.ValidatingWebhooks, c)
		}
	}
	return out, nil
}

// prepare finds a port and makes a certificate.
func (o *WebhookInstallOptions) prepare() error {
	own := len(o.LocalServingCAData) > 0
	if o.LocalServingCertDir != "" && !own {
		return errors.New("cluster: WebhookInstallOptions.LocalServingCertDir needs LocalServingCAData")
	}
	o.LocalServingHost = cmp.Or(o.LocalServingHost, "127.0.0.1")
	if !own || o.LocalServingPort == 0 {
		if err := o.findPort(); err != nil {
			return err
		}
	}
	if own {
		return nil
	}
	if err := o.makeCertificate(); err != nil {
		_ = o.cleanUp() // the first error says why
		return fmt.Errorf("cluster: make a certificate for webhooks: %w", err)
	}
	return nil
}

// cleanUp removes what prepare made.
func (o *WebhookInstallOptions) cleanUp() error {
	if o.temporary == "" {
		return nil
	}
	if err := os.RemoveAll(o.temporary); err != nil {
		return fmt.Errorf("cluster: remove the certificate for webhooks: %w", err)
	}
	o.temporary = ""
	return nil
}

// findPort checks that the port is free, or chooses one that is. It chooses below the ports that most systems give to
// outgoing connections and to listeners without a port, because one of them could take the port before the test does.
func (o *WebhookInstallOptions) findPort() error {
	port, err := listenable(o.LocalServingHost, o.LocalServingPort)
	if err != nil && o.LocalServingPort == 0 {
		return fmt.Errorf("cluster: WebhookInstallOptions.LocalServingHost %s: %w", o.LocalServingHost, err)
	}
	if err != nil {
		return fmt.Errorf("cluster: WebhookInstallOptions.LocalServingPort %d: %w", o.LocalServingPort, err)
	}
	const lowest, count, attempts = 20000, 12000, 100
	for range attempts {
		if o.LocalServingPort != 0 {
			return nil
		}
		o.LocalServingPort, _ = listenable(o.LocalServingHost, lowest+mathrand.IntN(count)) // an error means the next one
	}
	o.LocalServingPort = port
	return nil
}

// listenable returns the port that a listener gets, or zero and an error.
func listenable(host string, port int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// externalHost returns the host by which the server reaches the webhooks.
func (o *WebhookInstallOptions) externalHost() string {
	if o.LocalServingHostExternalName != "" {
		return o.LocalServingHostExternalName
	}
	if ip := net.ParseIP(o.LocalServingHost); ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return o.LocalServingHost
}

// at returns the URL of a path of the webhook server.
func (o *WebhookInstallOptions) at(path *string) *string {
	u := url.URL{Scheme: "https", Host: net.JoinHostPort(o.externalHost(), strconv.Itoa(o.LocalServingPort))}
	if path != nil {
		u.Path = *path
	}
	return new(u.String())
}

// makeCertificate makes a certificate that is its own authority, in a new directory.
func (o *WebhookInstallOptions) makeCertificate() error {
	certificate, key, err := newServingCertificate(o.LocalServingHost, o.externalHost())
	if err != nil {
		return err
	}
	if o.temporary, err = os.MkdirTemp("", "leat-webhooks-"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.temporary, "tls.crt"), certificate, 0o600); err != nil {
		return err
	}
	o.LocalServingCertDir, o.LocalServingCAData = o.temporary, certificate
	return os.WriteFile(filepath.Join(o.temporary, "tls.key"), key, 0o600)
}

// newServingCertificate returns a certificate for loopback and some more hosts, and its key, in PEM.
func newServingCertificate(hosts ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "leat-webhooks"},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:             time.Now().Add(-time.Hour), // clocks of others may be late
		NotAfter:              time.Now().AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
