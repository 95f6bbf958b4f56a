package shard_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/testserver"
)

var (
	leases = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}
	maps   = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

// bubble runs a test on fake time, with a server.
func bubble(t *testing.T, f func(t *testing.T, s *testserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(testserver.Options{})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-ended)
		})
		f(t, s)
	})
}

// replica is a running member.
type replica struct {
	*shard.Member
	stop  context.CancelFunc
	ended chan error
}

// join starts a member. Its requests go through wrap, if wrap is not nil.
func join(t *testing.T, s *testserver.Server, o shard.Options, wrap func(http.RoundTripper) http.RoundTripper) *replica {
	t.Helper()
	transport := s.Client().Transport
	if wrap != nil {
		transport = wrap(transport)
	}
	client, err := apiclient.New(apiclient.Config{Host: s.URL(), Transport: transport})
	require.NoError(t, err)
	o.Namespace, o.Group = "default", "mill"
	m, err := shard.New(client, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &replica{Member: m, stop: cancel, ended: make(chan error, 1)}
	go func() {
		r.ended <- m.Run(ctx)
		client.CloseIdleConnections()
	}()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end stops the replica and waits for it.
func (r *replica) end(t *testing.T) {
	t.Helper()
	r.stop()
	err := <-r.ended
	require.NoError(t, err)
	r.ended <- nil
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
