package suites_test

import (
	"bytes"
	"testing"

	"github.com/leatproject/leat/e2e/conformance/suites"
)

// TestLeatCache runs controller-runtime's suite of its cache with leat's cache: every cache.New becomes leatcache.New.
// The unit tests inside the package, which test functions that are not exported, are left out.
func TestLeatCache(t *testing.T) {
	suites.Suite{
		Package: "sigs.k8s.io/controller-runtime/pkg/cache", Runner: "TestSource",
		Shards: []string{
			"^(Cache|Informer Cache with ReaderFailOnMissingInformer|TransformStripManagedFields|ListOption|informer cache)",
			"^Informer Cache Cache", "^Multi-Namespace", "^Informer Cache without",
		},
		Edit: withLeatCache, Into: "./leatcache",
		Failures: "testdata/leatcache.txt", Everywhere: true,
	}.Run(t)
}

func withLeatCache(_ string, source []byte) []byte {
	if !bytes.Contains(source, []byte("\npackage cache_test\n")) {
		return nil
	}
	const theirs = "\t\"sigs.k8s.io/controller-runtime/pkg/cache\"\n"
	if !bytes.Contains(source, []byte("cache.New")) {
		return source
	}
	source = bytes.ReplaceAll(source, []byte("cache.New("), []byte("leatcache.New("))
	source = bytes.ReplaceAll(source, []byte("(cache.New,"), []byte("(leatcache.New,"))
	return bytes.Replace(source, []byte(theirs), []byte(theirs+"\tleatcache \"github.com/leatproject/leat/adapter/controllerruntime\"\n"), 1)
}
