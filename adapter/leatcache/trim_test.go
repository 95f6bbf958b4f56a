package leatcache_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/scale/packed"
)

// forcedCollections returns the number of garbage collections that the process asked for.
func forcedCollections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

// TestMemoryReturnsAfterTheFirstLists pretends with garbage of its own that the lists were large.
func TestMemoryReturnsAfterTheFirstLists(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	bytes := leatcache.Options{Hold: packed.Bytes[client.Object]()}
	for name, test := range map[string]struct {
		own      leatcache.Options
		garbage  int
		expected uint32
	}{
		"of packed objects":  {bytes, 64 << 20, 1},
		"of small lists":     {bytes, 0, 0},
		"of decoded objects": {leatcache.Options{}, 64 << 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(r *rig) {
				c := r.make(test.own, cache.Options{})
				stop := r.start(c)
				before := forcedCollections()
				r.get(c, &corev1.Pod{})
				<-time.After(4 * time.Second)
				r.get(c, &corev1.Node{})
				garbage = make([]byte, test.garbage)
				garbage = nil
				<-time.After(4 * time.Second) // the second list is four seconds old
				require.Zero(t, forcedCollections()-before, "handlers may still process the list")
				<-time.After(time.Minute)
				stop()
				require.Equal(t, test.expected, forcedCollections()-before)
			})
		})
	}
}

var garbage []byte

// get reads an object, so that the cache gets an informer of its type.
func (r *rig) get(c cache.Cache, object client.Object) {
	r.Helper()
	key := client.ObjectKey{Name: "n1"}
	if _, ok := object.(*corev1.Pod); ok {
		key = client.ObjectKey{Namespace: "a", Name: "one"}
	}
	require.NoError(r, c.Get(r.Context(), key, object))
}
