package definitions

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// transports are those of webhooks. They keep connections open between calls.
type transports struct {
	mu   sync.Mutex // guards the field below
	used []http.RoundTripper
}

// callers returns how the server connects to webhooks: without credentials, with the Dial of the options.
func (t *transports) callers(o Options) webhook.AuthenticationInfoResolverWrapper {
	config := func() (*rest.Config, error) {
		return &rest.Config{Dial: o.Dial, WrapTransport: t.keep}, nil
	}
	return func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc:        func(string) (*rest.Config, error) { return config() },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return config() },
		}
	}
}

func (t *transports) keep(transport http.RoundTripper) http.RoundTripper {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = append(t.used, transport)
	return transport
}

func (t *transports) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, used := range t.used {
		utilnet.CloseIdleConnectionsFor(used)
	}
}

// Close closes the idle connections to webhooks. Resources stay usable.
func (d *Definitions) Close() { d.transports.closeIdle() }

// services resolves the services that conversions name. Nil gives them their DNS names.
type services func(namespace, name string, port int32) (string, error)

// ResolveEndpoint returns the address of a service.
func (s services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	address := net.JoinHostPort(name+"."+namespace+".svc", strconv.Itoa(int(port)))
	if s != nil {
		var err error
		if address, err = s(namespace, name, port); err != nil {
			return nil, err
		}
	}
	return &url.URL{Scheme: "https", Host: address}, nil
}
