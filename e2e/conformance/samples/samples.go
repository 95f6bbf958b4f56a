package samples

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed objects.yaml
var objects string

// All returns the objects. They are in namespace, or named after it.
func All(namespace string) ([]*unstructured.Unstructured, error) {
	request, err := signingRequest()
	if err != nil {
		return nil, err
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace)) // a hash never fails
	a, b := hash.Sum32()>>8%256, hash.Sum32()%256
	text := strings.NewReplacer("$ns", namespace, "$csr", request,
		"$ip", fmt.Sprintf("10.0.0.%d", 100+b/2), "$cidr", fmt.Sprintf("10.%d.%d.0/24", 100+a/2, b)).Replace(objects)
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return nil, fmt.Errorf("samples: %w in\n%s", err, document)
		}
		all = append(all, o)
	}
	return all, nil
}

// signingRequest returns a certificate request, twice encoded as an object holds it.
func signingRequest() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "sample"}}, key)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}
