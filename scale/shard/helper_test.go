package shard_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/testserver"
)

var (
	leases = fixture.Leases
	maps   = fixture.ConfigMaps
	meta   = fixture.Meta
)

// bubble runs a test on fake time, with a server.
func bubble(t *testing.T, test func(t *testing.T, f *fixture.Fixture)) {
	t.Helper()
	fixture.Run(t, testserver.Options{}, test)
}

// replica is a running member.
type replica struct {
	*shard.Member
	cancel context.CancelFunc
	end    func() // cancels and waits
}

// join starts a member. Its requests go through wrap, if wrap is not nil.
func join(f *fixture.Fixture, o shard.Options, wrap func(http.RoundTripper) http.RoundTripper) *replica {
	f.Helper()
	o.Namespace, o.Group = "default", "mill"
	m := must.Get(shard.New(f.Connect(wrap), o))(f)
	r := &replica{Member: m}
	r.end = f.Start(func(ctx context.Context) error {
		ctx, r.cancel = context.WithCancel(ctx)
		return m.Run(ctx)
	})
	return r
}

// mill runs a controller of a kind, with what it reads.
func mill(f *fixture.Fixture, kind *shard.Kind[*corev1.ConfigMap], workers int, r controller.Func[api.Key], parts ...func(context.Context) error) (stop func()) {
	f.Helper()
	c := controller.New("mill", kind.Reconciler(r), controller.Options{Workers: workers})
	c.Watch(kind.Source())
	return f.Start(fixture.All(append(parts, c.Run)...))
}
