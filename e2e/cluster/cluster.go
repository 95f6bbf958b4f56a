package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The tokens that every cluster knows. They open servers on loopback that live for one test run.
const (
	AdminToken      = "leat-e2e-admin"      // of user "admin" in system:masters, who may do everything
	RestrictedToken = "leat-e2e-restricted" // of RestrictedUser, who may do nothing that is not granted
	RestrictedUser  = "restricted"
)

// startLimit is how long a server may take until it is ready: it takes three seconds alone on two cores.
const startLimit = 2 * time.Minute

var (
	// ErrNotRunning is returned by the methods that need a server which is not there, and by all before Ready and after
	// Run.
	ErrNotRunning = errors.New("cluster: not running")
	// ErrRunning is returned when a server is to be started that is running.
	ErrRunning = errors.New("cluster: running already")
)

// Options say where the servers are and how they run. Binaries is required.
type Options struct {
	Binaries string   // the folder that holds etcd and kube-apiserver
	Flags    []string // added to those of kube-apiserver, at every start
	Keep     bool     // leave the working folder, with data and logs, where it is
}

// Cluster is one etcd and one kube-apiserver on loopback ports of their own.
// It corresponds to envtest.Environment of controller-runtime, with servers that can be killed and brought back.
type Cluster struct {
	o     Options
	ready chan struct{}
	// Set before ready closes, constant afterwards.
	dir       string
	address   string // of the API server
	etcdURL   string
	peerURL   string
	authority *authority
	admin     *http.Client
	plain     *http.Client // for etcd, which has no TLS here

	mu        sync.Mutex // guards the fields below
	running   bool
	etcd      *process
	apiServer *process
}

// New returns a cluster that starts with Run.
func New(o Options) *Cluster {
	return &Cluster{o: o, ready: make(chan struct{})}
}

// Ready closes when the API server answers, for the first time, that it is ready.
func (c *Cluster) Ready() <-chan struct{} { return c.ready }

// Run starts both servers and, when ctx ends, kills them and removes what they wrote. It returns nil when it ran until
// then, and an error with the end of the log when a server could not be started. It may be called once.
func (c *Cluster) Run(ctx context.Context) error {
	release, err := c.prepare()
	if err != nil {
		return fmt.Errorf("cluster: prepare: %w", err)
	}
	defer release()
	defer c.stop()

	if err := c.start(ctx); err != nil {
		return err
	}
	close(c.ready)
	<-ctx.Done()
	return nil
}

// URL is where the API server is, at every start the same.
func (c *Cluster) URL() string { return "https://" + c.address }

// Address is the host and port of the API server, for a proxy to stand before it.
func (c *Cluster) Address() string { return c.address }

// EtcdAddress is the host and port where etcd answers its clients, over HTTP without TLS.
func (c *Cluster) EtcdAddress() string { return strings.TrimPrefix(c.etcdURL, "http://") }

// CA is the certificate, in PEM, of the authority that signed the API server's.
func (c *Cluster) CA() []byte { return c.authority.certPEM }

// ClientCertificate issues a certificate, and its key, that the API server accepts for the user and groups, in PEM.
func (c *Cluster) ClientCertificate(user string, groups ...string) (cert, key []byte, err error) {
	return c.authority.issueClient(user, groups)
}

// Log returns the last lines that kube-apiserver wrote.
func (c *Cluster) Log(lines int) string {
	return tail(filepath.Join(c.dir, apiServerLog), lines)
}

// KillAPIServer ends the API server with SIGKILL, in the midst of whatever it does, and returns when it is gone.
func (c *Cluster) KillAPIServer() error {
	return c.kill(&c.apiServer)
}

// StartAPIServer starts the API server on the port that it had and returns when it is ready. The flags hold for this
// start; one that was given before is overridden.
func (c *Cluster) StartAPIServer(ctx context.Context, flags ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return ErrNotRunning
	}
	return c.startAPIServer(ctx, flags)
}

// RestartAPIServer kills the API server and starts it again.
func (c *Cluster) RestartAPIServer(ctx context.Context, flags ...string) error {
	if err := c.KillAPIServer(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx, flags...)
}

// KillEtcd ends etcd with SIGKILL. The API server stays, and fails.
func (c *Cluster) KillEtcd() error {
	return c.kill(&c.etcd)
}

// StartEtcd starts etcd on its port and its data and returns when it is healthy.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return ErrNotRunning
	}
	return c.startEtcd(ctx)
}

func (c *Cluster) kill(p **process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running || *p == nil {
		return ErrNotRunning
	}
	(*p).kill()
	*p = nil
	return nil
}

// prepare makes the folder and everything in it, and returns what removes it.
func (c *Cluster) prepare() (release func(), err error) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(c.o.Binaries, name)); err != nil {
			return nil, fmt.Errorf("%w (make servers builds it)", err)
		}
	}
	dir, release, err := workingFolder(os.TempDir(), c.o.Keep)
	if err != nil {
		return nil, err
	}
	c.dir = dir
	if err := c.fill(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (c *Cluster) fill() error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	c.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	c.peerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[2])
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	c.admin = c.HTTPClient(AdminToken)
	c.plain = &http.Client{Transport: &http.Transport{}}
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = true
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.startAPIServer(ctx, nil)
}

func (c *Cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	for _, p := range []*process{c.apiServer, c.etcd} {
		if p != nil {
			p.kill()
		}
	}
	c.apiServer, c.etcd = nil, nil
	c.admin.CloseIdleConnections()
	c.plain.CloseIdleConnections()
}
