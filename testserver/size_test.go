package testserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
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
