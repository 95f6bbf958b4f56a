package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/reconcile/events"
)

// loadTimeout limits the time that the file system may take for the kubeconfig. A network file system may hang.
const loadTimeout = time.Minute

// Options configures a Program. Name is required.
type Options struct {
	// Name identifies the program in Events, and as the field manager of its writes unless Config names another one.
	Name string
	// Client is used if it is not nil, and Config is ignored. Its requests have no metrics, unless the client has them.
	Client *apiclient.Client
	// Config says how to reach the API server. Without a host, New takes the server and the user from the kubeconfig
	// files, as kubectl does; if they name no server and the program runs in a pod, from the pod's service account. The
	// other fields of Config count in any case.
	Config apiclient.Config
	// Namespace confines informers and clients to one namespace. Empty means all namespaces.
	Namespace string
	// Lease is the namespace and name of a Lease. Of several replicas, only its holder reconciles. The zero value means
	// that every replica does. An empty namespace means the pod's; outside a pod it is an error.
	Lease api.Key

	// Check compares the caches of Typed and Partial with the server from time to time: driftcheck.Every(time.Hour).
	// The Check of an informer's own options replaces it. Nil means no checks.
	Check informer.Check

	// Controller has the options of each controller.
	Controller controller.Options
	// Manager has the options of the manager. An empty Logger, Metrics, Elector and Admin.Metrics are filled in.
	Manager manager.Options

	// Logger receives the log entries of all parts; package zapslog makes one for slog or logr. Nil means lines of JSON
	// on standard error, from level info on. Use zap.NewNop for none.
	Logger *zap.Logger
	// Registry has the metrics of all parts. Nil means a new registry, which also has those of the process.
	Registry *prometheus.Registry
}

// Program has the parts that all controllers of a program share. It corresponds to Manager of controller-runtime.
type Program struct {
	Client    *apiclient.Client
	Informers *factory.Factory
	Manager   *manager.Manager
	Metrics   *metrics.Metrics
	Registry  *prometheus.Registry
	Logger    *zap.Logger

	o Options

	mu       sync.Mutex       // guards the fields below
	recorder *events.Recorder // made by Recorder
	errs     []error
}

// New returns a program without informers and controllers. It sends no request.
func New(o Options) (*Program, error) {
	if o.Name == "" {
		return nil, errors.New("program: Options.Name is empty")
	}
	p := &Program{Registry: o.Registry, Logger: o.Logger, o: o}
	for _, step := range []func() error{p.makeLogger, p.makeMetrics, p.makeClient, p.makeManager} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("program: %w", err)
		}
	}
	p.Informers = factory.New(factory.Options{})
	p.Add(p.Informers)
	return p, nil
}

func (p *Program) makeLogger() (err error) {
	if p.Logger == nil {
		p.Logger, err = zap.NewProduction()
	}
	return err
}

