package scopes_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/scopes"
)

// quiet is a source of one namespace without a connection. Its list has a number of objects, and its watch is silent.
type quiet struct {
	namespace string
	objects   int
}

func (q quiet) Collection() api.Collection {
	return api.Collection{Resource: widgets, Namespace: q.namespace}
}

func (q quiet) List(context.Context, api.Options[*widget], func(*widget) error) (metav1.ListMeta, error) {
	return metav1.ListMeta{}, fmt.Errorf("no list")
}

func (q quiet) Watch(ctx context.Context, o api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	return func(yield func(api.Event[*widget], error) bool) {
		if o.SendInitialEvents != nil {
			for n := range q.objects {
				object := &widget{ObjectMeta: metav1.ObjectMeta{
					Namespace: q.namespace, Name: fmt.Sprint("w", n), UID: "uid", ResourceVersion: "7",
				}}
				if !yield(api.Event[*widget]{Type: watch.Added, Object: object, ResourceVersion: "7"}, nil) {
					return
				}
			}
			if !yield(api.Event[*widget]{Type: watch.Bookmark, ResourceVersion: "9", InitialEventsEnd: true}, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}

// memoryOf returns the bytes of heap and stacks that a set uses per scope, with its objects.
func memoryOf(tb testing.TB, n, objects int) uint64 {
	before := memoryInUse()
	set := scopes.New(widgets, scopes.Options[*widget]{})
	for i := range n {
		require.NoError(tb, set.Add(scopes.Scope[*widget]{Source: quiet{fmt.Sprint("namespace-", i), objects}}))
	}
	stop := fixture.Start(tb, set.Run)
	<-set.Synced()
	require.Equal(tb, n*objects, set.Cache().Len())
	used := (memoryInUse() - before) / uint64(n)
	stop()
	return used
}

func memoryInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestMemoryOfAScope bounds what a scope costs besides its objects and its connection.
func TestMemoryOfAScope(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	const n = 1000
	empty, full := memoryOf(t, n, 0), memoryOf(t, n, 20)
	t.Logf("%d bytes a scope, and %d a scope with 20 objects", empty, full)
	require.Less(t, empty, uint64(30_000))
}
