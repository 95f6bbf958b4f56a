package multicluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// ErrLeft is the error of requests to a cluster that has left the set.
var ErrLeft = errors.New("multicluster: the cluster has left, and its credentials were dropped")

// KubeconfigError says why the kubeconfig in a Secret has no effect. It names the Secret and the field, and never has a
// value from the kubeconfig.
type KubeconfigError struct {
	Secret  api.Key
	DataKey string // the key in the Secret's data
	Field   string // such as users[].client-key-data; empty for an error of the whole kubeconfig
	Reason  string
}

// Error names the Secret, the key in its data, the field and the reason.
func (e *KubeconfigError) Error() string {
	text := fmt.Sprintf("multicluster: Secret %s: the kubeconfig in %q", api.FormatKey(e.Secret), e.DataKey)
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Reason
}

// secret is the part of a Secret that the set reads.
type secret struct {
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string][]byte `json:"data,omitempty"`
}

var secretsResource = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}

// connection is what a kubeconfig says: a server, and the credentials of a user for it.
type connection struct {
	config    apiclient.Config // without credentials
	namespace string
	access    *access
	client    *apiclient.Client
}

// connect returns the connection that the kubeconfig in a Secret describes. It sends no request.
func (s *Set) connect(m *member, content []byte) (*connection, error) {
	fail := func(field, reason string) error {
		return &KubeconfigError{Secret: m.secret, DataKey: s.o.DataKey, Field: field, Reason: reason}
	}
	if len(content) == 0 {
		return nil, fail("", "it is missing or empty")
	}
	config, namespace, err := kubeconfig.Parse(content, s.o.Kubeconfig)
	if err != nil {
		return nil, fail(withoutValues(err))
	}
	if field, reason := s.forbidden(&config); reason != "" {
		return nil, fail(field, reason)
	}
	c := &connection{namespace: namespace}
	if c.access, err = takeCredentials(&config); err != nil {
		return nil, fail("users[].client-certificate-data", err.Error())
	}
	c.config = config
	config.Credentials = c.access
	if s.o.Configure != nil {
		s.o.Configure(m.name, &config)
	}
	if c.client, err = apiclient.New(config); err != nil {
		return nil, fail(withoutValues(err))
	}
	return c, nil
}

// forbidden returns a field that a kubeconfig in a Secret must not have. The author of the Secret could otherwise read
// files of the program, because the program would send their content to a server that the kubeconfig names.
func (s *Set) forbidden(c *apiclient.Config) (field, reason string) {
	const file = "it names a file, which a kubeconfig in a Secret must not do; put the content into it"
	switch {
	case c.BearerTokenFile != "":
		return "users[].tokenFile", file
	case c.TLS.CertFile != "":
		return "users[].client-certificate", file
	case c.TLS.KeyFile != "":
		return "users[].client-key", file
	case c.TLS.CAFile != s.o.Kubeconfig.CAFile:
		return "clusters[].certificate-authority", file
	case c.Credentials != nil && s.o.Kubeconfig.Plugins.Policy.Type == exec.DenyAll:
		return "users[].exec", "it names a plugin, which Options.Kubeconfig.Plugins.Policy does not allow"
	case c.Username != "" || !c.Password.IsZero():
		return "users[].username", "basic authentication is not supported; use a token or a client certificate"
	}
	return "", ""
}

// takeCredentials moves the credentials out of a configuration.
func takeCredentials(c *apiclient.Config) (*access, error) {
	a := &access{source: c.Credentials}
	if a.source == nil {
		fixed := apiclient.Credentials{Token: c.BearerToken}
		if len(c.TLS.CertData) > 0 || !c.TLS.KeyData.IsZero() {
			pair, err := tls.X509KeyPair(c.TLS.CertData, []byte(c.TLS.KeyData.Reveal()))
			if err != nil {
				return nil, err
			}
			fixed.Certificate = &pair
		}
		a.source = constant{fixed}
	}
	c.Credentials, c.BearerToken, c.TLS.CertData, c.TLS.KeyData = nil, apiclient.Secret{}, nil, apiclient.Secret{}
	return a, nil
}

// sameServer reports whether two kubeconfigs differ at most in their credentials.
func (c *connection) sameServer(other *connection) bool {
	return c.namespace == other.namespace && reflect.DeepEqual(c.config, other.config)
}

// drop forgets the credentials for good. Later requests fail with ErrLeft.
func (c *connection) drop() {
	c.access.drop()
	c.client.CloseIdleConnections()
}

// access is the source of a client's credentials. It forwards to the source of the newest kubeconfig.
type access struct {
	mu     sync.Mutex                 // guards the field below
	source apiclient.CredentialSource // nil after drop
}

func (a *access) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.source = nil
}

// renew takes over the source of newer credentials, and reports true. After drop it reports false: the handler of the
// Secrets may call it while the member ends.
func (a *access) renew(newer *access) bool {
	source := newer.get()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.source == nil {
		return false
	}
	a.source = source
	return true
}

func (a *access) get() apiclient.CredentialSource {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.source
}

// Credentials implements apiclient.CredentialSource.
func (a *access) Credentials(ctx context.Context) (apiclient.Credentials, error) {
	source := a.get()
	if source == nil {
		return apiclient.Credentials{}, ErrLeft
	}
	return source.Credentials(ctx)
}

// Refused implements apiclient.CredentialSource.
func (a *access) Refused(c apiclient.Credentials) {
	if source := a.get(); source != nil {
		source.Refused(c)
	}
}

// constant is a CredentialSource whose credentials do not change.
type constant struct{ credentials apiclient.Credentials }

// Credentials implements apiclient.CredentialSource.
func (c constant) Credentials(context.Context) (apiclient.Credentials, error) {
	return c.credentials, nil
}

// Refused implements apiclient.CredentialSource.
func (c constant) Refused(apiclient.Credentials) {}

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	named  = regexp.MustCompile(`(?s)\[.*\]`) // a name may have brackets and line breaks
)

// withoutValues returns the field and the reason of an error of a kubeconfig. Names of entries and quoted texts are
// values too, because a person may paste a token in any place.
func withoutValues(err error) (field, reason string) {
	var inFile *kubeconfig.Error
	var inConfig *apiclient.FieldError
	switch {
	case errors.As(err, &inFile):
		field, reason = inFile.Field, inFile.Err.Error()
	case errors.As(err, &inConfig):
		field, reason = inConfig.Field, inConfig.Err.Error()
	default:
		return "", "it is not valid"
	}
	if field == "kind" {
		return field, "it is not a Config of v1"
	}
	return named.ReplaceAllString(field, "[]"), quoted.ReplaceAllString(reason, "(not shown)")
}