func (p *Program) makeMetrics() (err error) {
	if p.Registry == nil {
		p.Registry = prometheus.NewRegistry()
		p.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	p.Metrics, err = metrics.New(p.Registry)
	return err
}

func (p *Program) makeClient() (err error) {
	if p.Client = p.o.Client; p.Client != nil {
		return nil
	}
	c := p.o.Config
	if c.Host == "" {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		found, _, err := kubeconfig.Load(ctx, kubeconfig.Options{})
		if err != nil {
			return err
		}
		c = connected(c, found)
	}
	c.FieldManager = cmp.Or(c.FieldManager, p.o.Name)
	if c.OnRequest == nil {
		c.OnRequest = p.Metrics.OnRequest
	}
	p.Client, err = apiclient.New(c)
	return err
}

// connected returns a configuration with the server and the user of another one.
func connected(c, to apiclient.Config) apiclient.Config {
	c.Host, c.TLS, c.ProxyURL = to.Host, to.TLS, cmp.Or(c.ProxyURL, to.ProxyURL)
	c.DisableCompression = c.DisableCompression || to.DisableCompression
	c.BearerToken, c.BearerTokenFile, c.Username, c.Password = to.BearerToken, to.BearerTokenFile, to.Username, to.Password
	c.Credentials, c.Impersonate = to.Credentials, to.Impersonate
	return c
}

func (p *Program) makeManager() (err error) {
	o := p.o.Manager
	o.Logger = cmp.Or(o.Logger, p.Logger)
	if o.Metrics == nil {
		o.Metrics = p.Metrics
	}
	if o.Admin.Metrics == nil {
		o.Admin.Metrics = metrics.Handler(p.Registry)
	}
	if o.Elector == nil && p.o.Lease != (api.Key{}) {
		var slowPath func()
		elector, err := leaderelection.New(p.Client, leaderelection.Options{
			Namespace: p.o.Lease.Namespace, Name: p.o.Lease.Name, OnSlowPath: func() { slowPath() },
		})
		if err != nil {
			return err
		}
		slowPath = p.Metrics.SlowPath(api.FormatKey(elector.Lease())) // the elector knows the namespace of the pod
		o.Elector = elector
	}
	p.Manager, err = manager.New(o)
	return err
}

// Typed returns a cached client of whole objects, and its informer runs with the program. See cachedclient.Typed.
func Typed[T api.Object](p *Program, r api.Resource, o informer.Options[T]) *cachedclient.Typed[T] {
	live := apiclient.NewTyped[T](p.Client, r, p.namespace(r))
	return cachedclient.NewTyped(live, shared(p, live, o), cachedclient.Options{})
}

// Partial returns a cached client of objects whose declared fields are kept, and its informer runs with the program.
// See cachedclient.Partial.
func Partial[T api.Object](p *Program, r api.Resource, o informer.Options[T]) *cachedclient.Partial[T] {
	live := apiclient.NewPartial[T](p.Client, r, p.namespace(r))
	return cachedclient.NewPartial(live, shared(p, live, o), cachedclient.Options{})
}

// namespace returns the namespace of a collection.
func (p *Program) namespace(r api.Resource) string {
	if !r.Namespaced {
		return ""
	}
	return p.o.Namespace
}

// shared returns the informer of a collection.
func shared[T api.Object](p *Program, lw api.ListerWatcher[T], o informer.Options[T]) *informer.Informer[T] {
	if o.Check == nil {
		o.Check = p.o.Check
	}
	share, err := factory.Shared(p.Informers, lw, o)
	if err != nil {
		p.failed(err)
		return informer.New(lw, o) // it never runs, because Run returns the error
	}
	return share.Informer
}

// Controller makes a controller that reconciles the keys of the sources, and adds it to the program. More sources may
// follow with Watch. See controller.New for the conditions under which it panics.
func Controller[K comparable](p *Program, name string, r controller.Reconciler[K], sources ...controller.Source[K]) *controller.Controller[K] {
	c := controller.New(name, r, p.o.Controller)
	for _, s := range sources {
		c.Watch(s)
	}
	p.Add(c)
	return c
}

// Gate returns a gate with the logger and the metrics of the program. Use it with controller.Gated.
func (p *Program) Gate(name string) *cachedclient.Gate {
	g := cachedclient.NewGate(cachedclient.GateOptions{Logger: p.Logger})
	_, err := p.Metrics.Register(name, g)
	p.failed(err)
	return g
}

// Recorder returns the recorder of the program's Events, which is made by the first call.
func (p *Program) Recorder() *events.Recorder {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recorder == nil {
		r, err := events.New(p.Client, events.Options{Controller: p.o.Name})
		if err == nil {
			err = p.Manager.Add(r)
		}
		p.recorder, p.errs = r, append(p.errs, err)
	}
	return p.recorder
}

// Add adds runnables to the manager.
func (p *Program) Add(runnables ...manager.Runnable) { p.failed(p.Manager.Add(runnables...)) }

// failed records an error, unless it is nil.
func (p *Program) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// Err returns the errors of all parts that could not be made or added. A program that adds parts while it runs checks
// it afterwards.
func (p *Program) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.errs...); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	return nil
}

// Options returns the options that New received.
func (p *Program) Options() Options { return p.o }

// Run runs everything until ctx ends or a part fails. It returns the error of Err before it starts anything.
func (p *Program) Run(ctx context.Context) error {
	if err := p.Err(); err != nil {
		return err
	}
	return p.Manager.Run(ctx)
}
