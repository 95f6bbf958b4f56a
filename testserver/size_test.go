package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestSizeOfObjects holds the limit of etcd, which is below that of a request.
func TestSizeOfObjects(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		lease := func(name string, size int) doc {
			return doc{"metadata": meta(name), "spec": doc{"holderIdentity": strings.Repeat("x", size)}}
		}
		b.ok(http.MethodPost, leases, lease("a", 1<<20))
		before := b.ResourceVersion()
		for _, request := range []struct{ method, path, name string }{{http.MethodPost, leases, "b"}, {http.MethodPut, leases + "/a", "a"}} {
			body := lease(request.name, 2<<20)
			if request.name == "a" {
				body["metadata"].(doc)["resourceVersion"] = before
			}
			status := b.refused(500, request.method, request.path, body)
			require.Equal(b, "etcdserver: request is too large", status.Message)
		}
		require.Equal(b, before, b.ResourceVersion())
	})
}

// TestAServerFullOfBytes writes until the server is full. A deletion frees room, and a fork is full for itself.
func TestAServerFullOfBytes(t *testing.T) {
	const full, size = "etcdserver: mvcc: database space exceeded", 10_000
	object := func(name string, size int) doc {
		return doc{"metadata": doc{"name": name, "namespace": "default"}, "data": doc{"v": strings.Repeat("x", size)}}
	}
	s := testserver.New(testserver.Options{MaxBytes: 3 * size})
	write := func(s *testserver.Server, name string, size int) error {
		_, err := s.Create(configMaps, object(name, size))
		return err
	}
	require.NoError(t, write(s, "a", size))
	fork := s.Fork()
	before := s.Snapshot()
	for _, s := range []*testserver.Server{s, fork} {
		require.NoError(t, write(s, "b", size))
		require.EqualError(t, write(s, "c", size), full)
		for _, change := range []struct {
			size int
			err  string
		}{{size, ""}, {2 * size, full}, {size / 2, ""}, {size, ""}} {
			_, err := s.Update(configMaps, object("a", change.size))
			require.Equal(t, change.err, strings.TrimPrefix(fmt.Sprint(err), "<nil>"))
		}
		require.NoError(t, s.Delete(configMaps, api.Key{Namespace: "default", Name: "a"}))
		require.NoError(t, write(s, "c", size))
	}
	s.Inject(faults.Fault{Effect: faults.Restore{To: before}})
	require.NoError(t, write(s, "d", size))
	require.EqualError(t, write(s, "e", size), full)
}
