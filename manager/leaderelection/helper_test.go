package leaderelection_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/testserver"
)

var (
	leases   = fixture.Leases
	leaseKey = api.Key{Namespace: "default", Name: "mill"}
)

// bubble runs a test on fake time, with a server.
func bubble(t *testing.T, test func(t *testing.T, s *testserver.Server)) {
	t.Helper()
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) { test(t, f.Server) })
}

// replica is a running elector with a record of its work.
type replica struct {
	*leaderelection.Elector
	stop    context.CancelFunc
	ended   chan error
	created time.Time
	fails   error // result of the work; set before it ends

	mu    sync.Mutex // guards the fields below
	began time.Time
	over  time.Time
	cause error
}

// campaign starts a replica whose work takes windDown to end. Its requests go through wrap, if wrap is not nil.
func campaign(t *testing.T, s *testserver.Server, o leaderelection.Options, windDown time.Duration, wrap func(http.RoundTripper) http.RoundTripper) *replica {
	t.Helper()
	transport := s.Client().Transport
	if wrap != nil {
		transport = wrap(transport)
	}
	client := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: transport}))(t)
	o.Namespace, o.Name = leaseKey.Namespace, leaseKey.Name
	e := must.Get(leaderelection.New(client, o))(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{Elector: e, stop: cancel, ended: make(chan error, 1), created: time.Now()}
	go func() {
		r.ended <- e.Run(ctx, func(ctx context.Context) error {
			r.mu.Lock()
			r.began = time.Now()
			r.mu.Unlock()
			<-ctx.Done()
			<-time.After(windDown)
			r.mu.Lock()
			r.over, r.cause = time.Now(), context.Cause(ctx)
			r.mu.Unlock()
			return r.fails
		})
		client.CloseIdleConnections()
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-r.ended:
		case <-time.After(time.Minute):
			t.Errorf("%s does not end", e.Identity())
		}
	})
	return r
}

// led returns when the replica began and ended to lead, and zero times for what has not happened yet.
func (r *replica) led() (began, over time.Time) {
	synctest.Wait() // an elected replica has begun its work
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.began, r.over
}

// end stops the replica and returns the result of Run.
func (r *replica) end() error {
	r.stop()
	err := <-r.ended
	r.ended <- err // for the clean-up
	return err
}

func lease(t *testing.T, s *testserver.Server) *coordinationv1.Lease {
	t.Helper()
	u := must.Get(s.Get(leases, leaseKey))(t)
	l := &coordinationv1.Lease{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, l))
	return l
}

// edit changes the lease as another client would.
func edit(t *testing.T, s *testserver.Server, change func(spec map[string]any)) {
	t.Helper()
	_, err := s.Edit(leases, leaseKey, func(u *unstructured.Unstructured) {
		change(u.Object["spec"].(map[string]any))
	})
	require.NoError(t, err)
}

// cut fails requests while it is closed.
type cut struct {
	http.RoundTripper
	mu     sync.Mutex
	closed bool
}

func (c *cut) set(closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = closed
}

// RoundTrip blocks while the line is closed, as if packets were dropped.
func (c *cut) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return c.RoundTripper.RoundTrip(r)
}
