package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Options are the settings of an Identity.
type Options struct {
	// Tokens are the accepted bearer tokens, each with its user.
	Tokens Tokens
	// NoAnonymous rejects requests without credentials with 401. Otherwise they come from system:anonymous.
	NoAnonymous bool
	// Issuer is the issuer and the audience of the tokens of service accounts. Empty means the name under which pods
	// reach the server.
	Issuer string
	// SigningKey signs these tokens. Nil means a new key.
	SigningKey crypto.Signer
	// Keys are the public keys whose tokens are accepted. Nil means the one of SigningKey.
	Keys []any
	// ClientCAs sign client certificates that are accepted besides those of Certificate. Nil means none.
	ClientCAs *x509.CertPool
	// Authorizer decides about impersonation, and answers reviews of access.
	Authorizer authorizer.Authorizer
	// Rules answers reviews of a user's own rules.
	Rules authorizer.RuleResolver
}

// Tokens maps bearer tokens to users. It never prints a token.
type Tokens map[string]registry.User

// Format prints the number of tokens.
func (t Tokens) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%d tokens", len(t)) }

// Issuer is the default of Options.Issuer.
const Issuer = "https://kubernetes.default.svc.cluster.local"

// Identity authenticates the requests of a server.
type Identity struct {
	options     Options
	factory     *informers.Factory
	tokens      authenticator.Request // only bearer tokens, for TokenReviews
	all         authenticator.Request
	generator   serviceaccount.TokenGenerator
	keys        serviceaccount.PublicKeysGetter
	impersonate http.Handler
	authority   *authority

	mu     sync.Mutex // guards the field below
	issued Tokens
}

// New returns the identities of a server. It fails if a key cannot sign or verify tokens of service accounts.
func New(f *informers.Factory, o Options) (*Identity, error) {
	if o.Issuer == "" {
		o.Issuer = Issuer
	}
	if o.SigningKey == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(fmt.Sprintf("identity: generate a key: %v", err))
		}
		o.SigningKey = key
	}
	if o.Keys == nil {
		o.Keys = []any{o.SigningKey.Public()}
	}
	generator, err := serviceaccount.JWTTokenGenerator(o.Issuer, o.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	keys, err := serviceaccount.StaticPublicKeysGetter(o.Keys)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	i := &Identity{options: o, factory: f, generator: generator, keys: keys, authority: newAuthority()}
	i.accept()
	return i, nil
}

// Fork returns the identities of a fork of the server, which accepts the tokens and certificates of this one. o has the
// Authorizer and the Rules of the fork.
func (i *Identity) Fork(f *informers.Factory, o Options) *Identity {
	by, rules := o.Authorizer, o.Rules
	o = i.options
	o.Authorizer, o.Rules = by, rules
	out := &Identity{options: o, factory: f, generator: i.generator, keys: i.keys, authority: i.authority}
	i.mu.Lock()
	out.issued = maps.Clone(i.issued)
	i.mu.Unlock()
	out.accept()
	return out
}

// accept prepares the authentication of requests.
func (i *Identity) accept() {
	audiences := authenticator.Audiences{i.options.Issuer}
	accounts := serviceaccount.JWTTokenAuthenticator(
		[]string{i.options.Issuer}, i.keys, audiences, serviceaccount.NewValidator(getter{i.factory}))
	static := authenticator.WrapAudienceAgnosticToken(audiences, authenticator.TokenFunc(i.lookup))
	token := tokenunion.New(static, accounts)
	// kube-apiserver asks first whether the token is its own one, and the answer is a part of errors.
	own := authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) { return nil, false, nil })
	i.tokens = group.NewAuthenticatedGroupAdder(requestunion.New(bearertoken.New(own), bearertoken.New(token)))
	i.all = i.authenticators(token)
	i.impersonate = newImpersonation(i.options.Authorizer)
}

// authenticators returns all ways to authenticate a request, in the order of kube-apiserver.
func (i *Identity) authenticators(token authenticator.Token) authenticator.Request {
	roots := i.authority.pool
	if i.options.ClientCAs != nil {
		roots = i.options.ClientCAs.Clone()
		roots.AddCert(i.authority.cert)
	}
	certificates := requestx509.New(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, requestx509.CommonNameUserConversion)
	out := group.NewAuthenticatedGroupAdder(requestunion.New(
		certificates, bearertoken.New(token), websocket.NewProtocolAuthenticator(token)))
	if i.options.NoAnonymous {
		return out
	}
	return requestunion.NewFailOnError(out, anonymous.NewAuthenticator(nil))
}

// NewToken returns a new bearer token of a user.
func (i *Identity) NewToken(of registry.User) string {
	token := rand.Text()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.issued == nil {
		i.issued = Tokens{}
	}
	i.issued[token] = of
	return token
}

// lookup finds the user of a static token, in a time that does not depend on the token.
func (i *Identity) lookup(_ context.Context, token string) (*authenticator.Response, bool, error) {
	var found *authenticator.Response
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, tokens := range []Tokens{i.options.Tokens, i.issued} {
		for have, u := range tokens {
			if subtle.ConstantTimeCompare([]byte(have), []byte(token)) == 1 {
				found = &authenticator.Response{User: Info(u)}
			}
		}
	}
	return found, found != nil, nil
}

// Authenticate returns the user of a request: the impersonated one if there is one. The error is the answer.
func (i *Identity) Authenticate(r *http.Request) (registry.User, error) {
	audiences := authenticator.Audiences{i.options.Issuer}
	cleaned := r.WithContext(authenticator.WithAudiences(r.Context(), audiences))
	if hasCredentials(r.Header) {
		// Authenticators remove the credentials that they have accepted, but testserver has not logged the request yet.
		cleaned.Header = r.Header.Clone()
	}
	response, ok, err := i.all.AuthenticateRequest(cleaned)
	if err != nil || !ok {
		return registry.User{}, apierrors.NewUnauthorized("Unauthorized")
	}
	return i.impersonated(cleaned, response.User)
}

// hasCredentials reports whether headers say who sent a request, or for whom.
func hasCredentials(h http.Header) bool {
	return h["Authorization"] != nil || h["Sec-Websocket-Protocol"] != nil || impersonates(h)
}
