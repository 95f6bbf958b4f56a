package interop

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	theirs "k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	ours "github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/testserver"
)

var (
	leases   = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}
	leaseKey = api.Key{Namespace: "default", Name: "mill"}
)

const (
	leaseDuration = ours.DefaultLeaseDuration
	retryPeriod   = ours.DefaultRetryPeriod
	longestRetry  = retryPeriod * 22 / 10 // of both libraries, including jitter
)

// bubble runs a test on fake time, with a server.
func bubble(t *testing.T, f func(t *testing.T, s *testserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(testserver.Options{})
		fixture.Start(t, s.Run)
		f(t, s)
	})
}

func lease(t *testing.T, s *testserver.Server) coordinationv1.LeaseSpec {
	t.Helper()
	u := must.Get(s.Get(leases, leaseKey))(t)
	var l coordinationv1.Lease
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l))
	return l.Spec
}

// candidate is a replica of either library.
type candidate struct {
	identity string
	leat     bool
	line     *line
	leader   func() string // as this candidate sees it
	cancel   context.CancelFunc
	ended    chan struct{}

	mu          sync.Mutex // guards the fields below
	began, over time.Time  // of its leadership; zero means not yet
}

// campaign starts a replica, of leat or of client-go.
func campaign(t *testing.T, s *testserver.Server, identity string, leat bool) *candidate {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &candidate{identity: identity, leat: leat, line: &line{next: s.Client().Transport}, cancel: cancel, ended: make(chan struct{})}
	var run func(context.Context)
	if leat {
		run = c.ours(t, s)
	} else {
		run = c.theirs(t, s)
	}
	go func() {
		defer close(c.ended)
		run(ctx)
		(&http.Client{Transport: c.line.next}).CloseIdleConnections()
	}()
	t.Cleanup(c.end)
	return c
}

func (c *candidate) ours(t *testing.T, s *testserver.Server) func(context.Context) {
	t.Helper()
	client := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: c.line}))(t)
	e := must.Get(ours.New(client, ours.Options{Namespace: leaseKey.Namespace, Name: leaseKey.Name, Identity: c.identity}))(t)
	c.leader = e.Leader
	return func(ctx context.Context) {
		_ = e.Run(ctx, func(ctx context.Context) error { // the lease may be lost
			c.lead(ctx)
			return nil
		})
	}
}

func (c *candidate) theirs(t *testing.T, s *testserver.Server) func(context.Context) {
	t.Helper()
	config := &rest.Config{Host: s.URL(), Transport: c.line, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON // the test server reads no protobuf
	client := must.Get(coordination.NewForConfig(config))(t)
	e, err := theirs.NewLeaderElector(theirs.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: leaseKey.Namespace, Name: leaseKey.Name},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: ours.DefaultRenewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Callbacks:       theirs.LeaderCallbacks{OnStartedLeading: c.lead, OnStoppedLeading: func() {}},
	})
	require.NoError(t, err)
	c.leader = e.GetLeader
	return func(ctx context.Context) { e.Run(klog.NewContext(ctx, klog.New(nil))) }
}

// lead records the leadership. It ends with its context.
func (c *candidate) lead(ctx context.Context) {
	c.mu.Lock()
	c.began = time.Now()
	c.mu.Unlock()
	<-ctx.Done()
	c.finish()
}

func (c *candidate) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.IsZero() {
		c.over = time.Now()
	}
}

// led returns the begin and the end of the leadership.
func (c *candidate) led() (began, over time.Time) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began, c.over
}

func (c *candidate) leads() bool {
	began, over := c.led()
	return !began.IsZero() && over.IsZero()
}

// end stops the candidate in order.
func (c *candidate) end() {
	c.cancel()
	<-c.ended
}

// die stops the candidate and its leadership at once, without another request.
func (c *candidate) die() {
	c.line.cut.Store(true)
	c.finish()
	c.end()
}

// line is a connection that can be cut. It then refuses all requests.
type line struct {
	next http.RoundTripper
	cut  atomic.Bool
}

var errCut = errors.New("the line is cut")

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	return l.next.RoundTrip(r)
}
