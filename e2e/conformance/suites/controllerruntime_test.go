package suites_test

import (
	"testing"

	"github.com/leatproject/leat/e2e/conformance/suites"
)

// TestCache runs controller-runtime's suite of its cache. Most specs wait for caches to synchronize.
func TestCache(t *testing.T) {
	suites.Suite{
		Package: "sigs.k8s.io/controller-runtime/pkg/cache", Runner: "TestSource",
		Shards: []string{
			"^(Cache|Informer Cache with ReaderFailOnMissingInformer|TransformStripManagedFields|ListOption|informer cache)",
			"^Informer Cache Cache", "^Multi-Namespace", "^Informer Cache without",
		},
		Failures: "testdata/cache.txt",
	}.Run(t)
}

// TestClient runs controller-runtime's suite of its client.
func TestClient(t *testing.T) {
	suites.Suite{
		Package: "sigs.k8s.io/controller-runtime/pkg/client", Runner: "TestClient", Failures: "testdata/client.txt",
	}.Run(t)
}
