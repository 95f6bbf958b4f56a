package suites_test

import (
	"bytes"
	"regexp"
	"strings"
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
	return replaceNew(source)
}

// replaceNew makes each use of cache.New one of leatcache.New.
func replaceNew(source []byte) []byte {
	if !newCache.Match(source) {
		return source
	}
	source = newCache.ReplaceAll(source, []byte("leatcache.New"))
	return theirs.ReplaceAll(source, []byte("$0\n\tleatcache \"github.com/leatproject/leat/adapter/leatcache\""))
}

// TestOnLeatCache runs the suites of controller-runtime's other packages with leat's cache: clusters and managers have
// it as their default, and each cache.New of a test becomes leatcache.New.
func TestOnLeatCache(t *testing.T) {
	for _, s := range []suites.Suite{
		{Package: "builder", Runner: "TestBuilder"},
		{Package: "client", Runner: "TestClient", Failures: "testdata/client.txt"},
		{Package: "cluster", Runner: "TestSource"},
		{Package: "controller", Runner: "TestSource"},
		{Package: "handler", Runner: "TestEventhandler"},
		{Package: "internal/controller", Runner: "TestSource"},
		{Package: "internal/recorder", Runner: "TestRecorder"},
		{Package: "manager", Runner: "TestSource"},
		{Package: "metrics/filters", Runner: "TestSource", Failures: "testdata/leatcache-metrics-filters.txt"},
		{Package: "source", Runner: "TestSource", Failures: "testdata/leatcache-source.txt", Everywhere: true},
		{Package: "webhook", Runner: "TestSource"},
	} {
		t.Run(s.Package, func(t *testing.T) {
			s.Package, s.EditModule = "sigs.k8s.io/controller-runtime/pkg/"+s.Package, useLeatCache
			s.Run(t)
		})
	}
}

// useLeatCache leaves pkg/cache as it is, because leatcache imports it.
func useLeatCache(name string, source []byte) []byte {
	if strings.HasPrefix(name, "pkg/cache/") {
		return source
	}
	return replaceNew(source)
}

var (
	newCache = regexp.MustCompile(`\bcache\.New\b`)
	theirs   = regexp.MustCompile(`(?m)^\t"sigs.k8s.io/controller-runtime/pkg/cache"$`)
)
