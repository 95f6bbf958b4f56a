package admission_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/admission"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// world is a server with admission, and webhooks in memory. All requests are sent by ann.
type world struct {
	*testing.T
	server *testserver.Server
	hooks  map[string]hook // by path
	calls  []string        // "path operation resource/subresource name"
	ca     string          // of the webhooks, as a configuration contains it
}

// hook answers the request of a webhook.
type hook func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func inWorld(t *testing.T, disabled []string, test func(*world)) {
	t.Helper()
	pair, ca := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, hooks: map[string]hook{}, ca: ca}
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.New()
		listener := pipe.Listen()
		chain := must.Get(admission.New(factory, admission.Options{
			Disabled: disabled,
			Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetVerb() == "grind" {
					return authorizer.DecisionDeny, "", nil
				}
				return authorizer.DecisionAllow, "", nil
			}),
			Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "hooks.example:") || address == "10.0.0.1:8443" {
					return listener.Dial(ctx)
				}
				return nil, fmt.Errorf("no such host: %s", address)
			},
			Service: func(namespace, name string, port int32) (string, error) {
				require.Equal(t, "default/hooks/443", fmt.Sprintf("%s/%s/%d", namespace, name, port))
				return "10.0.0.1:8443", nil
			},
		}))(t)
		w.server = testserver.NewExtended(testserver.Options{}, extension.Extension{
			Connect: factory.Connect, Resources: builtin.Resources(), Admission: chain,
			Authenticate: func(*http.Request) (registry.User, error) { return registry.User{Name: "ann"}, nil },
		})
		hooks := &http.Server{
			Handler: w, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		}
		done := make(chan error, 3)
		go func() { done <- w.server.Run(ctx) }()
		go func() { done <- chain.Run(ctx) }()
		go func() { done <- hooks.ServeTLS(listener, "", "") }()
		defer func() {
			cancel()
			require.NoError(t, hooks.Close())
			for range cap(done) {
				if err := <-done; err != nil {
					require.ErrorIs(t, err, http.ErrServerClosed)
				}
			}
		}()
		test(w)
	})
}

func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"hooks.example", "hooks.default.svc"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	encoded := must.Get(json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(encoded)
}

// ServeHTTP is the server of the webhooks.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	in := review.Request
	w.calls = append(w.calls, strings.TrimSpace(fmt.Sprintf("%s %s %s.%s %s", r.URL.Path, in.Operation, in.Resource.Resource, in.Resource.Version, in.Name)))
	hook := w.hooks[r.URL.Path]
	if hook == nil {
		http.NotFound(out, r)
		return
	}
	review.Response = hook(in)
	review.Response.UID, review.Request = in.UID, nil
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(review)
}

// called returns the calls of webhooks since the last time.
func (w *world) called() []string {
	out := w.calls
	w.calls = nil
	return out
}

// send sends a request and returns the status, the answer and the warnings.
func (w *world) send(method, path, body string) (int, object.Tree, []string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.server.URL()+path, bytes.NewReader([]byte(body)))
	require.NoError(w, err)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	client := w.server.Client()
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	require.NoError(w, err)
	defer func() { require.NoError(w, response.Body.Close()) }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(w, err)
	tree, err := object.Decode(answer)
	require.NoError(w, err, "%s", answer)
	return response.StatusCode, tree, response.Header.Values("Warning")
}

// make creates an object and returns it as stored.
func (w *world) make(path, body string) object.Tree {
	w.Helper()
	code, tree, _ := w.send("POST", path, body)
	require.Equal(w, 201, code, "%v", tree["message"])
	return tree
}

// refused returns the message of a creation that fails with a status.
func (w *world) refused(code int, path, body string) string {
	w.Helper()
	got, tree, _ := w.send("POST", path, body)
	require.Equal(w, code, got, "%v", tree)
	return object.StringAt(tree, "message")
}

// at returns the value at a path of names and indexes.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(object.Tree)[step]
		case int:
			require.Greater(t, len(v.([]any)), step)
			v = v.([]any)[step]
		}
	}
	return v
}

const (
	pods            = "/api/v1/namespaces/default/pods"
	configMaps      = "/api/v1/namespaces/default/configmaps"
	serviceAccounts = "/api/v1/namespaces/default/serviceaccounts"
)

// only returns all plugins except the given ones.
func only(on ...string) []string {
	all := []string{
		"LimitRanger", "ServiceAccount", "TaintNodesByCondition", "Priority", "DefaultTolerationSeconds", "DefaultStorageClass",
		"PersistentVolumeClaimResize", "StorageObjectInUseProtection", "RuntimeClass", "CertificateApproval", "CertificateSigning",
		"CertificateSubjectRestriction", "DefaultIngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota",
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(on, name) })
}

func pod(name, more string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i"` + more + `}]}}`
}

// timeAfterReservations returns a channel that fires when no reservation of a quota is left.
func timeAfterReservations() <-chan time.Time { return time.After(2 * time.Second) }
