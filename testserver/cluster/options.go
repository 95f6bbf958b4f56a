package cluster

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"net"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/leatproject/leat/testserver"
)

// Options are the options of a Cluster. The zero value is as strict as a real cluster without nodes.
type Options struct {
	// Server are the options of the API server. Unless Lenient is set, a cluster sets ManagedFields, StrictNamespaces
	// and NamespaceLifecycle, and Compress with TLS.
	Server testserver.Options
	// Lenient accepts what a real cluster refuses and tests often do not need: namespaces need not exist, managedFields
	// are not recorded, and a deleted namespace takes its objects along at once.
	Lenient bool

	// Behaviour switches the controllers and nodes of the cluster.
	Behaviour Behaviour

	// Tokens are accepted bearer tokens, each with its user. Config and ConfigFor have tokens of their own. A request
	// with another token gets 401.
	Tokens Tokens
	// ClientCAs sign accepted client certificates: the common name is the user, and the organizations are the groups.
	ClientCAs *x509.CertPool
	// Accounts are the keys of the tokens of service accounts.
	Accounts Accounts
	// NoAnonymous rejects requests without credentials. Otherwise they come from system:anonymous. Without RBAC, that
	// user may do everything, except if Server.Tokens is set: it may then read health and version only.
	NoAnonymous bool
	// RBAC authorizes requests by roles and bindings. The server then begins with the roles and bindings of a real one.
	// Without RBAC, everyone may do everything.
	RBAC bool

	// DisableAdmissionPlugins and EnableAdmissionPlugins have the names of kube-apiserver, such as LimitRanger. The
	// plugins that kube-apiserver enables by default are on, except those that only matter to real machines.
	// ServiceAccount is off too unless it is enabled: it rejects pods until the default service account exists, and
	// gives each pod a volume with a random name.
	DisableAdmissionPlugins, EnableAdmissionPlugins []string
	// WebhookService returns the address (host:port) of a service that a webhook configuration or the conversion of a
	// CustomResourceDefinition names. Nil means its name in the DNS of a cluster, which a test cannot resolve;
	// configurations with a url need no service.
	WebhookService func(namespace, name string, port int32) (string, error)
	// WebhookDial connects to admission and conversion webhooks. Nil means the network. The certificates are those of
	// the configurations, in caBundle.
	WebhookDial func(ctx context.Context, network, address string) (net.Conn, error)

	// CRDs are created before New returns. CRDDirectoryPaths name files and directories with more of them, in YAML or
	// JSON; subdirectories are not read.
	CRDs              []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing makes a path of CRDDirectoryPaths that does not exist an error.
	ErrorIfCRDPathMissing bool
}

// server returns the options of the API server.
func (o Options) server() testserver.Options {
	if !o.Lenient {
		o.Server.ManagedFields, o.Server.StrictNamespaces, o.Server.NamespaceLifecycle = true, true, true
		o.Server.Compress = o.Server.Compress || o.Server.TLS || o.Server.HTTP2
	}
	return o.Server
}

// User is who sends a request: a name, a UID, groups and extra values. Authenticated users are also members of
// system:authenticated. Members of system:masters may do everything.
type User = user.DefaultInfo

// Accounts are the keys of the tokens of service accounts. The zero value has a key of its own.
type Accounts struct {
	// Issuer is the issuer and the audience of the tokens. Empty means the name under which pods reach the server.
	Issuer string
	// SigningKey is an RSA or ECDSA key that signs the tokens. Nil means a new key.
	SigningKey crypto.Signer
	// Keys are the public keys whose tokens are accepted. Nil means the one of SigningKey.
	Keys []any
}

// Format prints the number of Keys and the issuer. SigningKey is not counted.
func (a Accounts) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%d keys of %q", len(a.Keys), a.Issuer) }

// Tokens maps bearer tokens to users. It never prints a token.
type Tokens map[string]User

// Format prints the number of tokens.
func (t Tokens) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%d tokens", len(t)) }
