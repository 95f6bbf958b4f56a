package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
)

// Backend is what is served: a server, and the functions that serve it with all that belongs to it.
type Backend struct {
	Server *testserver.Server
	Serve  func(context.Context, net.Listener) error
	// Fork returns a copy, whose Run is called. Nil means that there are no other clusters.
	Fork func() Backend
	Run  func(context.Context) error
}

// Hooks are what the commands do in their own ways.
type Hooks struct {
	New     func(o testserver.Options, lenient bool) (Backend, error)
	Started func(*testserver.Server) // called before the server serves; may be nil
	Try     string                   // a resource that a client can watch; empty means configmaps
	Notice  string                   // printed after the address
}

// served is a backend with its faults.
type served struct {
	Backend
	active *faultplan.Active
}

// process is a server that runs.
type process struct {
	Options
	*served
	clusters *clusters
	restart  chan chan error
}

// Run serves until ctx ends. Meanwhile it decides when the process collects garbage, unless GOGC or GOMEMLIMIT do.
func (o Options) Run(ctx context.Context, stdout io.Writer, h Hooks) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	plan, err := o.plan()
	if err != nil {
		return err
	}
	defer tuneCollections()()
	forks := &clusters{limit: o.maxClusters, seed: plan.Seed, all: map[string]*forked{}}
	so := o.server(plan.Seed)
	if o.admin != "" {
		so.Middleware = forks.middleware
	}
	backend, err := h.New(so, o.lenient)
	if err != nil {
		return err
	}
	if err := o.load(backend.Server); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	address := listener.Addr().(*net.TCPAddr)
	cfg := o.config(backend.Server, address)
	main := &served{backend, faultplan.NewActive(backend.Server, plan.Seed)}
	forks.main, forks.config = main, cfg
	p := &process{Options: o, served: main, clusters: forks, restart: make(chan chan error)}
	admin, adminListener, err := p.adminServer()
	if err != nil {
		return err
	}
	if admin != nil {
		defer adminListener.Close()
	}
	if o.kubeconfig != "" {
		if err := kubeconfig.Write(o.kubeconfig, cfg, kubeconfig.DefaultNamespace); err != nil {
			return fmt.Errorf("--kubeconfig-out: %w", err)
		}
	}
	defer p.active.Close()
	if _, err := p.active.InjectAll(plan.Faults); err != nil {
		return err
	}
	if h.Started != nil {
		h.Started(backend.Server)
	}
	fmt.Fprintf(stdout, "serving on %s\n", cfg.Host)
	if admin != nil {
		fmt.Fprintf(stdout, "admin endpoint on http://%s/\n", adminListener.Addr())
	}
	p.announce(stdout, plan, cmp.Or(h.Try, "configmaps"))
	fmt.Fprint(stdout, h.Notice)
	return errors.Join(p.serve(ctx, listener, admin), o.save(backend.Server))
}

// announce prints how to use the server.
func (p *process) announce(stdout io.Writer, plan faultplan.Plan, try string) {
	if len(plan.Faults) > 0 {
		fmt.Fprintf(stdout, "faults, with --seed %d:\n", plan.Seed)
		for _, f := range plan.Faults {
			fmt.Fprintf(stdout, "  %s\n", f)
		}
	}
	if p.kubeconfig != "" {
		fmt.Fprintf(stdout, "try: leat watch %s -A --kubeconfig %s\n", try, p.kubeconfig)
	}
}

// serve serves the API and the admin endpoint until ctx ends.
func (p *process) serve(ctx context.Context, listener net.Listener, admin *manager.Server) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return p.serveAPI(ctx, listener) })
	all.Go(func() error { return p.clusters.close(ctx) })
	if admin != nil {
		all.Go(func() error { return admin.Run(ctx) })
	}
	return all.Wait()
}

// serveAPI serves until ctx ends. A restart ends all connections, and listens again on the same address.
func (p *process) serveAPI(ctx context.Context, listener net.Listener) error {
	address := listener.Addr().String()
	for {
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.Serve(serving, listener) }()
		var restarted chan error
		select {
		case err := <-ended:
			stop()
			return err
		case restarted = <-p.restart:
		}
		stop()
		err := <-ended
		if err == nil {
			listener, err = net.Listen("tcp", address)
		}
		restarted <- err
		if err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
}

// config returns the configuration of a client on this machine. The certificate is for loopback, so a client needs the
// name in it if the server has another address.
func (o Options) config(server *testserver.Server, address *net.TCPAddr) apiclient.Config {
	host := address.String()
	if address.IP.IsUnspecified() { // a client cannot connect to it
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(address.Port))
	}
	if !o.tls {
		return apiclient.Config{Host: "http://" + host, BearerToken: apiclient.NewSecret(o.token)}
	}
	return apiclient.Config{
		Host: "https://" + host, BearerToken: apiclient.NewSecret(o.token),
		TLS: apiclient.TLS{CAData: server.CA(), ServerName: "localhost"},
	}
}
