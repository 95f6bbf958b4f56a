package admission

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion"

	"github.com/leatproject/leat/testserver/cluster/internal/informers"
)

const (
	webhookMutation   = mutating.PluginName
	webhookValidation = validating.PluginName
)

// webhooks is a plugin that calls webhooks. It is made for the first write after a webhook was configured, because its
// compilers of expressions take 5 ms and 400 KB, and copies each object even without a configuration.
type webhooks[P apiadmission.Interface] struct {
	factory  *informers.Factory
	resource string
	plugin   func() (P, error)
}

// newWebhooks returns a plugin that create makes. If create fails, the next request calls it again.
func newWebhooks[P apiadmission.Interface](f *informers.Factory, resource string, create func() (P, error)) webhooks[P] {
	var mu sync.Mutex // guards the variables below
	var made P
	var done bool
	return webhooks[P]{f, resource, func() (P, error) {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return made, nil
		}
		p, err := create()
		if err == nil {
			made, done = p, true
			f.Refresh() // tells the plugin the configurations
		}
		return p, err
	}}
}

func (w webhooks[P]) idle() bool {
	return w.factory.Empty(admissionregistrationv1.SchemeGroupVersion.WithResource(w.resource))
}

// Handles implements admission.Interface.
func (w webhooks[P]) Handles(apiadmission.Operation) bool { return true }

// mutatingWebhooks call mutating webhooks.
type mutatingWebhooks struct{ webhooks[*mutating.Plugin] }

func (c *Chain) newMutatingWebhooks() mutator {
	return mutatingWebhooks{newWebhooks(c.factory, "mutatingwebhookconfigurations", func() (*mutating.Plugin, error) {
		p, err := mutating.NewMutatingWebhook(nil)
		if err != nil {
			return nil, err
		}
		return p, c.prepare(p.Webhook)
	})}
}

// Admit implements admission.MutationInterface.
func (m mutatingWebhooks) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	plugin, err := m.plugin()
	if err != nil {
		return err
	}
	return plugin.Admit(ctx, a, o)
}

// validatingWebhooks call validating webhooks.
type validatingWebhooks struct{ webhooks[*validating.Plugin] }

func (c *Chain) newValidatingWebhooks() validator {
	return validatingWebhooks{newWebhooks(c.factory, "validatingwebhookconfigurations", func() (*validating.Plugin, error) {
		p, err := validating.NewValidatingAdmissionWebhook(nil)
		if err != nil {
			return nil, err
		}
		return p, c.prepare(p.Webhook)
	})}
}

// Validate implements admission.ValidationInterface.
func (v validatingWebhooks) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	plugin, err := v.plugin()
	if err != nil {
		return err
	}
	return plugin.Validate(ctx, a, o)
}

// prepare gives a plugin what it needs: namespaces, configurations and connections.
func (c *Chain) prepare(plugin *generic.Webhook) error {
	plugin.SetExternalKubeClientSet(c.factory.Client())
	plugin.SetExternalKubeInformerFactory(c.factory)
	plugin.SetUnconditionalAuthorizer(c.options.Authorizer)
	plugin.SetExcludedAdmissionResources(exclusion.Excluded())
	plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	plugin.SetAuthenticationInfoResolverWrapper(func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return c.dialer
	})
	if c.options.Service != nil {
		plugin.SetServiceResolver(services(c.options.Service))
	}
	return plugin.ValidateInitialization()
}

// services resolves the services that webhooks name.
type services func(namespace, name string, port int32) (string, error)

// ResolveEndpoint implements webhook.ServiceResolver.
func (s services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	address, err := s(namespace, name, port)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: address}, nil
}

// dialer connects to webhooks and remembers the connections, so that they end with the server.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex // guards the fields below
	open   map[*connection]struct{}
	closed bool
}

func newDialer(dial func(context.Context, string, string) (net.Conn, error)) *dialer {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &dialer{dial: dial, open: map[*connection]struct{}{}}
}

// connection is a connection that its dialer remembers.
type connection struct {
	net.Conn
	dialer *dialer
}

// Close closes the connection.
func (c *connection) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	out := &connection{Conn: conn, dialer: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = conn.Close() // the server has ended
		return nil, net.ErrClosed
	}
	d.open[out] = struct{}{}
	return out, nil
}

// reopen permits connections after close.
func (d *dialer) reopen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
}

// close closes all connections, and refuses others until reopen.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.Conn.Close() // nothing is in flight that anyone waits for
	}
}

// ClientConfigFor implements webhook.AuthenticationInfoResolver.
func (d *dialer) ClientConfigFor(string) (*rest.Config, error) { return d.config(), nil }

// ClientConfigForService implements webhook.AuthenticationInfoResolver.
func (d *dialer) ClientConfigForService(string, string, int) (*rest.Config, error) {
	return d.config(), nil
}

func (d *dialer) config() *rest.Config {
	return &rest.Config{
		UserAgent: "kube-apiserver-admission", Dial: d.connect,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
}
