package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/aggregation"
	"github.com/leatproject/leat/testserver/cluster/internal/bootstrap"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/definitions"
	"github.com/leatproject/leat/testserver/cluster/internal/documents"
	"github.com/leatproject/leat/testserver/cluster/internal/identity"
	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/cluster/internal/simulate"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Cluster is a Kubernetes API server in memory, with the behaviour of the cluster around it. Server has the faults, the
// request log and the methods that read and change the state without HTTP.
type Cluster struct {
	Server *testserver.Server

	options    Options
	objects    *store.Store // of Server
	custom     *definitions.Definitions
	aggregator *aggregation.Aggregator
	schemas    *openapi.Documents
	users      *identity.Identity
	token      string                                   // of Config
	installed  func(schema.GroupResource, api.Key) bool // whether every new cluster has an object
	// controllers run beside the server and use its store.
	controllers []func(context.Context) error
	turn        chan struct{} // has an element while a Run runs the behaviour
	// The behaviour of a fork begins when wake was called, which closes woken, or when written closes.
	wake           func()
	woken, written <-chan struct{}
}

// New creates a cluster with the built-in resources of Kubernetes. It serves requests after Run or Serve is called. It
// fails if a CustomResourceDefinition cannot be read or is invalid, if a key of Accounts cannot be used, or if a plugin
// is unknown.
func New(o Options) (*Cluster, error) {
	c := newCluster(o)
	c.wake()
	c.custom = definitions.New(definitions.Options{Dial: o.WebhookDial, Service: o.WebhookService})
	c.aggregator = aggregation.New()
	e, err := c.extension(nil)
	if err != nil {
		return nil, err
	}
	e.Resources = c.users.Resources(append(withManagers(builtin.Resources()), c.custom.Resource()))
	if o.Behaviour.Nodes != nil {
		e.Resources = append(e.Resources, simulate.Metrics()...)
	}
	c.Server = testserver.NewExtended(o.server(), e)
	if c.installed, err = bootstrap.Install(c.objects, bootstrap.Options{RBAC: o.RBAC}); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	crds, err := o.definitions()
	if err != nil {
		return nil, err
	}
	if err := c.install(crds); err != nil {
		return nil, err
	}
	return c, nil
}

func newCluster(o Options) *Cluster {
	woken := make(chan struct{})
	return &Cluster{options: o, turn: make(chan struct{}, 1), woken: woken, wake: sync.OnceFunc(func() { close(woken) })}
}

// Fork returns a new cluster with the state of this one; see testserver.Server.Fork. It accepts the tokens and
// certificates of this one, and serves requests after Run or Serve is called. Its behaviour begins with the first
// request or the first change, so an idle fork is cheap. A fork in a testing/synctest bubble may be of a cluster
// outside of it.
func (c *Cluster) Fork() *Cluster {
	out := newCluster(c.options)
	out.custom, out.aggregator, out.token, out.installed = c.custom.Fork(), c.aggregator.Fork(), c.token, c.installed
	e, err := out.extension(c)
	if err != nil {
		panic(fmt.Sprintf("cluster: fork with options that New accepted: %v", err))
	}
	builtins := slices.DeleteFunc(c.objects.Definitions(), func(d *registry.Definition) bool { return d.Custom })
	e.Resources = out.users.Resources(builtins)
	out.Server = c.Server.ForkExtended(e)
	out.written = out.objects.NextVersion()
	return out
}

// extension returns what a cluster adds to a server. from is the cluster of which it is a fork, or nil.
func (c *Cluster) extension(from *Cluster) (extension.Extension, error) {
	var others *documents.Documents
	newSchemas := openapi.New
	if from != nil {
		newSchemas = from.schemas.Fork
	}
	e := extension.Extension{
		Connect: func(s *store.Store) {
			c.objects, others = s, documents.New(s.Definitions, c.users)
			c.schemas = newSchemas(s.Definitions)
			c.aggregator.Connect(s)
		},
		Definition: c.custom.Definition,
		Settle:     definitions.Settle,
		Documents: func(w http.ResponseWriter, r *http.Request, _ registry.User) bool {
			return c.schemas.Serve(w, r) || others.Serve(w, r)
		},
		Keep:   func(resource schema.GroupResource, key api.Key) bool { return c.installed(resource, key) },
		Groups: c.aggregator.Groups,
		Proxy:  c.aggregator.Serve,
	}
	c.controllers = append(c.controllers, c.aggregator.Run)
	return e, c.secure(&e, from)
}

// Start creates a cluster that runs until the test ends. It also works in a testing/synctest bubble, on fake time. The
// test fails if the options are wrong.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c.start(t)
}

// StartFork returns a fork of the cluster that runs until the test ends. This cluster need not run.
func (c *Cluster) StartFork(t testing.TB) *Cluster { return c.Fork().start(t) }

// start runs the cluster until the test ends.
func (c *Cluster) start(t testing.TB) *Cluster {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("cluster: the server ended with an error: %v", err)
		}
	})
	return c
}

// Run serves the clients of Config and ClientConfig in memory, and runs the controllers of the cluster, until ctx ends.
// It returns after all goroutines that it started have ended.
func (c *Cluster) Run(ctx context.Context) error { return c.run(ctx, c.Server.Run) }

// Serve does the same as Run for the connections that l accepts; see testserver.Server.Serve.
func (c *Cluster) Serve(ctx context.Context, l net.Listener) error {
	return c.run(ctx, func(ctx context.Context) error { return c.Server.Serve(ctx, l) })
}

func (c *Cluster) run(ctx context.Context, serve func(context.Context) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return serve(ctx) })
	all.Go(func() error { return c.behave(ctx) })
	err := all.Wait()
	c.custom.Close() // the connections to conversion webhooks have goroutines
	return err
}

// Config returns a configuration for client-go and controller-runtime, for a user who may do everything. Its clients
// reach the server through memory.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host: c.Server.URL(),
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Server.Dial(ctx) },
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.Server.CA(),
		},
		BearerToken: c.token,
		QPS:         -1, // a test must not wait for the limit of its own client
	}
}

// ClientConfig returns a configuration for leat's client.
func (c *Cluster) ClientConfig() apiclient.Config {
	return apiclient.Config{
		Host: c.Server.URL(), Transport: c.Server.Client().Transport, BearerToken: apiclient.NewSecret(c.token),
	}
}
