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

// The tokens of every cluster. They give access only to servers on loopback that live for one test run.
const (
	AdminToken      = "leat-e2e-admin"      // of user "admin" in system:masters, with all permissions
	RestrictedToken = "leat-e2e-restricted" // of RestrictedUser, which has only granted permissions
	RestrictedUser  = "restricted"
)

// startLimit is the time in which a server must be ready. On two idle cores it takes three seconds.
const startLimit = 2 * time.Minute

var (
	// ErrNotRunning is the error of methods that need a running server. Before Ready and after Run, all methods return
	// it.
	ErrNotRunning = errors.New("cluster: not running")
	// ErrRunning is the error of a start of a running server.
	ErrRunning = errors.New("cluster: running already")
)

// Options define the servers of a cluster. Binaries is required.
type Options struct {
	Binaries string   // the folder that holds etcd and kube-apiserver
	Flags    []string // added to the flags of kube-apiserver at every start
	Keep     bool     // do not remove the working folder with data and logs
}

// Cluster is an etcd and a kube-apiserver on free loopback ports. It corresponds to envtest.Environment of
// controller-runtime, but its servers can be killed and restarted.
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

// Ready returns a channel that closes when the API server is ready for the first time.
func (c *Cluster) Ready() <-chan struct{} { return c.ready }

// Run starts both servers. When ctx ends, it kills them, removes their files and returns nil. If a server does not
// start, the error has the end of its log. Run may be called once.
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

// URL returns the URL of the API server. It is the same after every start.
func (c *Cluster) URL() string { return "https://" + c.address }

// Address returns the host and port of the API server, for a proxy.
func (c *Cluster) Address() string { return c.address }

// EtcdAddress returns the host and port of etcd, which speaks HTTP without TLS.
func (c *Cluster) EtcdAddress() string { return strings.TrimPrefix(c.etcdURL, "http://") }

// CA returns the certificate authority of the API server in PEM.
func (c *Cluster) CA() []byte { return c.authority.certPEM }

// ClientCertificate returns a client certificate and its key in PEM, which the API server accepts for the user and
// groups.
func (c *Cluster) ClientCertificate(user string, groups ...string) (cert, key []byte, err error) {
	return c.authority.issueClient(user, groups)
}

// Processes returns the ids of the running servers.
func (c *Cluster) Processes() (ids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range []*process{c.etcd, c.apiServer} {
		if p != nil {
			ids = append(ids, p.cmd.Process.Pid)
		}
	}
	return ids
}

// Log returns the last lines of kube-apiserver's log.
func (c *Cluster) Log(lines int) string {
	return tail(filepath.Join(c.dir, apiServerLog), lines)
}

// KillAPIServer kills the API server with SIGKILL and waits until it is gone.
func (c *Cluster) KillAPIServer() error {
	return c.kill(&c.apiServer)
}

// StartAPIServer starts the API server on its former port and waits until it is ready. The flags override earlier ones,
// for this start only.
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
