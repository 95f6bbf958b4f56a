package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/testserver/cluster/internal/admission"
	"github.com/leatproject/leat/testserver/cluster/internal/identity"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/cluster/internal/rbac"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// serviceAccount is the plugin that is off by default. It refuses pods until a controller has created their service
// account, and adds a volume with a random name to each pod, so equal requests would not give equal objects. The
// envtest of controller-runtime has it off too.
const serviceAccount = "ServiceAccount"

// admin is the user of Config.
var admin = registry.User{Name: "kubernetes-admin", Groups: []string{"system:masters"}}

// secure adds authentication, authorization and admission to an extension, and their controllers to the cluster, which
// is a fork of another one if from is not nil.
func (c *Cluster) secure(e *extension.Extension, from *Cluster) error {
	factory := informers.New()
	o := identity.Options{
		Tokens: identity.Tokens{}, NoAnonymous: c.options.NoAnonymous, ClientCAs: c.options.ClientCAs,
		Issuer: c.options.Accounts.Issuer, SigningKey: c.options.Accounts.SigningKey, Keys: c.options.Accounts.Keys,
	}
	for token, u := range c.options.Tokens {
		o.Tokens[token] = registry.User{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
	}
	for token, name := range c.options.Server.Tokens {
		if _, ok := o.Tokens[token]; !ok {
			o.Tokens[token] = registry.User{Name: name}
		}
	}
	var check func(context.Context, *extension.Attributes) error
	switch all := authorizerfactory.NewAlwaysAllowAuthorizer(); {
	case c.options.RBAC:
		policy := rbac.New(factory)
		o.Authorizer, o.Rules, check = policy, policy, policy.CheckEscalation
		e.Authorize = identity.Authorize(policy)
		c.controllers = append(c.controllers, policy.Run)
	case len(c.options.Server.Tokens) > 0:
		guard := authorizer.AuthorizerFunc(onlyAuthenticated)
		o.Authorizer, o.Rules = guard, all
		e.Authorize = identity.Authorize(guard)
	default:
		o.Authorizer, o.Rules = authorizer.AuthorizerFunc(all.Authorize), all
	}
	if from != nil {
		c.users = from.users.Fork(factory, o)
	} else {
		var err error
		if c.users, err = identity.New(factory, o); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		c.token = c.users.NewToken(admin)
	}
	chain, err := admission.New(factory, admission.Options{
		Enabled: c.options.EnableAdmissionPlugins, Disabled: c.disabled(), Authorizer: o.Authorizer, Check: check,
		Service: c.options.WebhookService, Dial: c.options.WebhookDial,
	})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	c.controllers = append(c.controllers, chain.Run)
	connect := e.Connect
	e.Connect = func(s *store.Store) {
		connect(s)
		factory.Connect(s)
	}
	e.Authenticate = func(r *http.Request) (registry.User, error) {
		c.wake()
		return c.users.Authenticate(r)
	}
	e.Admission = chain
	return nil
}

// publicPaths are the paths that everybody may read, as those of the ClusterRole system:public-info-viewer.
var publicPaths = []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}

// onlyAuthenticated allows everything to users with credentials, and public paths to everybody.
func onlyAuthenticated(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	public := !a.IsResourceRequest() && a.GetVerb() == "get" && slices.Contains(publicPaths, a.GetPath())
	if a.GetUser().GetName() != user.Anonymous || public {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// disabled returns the admission plugins that are off.
func (c *Cluster) disabled() []string {
	out := slices.Clone(c.options.DisableAdmissionPlugins)
	if !slices.Contains(c.options.EnableAdmissionPlugins, serviceAccount) && !slices.Contains(out, serviceAccount) {
		out = append(out, serviceAccount)
	}
	return out
}

// ConfigFor returns a configuration like that of Config for another user.
func (c *Cluster) ConfigFor(u User) *rest.Config {
	out := c.Config()
	out.BearerToken = c.users.NewToken(registry.User{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra})
	return out
}
